# SPDX-License-Identifier: MIT
"""Traces of a rate or a round trip that are made here, by name: `--trace-down synthetic-lte`.

They are synthetic. `synthetic-lte` has what published captures of LTE downlinks have in common: a
mean near 9 Mbit/s; a rate that wanders over a factor of several within seconds, since the logarithm
follows an AR(1) process whose memory is one second; and every ten seconds or so a tenth to three
tenths of a second with next to nothing, as at a handover. It lasts a minute, then repeats.
`synthetic-lte:7` is drawn from seed 7, without a number it is seed 1. No user was captured.

`synthetic-rate:7.04:54:7` (for `--trace-down`) and `synthetic-rtt:50:40:7` (for `--delay-trace`)
wander alike, without outages: over their minute a rate has a mean of 7.04 Mbit/s and a standard
deviation of 54 % of it, a round trip 50 ms and 40 %. Of a round trip each direction has half. The
memory is a fifth of a second, so that a file of some hundred milliseconds meets changes.
"""

import hashlib
import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from topologies.parameter import ParameterError
from topologies.programs import build_folder

LTE = re.compile(r"synthetic-lte(?::(\d{1,9}))?")
VARYING = re.compile(r"synthetic-(rate|rtt):(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)(?::(\d{1,9}))?")
KNOWN = (
    "synthetic-lte[:SEED], synthetic-rate:MBPS:PERCENT[:SEED]",
    "synthetic-rtt:MS:PERCENT[:SEED]",
)
PERIOD_MS = 60_000
STEP_MS = 20
PACKET_BITS = 1514 * 8  # of an opportunity, with its Ethernet header
MEDIAN_MBPS = 8.5
SPREAD = 0.55  # standard deviation of the rate's natural logarithm
MEMORY_MS = 1000.0
VARYING_MEMORY_MS = 200.0
LOWEST_MBPS, HIGHEST_MBPS = 0.8, 25.0
OUTAGE_EACH_MS = 10_000.0
OUTAGE_MS = (100, 300)
OUTAGE_MBPS = 0.3
MOST_PERCENT = 150.0  # a minute of it has hardly more
Lines = Callable[[], Iterator[int] | Iterator[str]]


def is_named(word: str) -> bool:
    return bool(LTE.fullmatch(word) or VARYING.fullmatch(word))


@cache
def path_of(word: str, delay: bool = False) -> Path:
    """The file of a trace: a named one's is made when it is first asked for, with all else that is
    built; any other word is a path. `delay`: one of round trips, else of a rate."""
    if not is_named(word):
        if word.startswith("synthetic"):
            raise ParameterError("trace", f"{word!r}: there is {' and '.join(KNOWN)}")
        return Path(word)
    varying = VARYING.fullmatch(word)
    if delay != bool(varying and varying[1] == "rtt"):
        raise ParameterError("trace", f"{word!r} is none of a {'round trip' if delay else 'rate'}")
    return _made(*(_of_varying(varying) if varying else _of_lte(word)))


def _of_lte(word: str) -> tuple[str, Lines]:
    found = LTE.fullmatch(word)
    seed = int((found and found[1]) or 1)
    return f"synthetic-lte-{seed}.mahimahi", lambda: opportunities(rates_mbps(seed))


class Varying(NamedTuple):
    """What the name of a trace that varies says."""

    kind: str
    mean: float
    percent: float
    seed: int

    def values(self) -> list[float]:
        return varying(self.mean, self.percent / 100, f"{self.kind} {self.seed}")


def _read(found: re.Match[str]) -> Varying:
    its = Varying(found[1], float(found[2]), float(found[3]), int(found[4] or 1))
    if not (0.1 <= its.mean <= 10_000 and its.percent <= MOST_PERCENT):
        raise ParameterError(
            "trace", f"{found[0]!r}: a mean of 0.1 to 10000, a deviation of at most {MOST_PERCENT}"
        )
    return its


