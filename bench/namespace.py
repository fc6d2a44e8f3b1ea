# SPDX-License-Identifier: MIT
"""Namespaces of the bench's own: every port is free, and nothing outlives the run."""

import os
import resource
import subprocess
import sys
from pathlib import Path

INSIDE = "TM3_BENCH_INSIDE"
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
UID_MAP = Path("/proc/self/uid_map")


def inside() -> bool:
    return os.environ.get(INSIDE) == "1"


def run_inside(arguments: list[str]) -> int:
    """This program again, in new namespaces; its exit code."""
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        unshare.append("--map-root-user")
    command = [*unshare, sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode


def is_root() -> bool:
    """Really, not only by the name that a user namespace gives: then all users are there."""
    _, _, count = UID_MAP.read_text().split()[:3]
    return os.geteuid() == 0 and int(count) > 1


def furnish() -> None:
    """Loopback up, ports enough for connections in TIME_WAIT, sshd's directory, descriptors."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    PORT_RANGE.write_text("10000 65000")
    subprocess.run(["mount", "-t", "tmpfs", "bench", "/run"], check=True)
    Path("/run/sshd").mkdir(mode=0o755)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def congestion_control() -> str:
    """The one that all relays get, being the kernel's default."""
    return CONGESTION.read_text().strip()
