# SPDX-License-Identifier: MIT
"""A run: blocks in which every measurement meets every relay once, in random order.

What others had too much of the machine for, in each try, is marked `noisy`."""

import dataclasses
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import accounts, namespace
from bench.kinds import WIRE
from bench.measures import Bench, measure_once
from bench.rivals import BY_NAME, Rival

# In how many blocks at most: memory and bytes hardly vary, connections that go on take a minute.
BLOCKS_MOST = {"idle": 3, "churn": 3, WIRE: 3}
WITHOUT_CONTROL = ("idle", "udp", "churn", WIRE)
NOISY = 0.25  # of the cores: what was measured while others had more is repeated
QUIET_SECONDS = 0.2
QUIET_SHARE = 0.15


@dataclasses.dataclass(frozen=True)
class Step:
    block: int
    measure: str
    rival: str
    control: str  # congestion control


def rounds(measures: Sequence[str], controls: Sequence[str]) -> list[tuple[str, str]]:
    """What a block is made of. Memory, datagrams and connections of a byte have nothing to do with
    congestion control."""
    return [
        (measure, control)
        for measure in measures
        for control in (controls[:1] if measure in WITHOUT_CONTROL else controls)
    ]


def plan(
    rivals: Sequence[Rival],
    measures: Sequence[str],
    blocks: int,
    seed: int,
    controls: Sequence[str],
) -> Iterator[Step]:
    """One measurement goes through all relays before the next begins, so that what is compared
    lies close together in time."""
    dice = random.Random(seed)
    of_a_block = rounds(measures, controls)
    for block in range(blocks):
        for measure, control in dice.sample(of_a_block, len(of_a_block)):
            for rival in dice.sample(rivals, len(rivals)):
                if measure in rival.measures and block < BLOCKS_MOST.get(measure, blocks):
                    yield Step(block, measure, rival.name, control)


def await_quiet(cores: set[int], patience: float) -> None:
    """Waits, but not for ever, until others leave the cores alone."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        busy = accounts.busy_seconds(cores)
        time.sleep(QUIET_SECONDS)
        if accounts.busy_seconds(cores) - busy <= QUIET_SHARE * QUIET_SECONDS * len(cores):
            return


def compared(steps: Sequence[Step]) -> list[list[Step]]:
    """Those that are compared with each other: a measurement of a block, of all relays."""
    return [
        list(group)
        for _, group in itertools.groupby(steps, lambda it: (it.block, it.measure, it.control))
    ]


def noise(figures: Sequence[dict[str, Any]]) -> float:
    return max(it["others_share"] for it in figures)


@dataclasses.dataclass
class Run:
    """Every step once; with some `patience` each waits so many seconds for a quiet machine, and
    what was noisy is measured so many times `again`."""

    bench: Bench
    patience: float
    again: int
    figures: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    repeated: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def carry_out(self, steps: Sequence[Step], save: Callable[[int], None]) -> None:
        """`save` is called with how many blocks there are, whenever one more is whole."""
        for block, of_block in itertools.groupby(steps, lambda it: it.block):
            self.carry_out_block(list(of_block), len(steps))
            save(block + 1)
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)

    def carry_out_block(self, steps: Sequence[Step], of: int) -> None:
        for group in compared(steps):
            tries = [[self.take(step, of) for step in group]]
            while noise(tries[-1]) > NOISY and len(tries) <= self.again:
                tries.append([self.take(step, of) for step in group])
            best = min(tries, key=noise)
            self.figures += [{**it, "noisy": noise(best) > NOISY} for it in best]
            self.repeated += [it for one in tries if one is not best for it in one]

    def take(self, step: Step, of: int) -> dict[str, Any]:
        if sys.stderr.isatty():
            done = len(self.figures) + 1
            what = f"{step.measure}, {step.control}, {step.rival}"
            say = f"{done}/{of} block {step.block + 1}: {what}"
            print(f"\r\x1b[K{say}", end="", file=sys.stderr, flush=True)
        await_quiet(set(self.bench.place.cores), self.patience)
        namespace.set_congestion_control(step.control)
        figure = measure_once(self.bench, BY_NAME[step.rival], step.measure)
        namespace.reap_orphans()
        return {**dataclasses.asdict(step), **figure}