def values_of(word: str) -> list[float]:
    """Of each step of one that varies: Mbit/s, or milliseconds there and back."""
    found = VARYING.fullmatch(word)
    if not found:
        raise ParameterError("trace", f"{word!r} is no synthetic-rate and no synthetic-rtt")
    return _read(found).values()


def _of_varying(found: re.Match[str]) -> tuple[str, Lines]:
    its = _read(found)
    name = f"synthetic-{its.kind}-{its.mean:.15g}-{its.percent:.15g}-{its.seed}"
    if its.kind == "rate":
        return f"{name}.mahimahi", lambda: opportunities(its.values())
    return f"{name}.delays", lambda: (f"{STEP_MS} {value / 2:.6f}" for value in its.values())


def _made(name: str, lines: Lines) -> Path:
    """The file, which is made if there is none, or if it or this module has changed since. Each
    process would make all of a sweep's once more, and paths-vary has 80."""
    path = build_folder().resolve() / "traces" / name
    sum_ = path.with_name(f"{name}.sum")
    with suppress(FileNotFoundError):
        if sum_.read_text() == _sum(path.read_bytes()):
            return path
    text = "".join(f"{line}\n" for line in lines())
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, text)
    _write(sum_, _sum(text.encode()))
    return path


def _sum(content: bytes) -> str:
    """Of a trace and of the source that made it."""
    return hashlib.sha256(_source() + content).hexdigest()


@cache
def _source() -> bytes:
    return Path(__file__).read_bytes()


def _write(path: Path, text: str) -> None:
    """At once, as others may read it."""
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text)
    new.replace(path)


def wandering(chance: random.Random) -> Iterator[float]:
    """Of each step of the period a standard normal value, by an AR(1) process."""
    kept = math.exp(-STEP_MS / VARYING_MEMORY_MS)
    value = chance.gauss(0, 1)
    for _ in range(PERIOD_MS // STEP_MS):
        value = kept * value + math.sqrt(1 - kept * kept) * chance.gauss(0, 1)
        yield value


def varying(mean: float, deviation: float, seed: str) -> list[float]:
    """Of each step of the period. The logarithm wanders by so much that the standard deviation is
    this share of the mean, over these very steps."""
    steps = list(wandering(random.Random(f"synthetic {seed}")))
    low, high = 0.0, 4.0
    bound = deviation * math.sqrt(len(steps))
    for _ in range(40):
        spread = (low + high) / 2
        values = [math.exp(spread * it) for it in steps]
        mean_here = fmean(values)
        if math.dist(values, [mean_here] * len(values)) < bound * mean_here:
            low = spread
        else:
            high = spread
    scale = mean / fmean(values)
    return [scale * it for it in values]


def rates_mbps(seed: int) -> Iterator[float]:
    """Of each step of the period."""
    chance = random.Random(f"synthetic-lte {seed}")
    kept = math.exp(-STEP_MS / MEMORY_MS)
    fresh = SPREAD * math.sqrt(1 - kept * kept)
    deviation = chance.gauss(0, SPREAD)
    outage_left = 0
    for _ in range(PERIOD_MS // STEP_MS):
        deviation = kept * deviation + chance.gauss(0, fresh)
        if outage_left <= 0 and chance.random() < STEP_MS / OUTAGE_EACH_MS:
            outage_left = chance.randint(*OUTAGE_MS)
        outage_left -= STEP_MS
        if outage_left > 0:
            yield OUTAGE_MBPS
        else:
            yield min(HIGHEST_MBPS, max(LOWEST_MBPS, MEDIAN_MBPS * math.exp(deviation)))


def opportunities(rates: Iterable[float]) -> Iterator[int]:
    """In Mahimahi's format: the millisecond of each packet that may leave, and the period last."""
    due, at, last = 0.0, 0, 0
    for mbps in rates:
        for _ in range(STEP_MS):
            due += mbps * 1e3 / PACKET_BITS
            while due >= 1:
                due -= 1
                last = at
                yield at
            at += 1
    if last != PERIOD_MS:
        yield PERIOD_MS
