# SPDX-License-Identifier: MIT
"""tm3.ko in the kernel that runs: loaded, read, written, and its kernel's log.

For the guest only: these tests load a module that was built a moment ago.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.netns import Namespace
from tests.relay.programs import BUILD

KO = Path(os.environ.get("TM3_KO") or BUILD / "tm3.ko")
# A thread's own: a test enters a namespace with one thread.
PROC = Path("/proc/thread-self/net/tm3")
# Up to and with warnings. A module from outside the kernel's tree is named as such, once; a busy
# machine that emulates the guest makes its timers late.
WORST_LEVEL = 4
USUAL = re.compile(
    r"loading out-of-tree module taints kernel|module verification failed"
    r"|^hrtimer: interrupt took|^clocksource: "
)

in_guest = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") != "1", reason="loads a kernel module: in the guest, make test-vm"
)
# The debug kernel, whose checks take their time and their memory.
DEBUG = Path("/sys/kernel/debug/kmemleak").exists()
of_what_is_free = pytest.mark.skipif(
    DEBUG, reason="KASAN keeps what is freed for a while: not of the debug kernel"
)


def loaded() -> bool:
    return Path("/sys/module/tm3").exists()


def insmod(ns: Namespace, **words: str) -> subprocess.CompletedProcess[str]:
    """In that namespace, which the parameters then configure."""
    argv = ns.command(["insmod", KO, *(f"{name}={value}" for name, value in words.items())])
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


def rmmod() -> None:
    done = subprocess.run(["rmmod", "tm3"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def load(ns: Namespace, **words: str) -> None:
    done = insmod(ns, **words)
    assert done.returncode == 0, f"insmod {words}: {done.stderr}"


def write(ns: Namespace, text: str) -> None:
    """To that namespace's /proc/net/tm3, in one piece; OSError if the module refuses it."""
    with ns.entered():
        handle = os.open(PROC, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def configure(ns: Namespace, **words: str) -> None:
    write(ns, " ".join(f"{name}={value}" for name, value in words.items()))


def setting(ns: Namespace) -> str:
    with ns.entered():
        return PROC.read_text().splitlines()[0]


def counters(ns: Namespace) -> dict[str, int]:
    """All that are not 0."""
    with ns.entered():
        lines = PROC.read_text().splitlines()[1:]
    found = {name: int(value) for name, value in (line.split() for line in lines)}
    assert len(found) == 8, found
    return {name: value for name, value in found.items() if value}


class Log:
    """The kernel's log from here on."""

    def __init__(self) -> None:
        self.expected: list[str] = []  # patterns of warnings that belong to the test
        self.begin()

    def begin(self) -> None:
        self.mark = f"tm3-test {os.urandom(8).hex()}"
        Path("/dev/kmsg").write_text(f"<6>{self.mark}\n")

    def lines(self) -> list[tuple[int, str]]:
        raw = subprocess.run(["dmesg", "--raw"], capture_output=True, text=True, check=True).stdout
        _, found, rest = raw.partition(self.mark + "\n")
        assert found, "the kernel's log was too short for this test"
        matches = re.findall(r"^<(\d+)>\[[^\]]*\] (.*)$", rest, re.MULTILINE)
        return [(int(level) & 7, text) for level, text in matches]

    def of_module(self) -> list[str]:
        """What the module said since the last time."""
        said = [text for _, text in self.lines() if re.match(r"tm3: ", text)]
        self.begin()
        return [text for text in said if not USUAL.search(text)]

    def complaints(self) -> list[str]:
        usual = [USUAL.pattern, *self.expected]
        return [
            text
            for level, text in self.lines()
            if level <= WORST_LEVEL and not any(re.search(pattern, text) for pattern in usual)
        ]


@contextmanager
def clean_kernel() -> Iterator[Log]:
    """No module before; afterwards no module, and nothing in the log that should not be there."""
    assert KO.exists(), f"{KO} is not built: make kmod"
    assert not loaded(), "tm3.ko is loaded already"
    subprocess.run(["modprobe", "nf_nat"], check=True)
    log = Log()
    try:
        yield log
    finally:
        if loaded():
            rmmod()
    complaints = log.complaints()
    assert not complaints, "the kernel's log:\n" + "\n".join(complaints)
