# SPDX-License-Identifier: MIT
"""How the machine kept up while a run was measured, and whether that was well enough.

A link of linkem's delivers a packet at the moment that was computed for it, or later, when the
processors were elsewhere. Such a run measures the machine. So does one whose proxies stood in line
for a processor: linkem goes before all others, so that it may be on time while rp and lp are not.
Each run keeps how late linkem was, how long the run's own process, linkem, rp and lp waited for a
processor, the time in which any process of the machine did (the kernel's pressure), and the load.
Past a bound the run is void: it is kept apart, repeated, and enters no median.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOID = "void"  # an outcome, as ok and failed are
ATTEMPTS = 3  # of one run, before it is left void
LATE_P99_US = 1_000  # a fiftieth of the shortest round trip of the last miles
LATE_MAX_US = 50_000  # one late packet may be a round trip late, as after a loss
WAITED_SHARE = 0.1  # of the run's time, for the run's own process and linkem
# The same for rp and lp. These wait a little whenever they are at work, since linkem goes before
# them at each packet. Measured on two cores (2026-11-29), of the two the one that waited longer:
# 0.01 to 0.17 in 31 runs of paths-bulk, whose goodput did not depend on it; 0.15 to 0.34 in 23
# runs of attacks beside other programs. Up to 0.2 a friend kept all of its rate there and was
# served as soon as in runs that had the machine alone, beyond that often half as late again, and
# at 0.24 twice as late. linkem was on time in all of them.
PROXIES_WAITED_SHARE = 0.2
# The same for programs in Python that are at work at each packet is no bound: at 190 Mbit/s one
# waits for 0.2 to 0.36 of the time, a dozen us each time, and is none the slower. What tells is for
# how much of the time any process waited (the kernel's pressure). Measured on two cores
# (2026-12-01, smt-two-2, messages of 16 KB, an even spread): up to 0.41 of the time 1,199 to 1,289
# messages a second, at 0.52 to 0.58 1,091 to 1,199, at 0.9 and more 440 to 767. linkem was on time.
PRESSED_SHARE = 0.5
MOST_CPU = 0.7  # of a core, that a client in Python may take before its own pace is measured
WAITS = {  # by name in a record: who, and for how much of a run it may wait for a processor
    "run": ("the run's process", WAITED_SHARE),
    "linkem": ("linkem", WAITED_SHARE),
    "rp": ("rp", PROXIES_WAITED_SHARE),
    "lp": ("lp", PROXIES_WAITED_SHARE),
}
Late = dict[str, dict[str, int]]  # by link and direction: packets, p99 and max in microseconds


def _waited_ns(pid: int) -> int | None:
    """For a processor, all threads together; None where the kernel does not tell."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks)
    except (OSError, ValueError, IndexError):
        return None


def _pressure_us() -> int | None:
    """In which some process of the machine waited for a processor."""
    try:
        first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(first.rsplit("total=", 1)[1])
    except (OSError, ValueError, IndexError):
        return None


@dataclass
class Meter:
    """From its making on. `linkem`: the processes of the links; `proxies`: those of rp and lp, by
    their names."""

    linkem: tuple[int, ...] = ()
    proxies: Mapping[str, int] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    before: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = self._now()

    def _now(self) -> dict[str, int | None]:
        links = [_waited_ns(pid) for pid in self.linkem]
        told = [it for it in links if it is not None]
        return {
            "run_waited_s": _waited_ns(os.getpid()),
            "linkem_waited_s": sum(told) if links and len(told) == len(links) else None,
            **{f"{name}_waited_s": _waited_ns(pid) for name, pid in self.proxies.items()},
            "pressure_s": _pressure_us(),
        }

    def told(self, late: Late) -> dict[str, Any]:
        """For the run's record; what this kernel does not tell is None."""
        scale = {"pressure_s": 1e-6}
        waited = {
            name: round((now - was) * scale.get(name, 1e-9), 6)
            if now is not None and was is not None
            else None
            for (name, now), was in zip(self._now().items(), self.before.values(), strict=True)
        }
        took_s = round(time.monotonic() - self.began, 3)
        load = round(os.getloadavg()[0], 2)
        return {"took_s": took_s, "late_us": late, **waited, "load": load}


def _waited(told: Mapping[str, Any], name: str, who: str, most: float) -> str:
    """In words, if it was for more than this share of the time."""
    waited, took = told.get(name), told.get("took_s")
    if not waited or not took or waited <= most * took:
        return ""
    return f"{who} waited for a processor for {100 * waited / took:.0f} % of the time"


def beyond(told: Mapping[str, Any]) -> str:
    """Which bounds a run's machine did not keep, in words; empty: it kept all that is known."""
    late = told.get("late_us") or {}
    found = [
        f"linkem was {us / 1e3:g} ms late ({link}, {name}; {most / 1e3:g} may be)"
        for key, name, most in (
            ("p99", "99th percentile", LATE_P99_US),
            ("max", "most", LATE_MAX_US),
        )
        for us, link in [worst(late, key)]
        if us > most
    ]
    waits = [_waited(told, f"{name}_waited_s", *which) for name, which in WAITS.items()]
    found += filter(None, waits)
    return "; ".join(found)


def too_slow(name: str, cpu_s: float, seconds: float) -> str:
    """In words, for a program that took so much of a core; empty: it had enough."""
    if cpu_s > MOST_CPU * seconds:
        return f"machine too slow: the {name} took {cpu_s / seconds:.2f} of a core"
    return ""


def crowded(meter: Meter) -> str:
    """The same of the whole machine, since `meter` was made."""
    found = _waited(meter.told({}), "pressure_s", "some process", PRESSED_SHARE)
    return f"machine too slow: {found}" if found else ""


def kept_by(told: Any) -> bool:
    """Whether this is what a Meter tells; None is what runs had before there was one."""
    if told is None:
        return True
    late = told.get("late_us") if isinstance(told, Mapping) else None
    numbers = (int, float)
    return (
        isinstance(late, Mapping)
        and all(
            isinstance(it, Mapping) and all(isinstance(it.get(k), numbers) for k in ("p99", "max"))
            for it in late.values()
        )
        and all(isinstance(told.get(name), numbers) for name in ("took_s", "load"))
    )


def worst(late: Late, key: str) -> tuple[int, str]:
    """Of all directions, and which it was."""
    return max(((it[key], link) for link, it in late.items()), default=(0, ""))


def attempts(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How often each run was void, of those that have no other outcome."""
    counts: dict[str, int] = {}
    settled = set()
    for it in records:
        if it["outcome"] == VOID:
            counts[it["id"]] = counts.get(it["id"], 0) + 1
        else:
            settled.add(it["id"])
    return {name: n for name, n in counts.items() if name not in settled}
