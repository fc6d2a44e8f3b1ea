# SPDX-License-Identifier: MIT
"""What the guest's kernel says of itself while tests run: warnings, and reports of its checks.

Every kernel warns. One that is built with its checks on (vm/debug.py) has more to say, not all of
it at the level of a warning, and knows of memory that was lost only when it is asked to look.
"""

import re
import time
from collections.abc import Iterator

from vm.machine import Machine

# Of what a guest's kernel says when all is well, be it that others took its time. What the module
# itself says is judged by its tests, one by one; one of them hands insmod what is no module, one
# refuses memory to whoever loads it.
USUAL = re.compile(
    r"out-of-tree module taints|module verification failed|Possible SYN flooding"
    r"|^tm3: |^tm3_\w+: \d+ callbacks suppressed|Invalid ELF header magic|hrtimer: interrupt took"
    r"|^kobject_\w+\b.* \(?error: -12"
)
# The line by which a report is known, at whatever level it comes.
REPORT = re.compile(
    r"\bBUG\b|\bWARNING: |\bKASAN: |\bODEBUG: |refcount_t: |leaked reference"
    r"|suspicious RCU usage|possible (circular|recursive|irq) lock|inconsistent lock state"
    r"|sleeping function called|scheduling while atomic|INFO: task .* blocked|\bOops\b"
    r"|general protection fault|turning off the locking correctness validator"
)
# It is followed by where that was; by how much of it a failure is told.
REPORT_LINES = 60
KMEMLEAK = "/sys/kernel/debug/kmemleak"
YOUNG_S = 6.0  # what was allocated in the last 5 s may yet be found somewhere
SCAN_S = 300.0
BEGINNING = "Linux version "


def warnings(guest: Machine) -> list[str]:
    said = guest.run(["dmesg", "--level=emerg,alert,crit,err,warn", "--notime"]).out
    return [line for line in said.splitlines() if line.strip()]


class Watch:
    """From here on, in a guest that is up."""

    def __init__(self, guest: Machine, *, checks: bool) -> None:
        self._guest, self._checks = guest, checks
        self._usual = set(warnings(guest))
        self._seen = len(log(guest))
        if checks:
            forget_leaks(guest)

    def complaints(self) -> list[str]:
        """What must not have been said, line by line; with the checks on, what they found."""
        said = [w for w in warnings(self._guest) if w not in self._usual and not USUAL.search(w)]
        if not self._checks:
            return said
        lines = log(self._guest)
        found = list(reports(lines[self._seen :])) + leaks(self._guest) + blind(self._guest, lines)
        # A report's lines are among the warnings as a rule: told once.
        told = {line for text in found for line in text.splitlines()}
        return [*found, *(line for line in said if line not in told)]


def log(guest: Machine) -> list[str]:
    return guest.run(["dmesg", "--notime"]).out.splitlines()


def reports(lines: list[str]) -> Iterator[str]:
    """Each with what follows it; what comes within is part of it."""
    at = 0
    while at < len(lines):
        if REPORT.search(lines[at]):
            yield "\n".join(lines[at : at + REPORT_LINES])
            at += REPORT_LINES
        else:
            at += 1


def forget_leaks(guest: Machine) -> None:
    """What the kernel lost before is not ours."""
    guest.run(["sh", "-c", f"echo scan >{KMEMLEAK}; echo clear >{KMEMLEAK}"], seconds=SCAN_S)


def leaks(guest: Machine) -> list[str]:
    """Memory that nothing points to; found is what two looks agree on."""
    time.sleep(YOUNG_S)
    twice = f"echo scan >{KMEMLEAK}; echo scan >{KMEMLEAK}; cat {KMEMLEAK}"
    said = guest.run(["sh", "-c", twice], seconds=SCAN_S).out
    return [f"unreferenced{text}" for text in said.split("unreferenced")[1:]]


def blind(guest: Machine, lines: list[str]) -> list[str]:
    """Why no report would mean nothing."""
    why = []
    if not lines or BEGINNING not in lines[0]:
        why.append("the kernel's log was too short: its beginning is gone")
    stats = guest.run(["cat", "/proc/lockdep_stats"]).out
    if not re.search(r"^ debug_locks:\s+1$", stats, re.MULTILINE):
        why.append("lockdep has turned itself off")
    said = guest.run(["head", "-c", "1", KMEMLEAK], check=False)
    if said.status:
        why.append(f"kmemleak does not answer: {said.err.strip()}")
    return why
