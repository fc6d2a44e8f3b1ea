# SPDX-License-Identifier: MIT
"""Who watches a guest's kernel sees what it reports, and sees where it could not be seen.

The kernel that has something to report is the debug one: make test-vm-debug.
"""

import os
from collections.abc import Sequence

import pytest

from vm import watch
from vm.machine import CommandFailed, Done

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)

BEGUN = "Linux version 6.1.192 (gcc-12) #1 SMP PREEMPT"
QUIET = [BEGUN, "tm3: loading out-of-tree module taints kernel.", "eth0: link is up"]
# Each as a kernel says it.
REPORTS = [
    "BUG: KASAN: use-after-free in local_out+0x1c/0x90 [tm3]",
    "WARNING: CPU: 1 PID: 99 at lib/refcount.c:25 refcount_warn_saturate+0x84/0x110",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
    "BUG: scheduling while atomic: rmmod/99/0x00000002",
    "BUG kmalloc-96 (Tainted: G           O      ): Poison overwritten",
    "ODEBUG: free active (active state 0) object type: timer_list hint: never+0x0/0x10",
    "INFO: task rmmod:99 blocked for more than 241 seconds.",
    "leaked reference.",
    "general protection fault, probably for non-canonical address: 0000 [#1] PREEMPT SMP KASAN",
    "turning off the locking correctness validator.",
]


class Guest:
    """Answers as one would whose kernel has said that."""

    def __init__(self, log: list[str], leaks: str = "", lockdep: int = 1) -> None:
        self.log, self.leaks, self.lockdep = log, leaks, lockdep

    def run(self, argv: Sequence[str], *, seconds: float = 60.0, check: bool = True) -> Done:
        line = " ".join(argv)
        if line.startswith("dmesg --level="):
            return Done(0, "", "")  # it is not at that level that all is said
        if line.startswith("dmesg"):
            return Done(0, "\n".join(self.log), "")
        if "lockdep_stats" in line:
            return Done(0, f" debug_locks:                   {self.lockdep:>11}\n", "")
        if line.startswith("sh -c") and "cat" in line:
            return Done(0, self.leaks, "")
        if line.startswith(("sh -c", "head -c 1")):
            return Done(0, "", "")
        raise CommandFailed(line)


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Guest:
    monkeypatch.setattr(watch, "YOUNG_S", 0.0)
    return Guest(list(QUIET))


def complaints(guest: Guest, *said: str) -> list[str]:
    it = watch.Watch(guest, checks=True)  # type: ignore[arg-type]
    guest.log += said
    return it.complaints()


def test_nothing_to_say(guest: Guest) -> None:
    assert complaints(guest, "tm3: portList=http is not a list of ports", "wire-l: up") == []


@pytest.mark.parametrize("report", REPORTS, ids=lambda text: text.partition(" in ")[0][:40])
def test_a_report_is_told_with_what_follows_it(guest: Guest, report: str) -> None:
    trace = ("Call Trace:", " dump_stack_lvl+0x34/0x44")
    assert complaints(guest, "wire-l: up", report, *trace) == ["\n".join((report, *trace))]


def test_what_came_before_is_not_held_against_the_tests(guest: Guest) -> None:
    guest.log.append(REPORTS[1])
    assert complaints(guest, "wire-l: up") == []


def test_two_reports_far_from_each_other_are_two(guest: Guest) -> None:
    between = [" trace"] * watch.REPORT_LINES
    assert len(complaints(guest, REPORTS[0], *between, REPORTS[2])) == 2


def test_lost_memory_is_a_report(guest: Guest) -> None:
    one = 'unreferenced object 0xffff (size 96):\n  comm "insmod", pid 1\n'
    guest.leaks = one + one
    assert complaints(guest) == [one, one]


def test_checks_that_are_off_are_no_silence(guest: Guest) -> None:
    guest.lockdep = 0
    assert complaints(guest) == ["lockdep has turned itself off"]
    guest.lockdep = 1
    it = watch.Watch(guest, checks=True)  # type: ignore[arg-type]
    guest.log[:] = ["the middle of it"]
    assert it.complaints() == ["the kernel's log was too short: its beginning is gone"]
