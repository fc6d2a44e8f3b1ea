# SPDX-License-Identifier: MIT
"""Processes told apart for good: an id together with when it started; and who is in a namespace."""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Identity:
    """A process; its id alone may be somebody else's by now."""

    pid: int
    start: int  # in clock ticks since boot, field 22 of /proc/PID/stat

    def alive(self) -> bool:
        return start_of(self.pid) == self.start

    def send(self, number: signal.Signals) -> None:
        """To this process; never to another one that got its id meanwhile."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def start_of(pid: int) -> int | None:
    """When a process started; None if it is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def identify(pid: int) -> Identity | None:
    start = start_of(pid)
    return None if start is None else Identity(pid, start)


def everybody() -> Iterator[Identity]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            found = identify(int(entry.name))
            if found:
                yield found


def network_of(pid: int | str) -> tuple[int, int] | None:
    """Which network namespace a process is in, as device and inode of its file."""
    try:
        status = Path(f"/proc/{pid}/ns/net").stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def environment_has(pid: int, word: str) -> bool:
    try:
        return word.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def end(find: Callable[[], set[Identity]], seconds: float = 5.0) -> None:
    """Ends whom `find` names, asking first; tries again until it names nobody."""
    deadline = time.monotonic() + seconds
    asked: dict[Identity, float] = {}
    while found := find():
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"processes do not end: {sorted(p.pid for p in found)}")
        for process in found:
            first = asked.setdefault(process, now)
            number = signal.SIGTERM if first == now else signal.SIGKILL
            if number == signal.SIGTERM or now - first > 0.5:
                process.send(number)
        time.sleep(0.01)


def renice(pid: int, nice: int) -> None:
    """Against all others. With autogroups a nice value counts only among the processes of one
    session, and sessions share the cores by one of their own."""
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def end_with_parent(number: signal.Signals) -> None:
    """From now on the kernel sends this process the signal when its parent is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
