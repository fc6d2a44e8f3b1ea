# SPDX-License-Identifier: MIT
"""Traces of a rate that are made here, by name: `--trace-down synthetic-lte`.

They are synthetic. `synthetic-lte` has what published captures of LTE downlinks have in common: a
mean near 9 Mbit/s; a rate that wanders over a factor of several within seconds, since the logarithm
follows an AR(1) process whose memory is one second; and every ten seconds or so a tenth to three
tenths of a second with next to nothing, as at a handover. It lasts a minute, then repeats.
`synthetic-lte:7` is drawn from seed 7, without a number it is seed 1. No user was captured.
"""

import math
import os
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from topologies.parameter import ParameterError
from topologies.programs import build_folder

NAME = re.compile(r"synthetic-lte(?::(\d{1,9}))?")
PERIOD_MS = 60_000
STEP_MS = 20
PACKET_BITS = 1514 * 8  # of an opportunity, with its Ethernet header
MEDIAN_MBPS = 8.5
SPREAD = 0.55  # standard deviation of the rate's natural logarithm
MEMORY_MS = 1000.0
LOWEST_MBPS, HIGHEST_MBPS = 0.8, 25.0
OUTAGE_EACH_MS = 10_000.0
OUTAGE_MS = (100, 300)
OUTAGE_MBPS = 0.3


def is_named(word: str) -> bool:
    return NAME.fullmatch(word) is not None


@cache
def path_of(word: str) -> Path:
    """The file of a trace: a named one's is made when it is first asked for, with all else that is
    built; any other word is a path."""
    found = NAME.fullmatch(word)
    if found is None:
        if word.startswith("synthetic"):
            raise ParameterError("trace", f"{word!r}: there is synthetic-lte, synthetic-lte:SEED")
        return Path(word)
    seed = int(found[1] or 1)
    path = build_folder().resolve() / "traces" / f"synthetic-lte-{seed}.mahimahi"
    text = "".join(f"{at}\n" for at in opportunities(seed))
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.replace(path)
    return path


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


def opportunities(seed: int) -> Iterator[int]:
    """In Mahimahi's format: the millisecond of each packet that may leave, and the period last."""
    due, at, last = 0.0, 0, 0
    for mbps in rates_mbps(seed):
        for _ in range(STEP_MS):
            due += mbps * 1e3 / PACKET_BITS
            while due >= 1:
                due -= 1
                last = at
                yield at
            at += 1
    if last != PERIOD_MS:
        yield PERIOD_MS
