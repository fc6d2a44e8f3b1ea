# SPDX-License-Identifier: MIT
"""A run: blocks in which every measurement meets every relay once, in random order."""

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import accounts, namespace
from bench.measures import Bench, measure_once
from bench.rivals import BY_NAME, Rival

IDLE_BLOCKS = 3  # memory hardly varies
QUIET_SECONDS = 0.2
QUIET_SHARE = 0.15


@dataclass(frozen=True)
class Step:
    block: int
    measure: str
    rival: str


def plan(
    rivals: Sequence[Rival], measures: Sequence[str], blocks: int, seed: int
) -> Iterator[Step]:
    """One measurement goes through all relays before the next begins, so that what is compared
    lies close together in time."""
    dice = random.Random(seed)
    for block in range(blocks):
        for measure in dice.sample(measures, len(measures)):
            for rival in dice.sample(rivals, len(rivals)):
                if measure in rival.measures and (measure != "idle" or block < IDLE_BLOCKS):
                    yield Step(block, measure, rival.name)


def await_quiet(cores: set[int], patience: float) -> None:
    """Waits, but not for ever, until others leave the cores alone."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        busy = accounts.busy_seconds(cores)
        time.sleep(QUIET_SECONDS)
        if accounts.busy_seconds(cores) - busy <= QUIET_SHARE * QUIET_SECONDS * len(cores):
            return


def carry_out(bench: Bench, steps: Sequence[Step], patience: float) -> list[dict[str, Any]]:
    """Every step once; with some `patience` each waits so many seconds for a quiet machine."""
    figures = []
    for number, step in enumerate(steps, 1):
        if sys.stderr.isatty():
            say = f"{number}/{len(steps)} block {step.block + 1}: {step.measure}, {step.rival}"
            print(f"\r\x1b[K{say}", end="", file=sys.stderr, flush=True)
        await_quiet(set(bench.place.cores), patience)
        figure = measure_once(bench, BY_NAME[step.rival], step.measure)
        namespace.reap_orphans()
        figures.append(
            {"block": step.block, "measure": step.measure, "rival": step.rival, **figure}
        )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return figures
