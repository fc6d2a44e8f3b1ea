# SPDX-License-Identifier: MIT
"""What a cause is, and what it is told of a claim and of the runs that answer it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from topologies.parameter import Params, Value

NEAR = 0.15  # a law explains what was measured if it comes as near to it
OF_INTEREST = 0.05  # a ratio nearer to 1 is no effect; two that are so near are alike


@dataclass(frozen=True)
class Setting:
    """A configuration: its parameters, and the median of each number that its runs measured."""

    params: Params
    measured: Mapping[str, float]


@dataclass(frozen=True)
class Side:
    """One side of what is compared, which may be of several settings, such as pages."""

    settings: Sequence[Setting]

    @property
    def params(self) -> Params:
        """Of the first; those in which the settings differ mean nothing here."""
        return self.settings[0].params if self.settings else {}

    def median(self, name: str) -> float | None:
        """Of the settings' medians; None where one has none."""
        found = [it.measured.get(name) for it in self.settings]
        told = [it for it in found if it is not None]
        return median(told) if told and len(told) == len(found) else None

    def by(self, name: str) -> dict[Value, Setting]:
        return {it.params.get(name): it for it in self.settings}


@dataclass(frozen=True)
class Seen:
    """A claim's two sides, and what was published. `ours` is the answer: a ratio of two sides."""

    metric: str
    ours: float
    paper: float | None
    paper_sides: tuple[float | None, float | None]
    of: Side
    over: Side | None
    select: Callable[[Params], Side]  # other runs of the same results

    def both(self) -> Iterator[tuple[Side, float | None]]:
        """Each side with its published value, what is compared with first."""
        first, second = self.paper_sides
        if self.over is not None:
            yield self.over, second
            yield self.of, first
        else:
            yield self.of, self.paper

    def pairs(self, unit: str, *names: str) -> list[tuple[Setting, Setting]]:
        """Settings of the first side, each with the one of the second that has the same `unit`,
        where both measured all of these."""
        others = self.over.by(unit) if self.over is not None else {}
        both = [(it, others[key]) for key, it in self.of.by(unit).items() if key in others]
        return [it for it in both if all(name in one.measured for one in it for name in names)]


class Cause(ABC):
    """A law. Subclasses are frozen dataclasses: what they hold is of the claim."""

    @abstractmethod
    def tell(self, seen: Seen) -> str:
        """In whole sentences; empty where it has nothing to say of these runs."""


def near(expected: float, measured: float) -> bool:
    return abs(expected / measured - 1) <= NEAR if measured else expected == measured


def explained(fits: bool) -> str:
    """The end of a sentence in which what is expected and what was measured stand."""
    return "which explains ours" if fits else "which does not explain ours"


def explains(expected: float, measured: float) -> str:
    return explained(near(expected, measured))


def explains_ratio(expected: float, measured: float) -> str:
    """The same of ratios, where what counts is how far both are from no effect."""
    if not expected > 0 or not measured > 0:
        return explains(expected, measured)
    one, other = math.log(expected), math.log(measured)
    if abs(one - other) <= max(math.log1p(OF_INTEREST), NEAR * abs(one)):
        return explained(True)
    if one * other > 0 and min(abs(one), abs(other)) > math.log1p(OF_INTEREST):
        return "which explains that there is an effect, not its size"
    return explained(False)


def number(params: Params, name: str, default: float = 0.0) -> float:
    value: Any = params.get(name)
    return default if value is None else float(value)
