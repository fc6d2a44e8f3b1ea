# SPDX-License-Identifier: MIT
"""The peak: the highest rate at which answers come as fast as queries go.

The rate is raised in coarse steps until two of them in a row have too few answers, and again, from
the last good one on, in fine steps until three have, each of them twice. One step with too few is
no end: a machine that others use halts for some milliseconds now and then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

ANSWERED = 0.99  # of the queries, as long as the server keeps up
COARSE, FINE = 1.4, 1.03
COARSE_END, FINE_END = 2, 3  # rates in a row under it
FINE_TRIES = 2  # until a rate counts as one of them
LOWEST = 10.0  # queries a second: who cannot answer these has no peak


@dataclass(frozen=True)
class Step:
    """What came of one rate. `due`, `sent` and `answered` are counted in the same time; an answer
    counts when it comes."""

    rate: float
    due: int
    sent: int
    answered: int

    def kept_up(self) -> bool:
        return self.answered >= ANSWERED * self.due

    def was_asked(self) -> bool:
        """False: who asks was too slow, so it was not the server's limit that showed."""
        return self.sent >= ANSWERED * self.due


Ask = Callable[[float], Step]


@dataclass(frozen=True)
class Peak:
    """`steps`: all, in order. `asked`: the queries of the first rate beyond it were really sent."""

    rate: float
    asked: bool
    steps: tuple[Step, ...]


class NoPeak(Exception):
    pass


@dataclass
class Climb:
    """`best`: the highest rate that was kept up with; `beyond`: the first one behind that."""

    steps: list[Step] = field(default_factory=list)
    best: Step | None = None
    beyond: Step | None = None


def climb(ask: Ask, rate: float, factor: float, end: int, tries: int = 1) -> Climb:
    """From `rate` up, until `end` rates in a row were too high."""
    found, under = Climb(), 0
    while under < end:
        step = tried(ask, rate, tries, found.steps)
        if step.kept_up():
            found.best, found.beyond, under = step, None, 0
        else:
            found.beyond, under = found.beyond or step, under + 1
        rate *= factor
    return found


def tried(ask: Ask, rate: float, tries: int, steps: list[Step]) -> Step:
    """The first step that keeps up, or the last one."""
    for _ in range(tries):
        steps.append(ask(rate))
        if steps[-1].kept_up():
            break
    return steps[-1]


def find(ask: Ask, first: float) -> Peak:
    """`first`: a rate that is hoped to be low enough; where it is not, lower ones are tried."""
    steps: list[Step] = []
    start = first
    while start >= LOWEST:
        coarse = climb(ask, start, COARSE, COARSE_END)
        steps += coarse.steps
        if coarse.best:
            fine = climb(ask, coarse.best.rate, FINE, FINE_END, FINE_TRIES)
            steps += fine.steps
            if fine.best and fine.beyond:
                return Peak(fine.best.rate, fine.beyond.was_asked(), tuple(steps))
        start /= 4
    raise NoPeak(f"not even {LOWEST:g} queries a second have their answers")
