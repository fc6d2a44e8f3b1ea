# SPDX-License-Identifier: MIT
"""Namespaces of the bench's own: every port is free, and nothing outlives the run."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

INSIDE = "TM3_BENCH_INSIDE"
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CONTROLS = ("cubic", "bbr")
UID_MAP = Path("/proc/self/uid_map")
RUN = Path("/run")  # ours in there: goes away with the namespace


def inside() -> bool:
    return os.environ.get(INSIDE) == "1"


def run_inside(arguments: list[str], module: str = "bench") -> int:
    """The `module` that was started again, in new namespaces; its exit code.

    unshare blocks SIGTERM: killing it is what ends all that runs inside, however this ends.
    """
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        unshare.append("--map-root-user")
    command = [*unshare, sys.executable, "-m", module, *arguments]
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


def descriptors_most() -> int:
    """That furnish() gives a process."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def set_congestion_control(name: str) -> None:
    """All connections that are opened from now on have it at both ends, whoever opens them.

    By loopback's routes, since sysctl refuses in a namespace what the system's own list of allowed
    ones does not name.
    """
    for where in ("127.0.0.1", "127.0.0.0/8"):
        words = ["local", where, "dev", "lo", "table", "local", "proto", "kernel"]
        scope = ["scope", "host", "src", "127.0.0.1", "congctl", name]
        subprocess.run(
            ["ip", "route", "replace", *words, *scope], check=True, capture_output=True, text=True
        )
    found = controls_of_a_connection()
    if found != {name}:
        raise OSError(f"a connection has {' and '.join(sorted(found))}, not {name}")


def controls_of_a_connection() -> set[str]:
    """At its two ends."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as near,
        listening.accept()[0] as far,
    ):
        told = [it.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16) for it in (near, far)]
    return {name.rstrip(b"\0").decode() for name in told}


def have_subflows(count: int) -> None:
    """Each connection of MPTCP over loopback has so many subflows, of 8 at most."""
    limits = ["ip", "mptcp", "limits", "set", "subflows", str(count - 1)]
    subprocess.run(limits, check=True, capture_output=True)
    subprocess.run(["ip", "mptcp", "endpoint", "flush"], check=True, capture_output=True)
    for number in range(2, count + 1):
        words = ["add", f"127.0.0.{number}", "dev", "lo", "subflow"]
        subprocess.run(["ip", "mptcp", "endpoint", *words], check=True, capture_output=True)


def why_not(control: str) -> str | None:
    """Why a congestion control cannot be had here; None if it can."""
    try:
        set_congestion_control(control)
    except subprocess.CalledProcessError as error:
        return f"this kernel has no such congestion control ({error.stderr.strip()})"
    except OSError as error:
        return f"this congestion control cannot be set: {error}"
    return None
