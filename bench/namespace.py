# SPDX-License-Identifier: MIT
"""Namespaces of the bench's own: every port is free, and nothing outlives the run."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

INSIDE = "TM3_BENCH_INSIDE"
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
UID_MAP = Path("/proc/self/uid_map")
RUN = Path("/run")  # ours in there: goes away with the namespace


def inside() -> bool:
    return os.environ.get(INSIDE) == "1"


def run_inside(arguments: list[str]) -> int:
    """This program again, in new namespaces; its exit code.

    unshare blocks SIGTERM: killing it is what ends all that runs inside, however this ends.
    """
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        unshare.append("--map-root-user")
    command = [*unshare, sys.executable, "-m", "bench", *arguments]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with subprocess.Popen(command, env={**os.environ, INSIDE: "1"}) as process:
        try:
            return process.wait()
        finally:
            process.kill()


def is_root() -> bool:
    """Really, not only by the name that a user namespace gives: then all users are there."""
    _, _, count = UID_MAP.read_text().split()[:3]
    return os.geteuid() == 0 and int(count) > 1


def furnish() -> None:
    """Loopback up, ports enough for connections in TIME_WAIT, sshd's directory, descriptors."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    PORT_RANGE.write_text("10000 65000")
    subprocess.run(["mount", "-t", "tmpfs", "bench", str(RUN)], check=True)
    (RUN / "sshd").mkdir(mode=0o755)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def reap_orphans() -> None:
    """This is process 1 here: what a stopped relay's children leave is left to it, and
    thousands of zombies make every look at /proc slow. Only when nothing of ours runs."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def congestion_control() -> str:
    """The one that all relays get, being the kernel's default."""
    return CONGESTION.read_text().strip()
