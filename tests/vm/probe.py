# SPDX-License-Identifier: MIT
"""What a process may do: each is tried, and the answers are written as JSON to the file named.

Started in the place of a proxy by its unit (tests/vm/test_units.py), and beside it as root, to whom
all of it is allowed.
"""

import errno
import json
import mmap
import os
import resource
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def write(path: str) -> None:
    Path(path).write_text("x")
    Path(path).unlink()


def run(*argv: str) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise OSError(errno.EPERM, done.stderr.strip())


def own_bit() -> None:
    path = Path(sys.argv[1] + ".suid")
    path.write_text("x")
    try:
        path.chmod(0o755 | stat.S_ISUID)
    finally:
        path.unlink()


def more_descriptors() -> None:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 17, 1 << 17))
    except ValueError as why:  # as Python has it where the kernel says EPERM
        raise OSError(errno.EPERM, str(why)) from None


def others() -> None:
    """/proc shows processes of other users."""
    Path("/proc/1/status").read_text()


TRIED: dict[str, Callable[[], object]] = {
    "write /etc": lambda: write("/etc/probe"),
    "write /usr": lambda: write("/usr/probe"),
    "write /var/lib": lambda: write("/var/lib/probe"),
    "write /run": lambda: write("/run/probe"),
    "write /sys": lambda: Path("/proc/sys/kernel/domainname").write_text("x"),
    "see /root": lambda: list(Path("/root").iterdir()),
    "see the machine's /tmp": lambda: Path("/tmp/of-the-machine").read_text(),
    "see the disk": lambda: Path("/dev/vda").stat(),
    "see the kernel's log": lambda: os.close(os.open("/dev/kmsg", os.O_RDONLY)),
    "see others": others,
    "signal others": lambda: os.kill(1, 0),
    "a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "memory that is written and run": lambda: mmap.mmap(
        -1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    ).close(),
    "a namespace": lambda: run("unshare", "--user", "true"),
    "a mount": lambda: run("unshare", "--mount", "true"),
    "another root": lambda: run("chroot", "/", "true"),
    "another name of the host": lambda: socket.sethostname(socket.gethostname()),
    "another time": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "a priority above others": lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    "more descriptors": more_descriptors,
    "a file that runs as its owner": own_bit,
    "a port below 1024": lambda: socket.create_server(("127.0.0.1", 81)).close(),
}


def tried(what: Callable[[], object]) -> str:
    try:
        what()
    except OSError as why:
        return errno.errorcode.get(why.errno or 0, str(why))
    return ""


def main() -> None:
    status = dict(
        line.split(":\t", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":\t" in line
    )
    told = {"refused": {name: tried(what) for name, what in TRIED.items()}, "status": status}
    Path(sys.argv[1]).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
