# SPDX-License-Identifier: MIT
"""What the kernel's accounts say about processes: CPU time and memory."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
TCP_LISTEN = "0A"
CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED of the kernel: the scheduler's account


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that matter here."""

    parent: int
    cpu_ticks: int  # user and system, of children that were waited for too


def parse_stat(text: str) -> Stat:
    # The name, field 2, may hold blanks and parentheses: count from the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return Stat(parent=int(fields[1]), cpu_ticks=sum(int(f) for f in fields[11:15]))


def parse_rss_kib(status: str) -> int:
    """VmRSS of /proc/PID/status; a process that is just ending has none."""
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def parse_peak_kib(status: str) -> int:
    """VmHWM of /proc/PID/status: the most that VmRSS was."""
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def parse_listening(tcp_table: str) -> set[int]:
    """The ports that listen, from /proc/net/tcp."""
    rows = (line.split() for line in tcp_table.splitlines()[1:])
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == TCP_LISTEN}


def listening_ports() -> set[int]:
    return parse_listening((PROC / "net/tcp").read_text())


def parse_busy_ticks(table: str, cores: set[int]) -> int:
    """What was not idle on these cores, from /proc/stat; guests are in user time already."""
    busy = 0
    for line in table.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _idle, _iowait, *rest = (int(field) for field in fields[:8])
            busy += user + nice + system + sum(rest)
    return busy


def busy_seconds(cores: set[int]) -> float:
    """CPU time that anybody on the machine spent on these cores."""
    return TICK_SECONDS * parse_busy_ticks((PROC / "stat").read_text(), cores)


def all_stats() -> dict[int, Stat]:
    stats = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stats[int(entry.name)] = parse_stat((entry / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
    return stats


def family(pid: int, stats: dict[int, Stat]) -> set[int]:
    """A process and its descendants."""
    members = {pid}
    while True:
        more = {p for p, stat in stats.items() if stat.parent in members} - members
        if not more:
            return members
        members |= more


def ticked_seconds(pid: int) -> float:
    """CPU time of a process, of its descendants and of those that ended and were waited for."""
    stats = all_stats()
    members = family(pid, stats)
    return TICK_SECONDS * sum(stats[p].cpu_ticks for p in members if p in stats)


def nanoseconds(pid: int) -> int:
    """What a process ran, to the nanosecond: all its threads, those that ended among them.

    It is the sum of what /proc/PID/task/*/schedstat tells, from the process' own clock: see
    clock_getcpuclockid().
    """
    return time.clock_gettime_ns(~pid << 3 | CLOCK_OF_PROCESS)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its descendants; of those that ended it is not known."""
    total = 0
    for member in family(pid, all_stats()):
        try:
            total += nanoseconds(member)
        except OSError:
            continue  # it ended while we looked
    return total / 1e9


def resident_kib(pid: int) -> int:
    """Of this process alone."""
    return parse_rss_kib((PROC / str(pid) / "status").read_text())


def rss_kib(pid: int) -> int:
    total = 0
    for member in family(pid, all_stats()):
        try:
            total += resident_kib(member)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def peak_kib(pid: int) -> int:
    """The most resident memory that a process ever had."""
    return parse_peak_kib((PROC / str(pid) / "status").read_text())
