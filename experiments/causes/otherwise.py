# SPDX-License-Identifier: MIT
"""A circumstance is a cause where the figure comes out as published without it."""

import math
from dataclasses import dataclass
from typing import Literal

from experiments.causes.cause import OF_INTEREST, Cause, Seen, near
from experiments.causes.units import three
from topologies.parameter import Params


@dataclass(frozen=True)
class Otherwise(Cause):
    """The same in runs of ours with `params` on the first side, which `says` tells."""

    says: str
    params: Params
    expect: Literal["less", "more"]
    than: float

    def tell(self, seen: Seen) -> str:
        value = _answer(seen, self.params)
        if value is None:
            return ""
        holds = value < self.than if self.expect == "less" else value > self.than
        return f"{self.says} it is {three(value)} instead of {three(seen.ours)}, " + (
            "as it should be: that is the cause." if holds else "so that is not the cause."
        )


@dataclass(frozen=True)
class Nearer(Cause):
    """The same in runs of ours with `params` on the first side, which `says` tells: is it what was
    published, or nearer to it than ours?"""

    says: str
    params: Params

    def tell(self, seen: Seen) -> str:
        value = _answer(seen, self.params)
        if value is None or not seen.paper:
            return ""
        if near(seen.paper, value):
            verdict = "which is what was published: that is the cause."
        elif _off(value, seen.paper) < _off(seen.ours, seen.paper) - math.log1p(OF_INTEREST):
            verdict = "nearer to what was published: that is part of the cause."
        else:
            verdict = "no nearer to what was published, so that is not the cause."
        return f"{self.says} it is {three(value)} instead of {three(seen.ours)}, {verdict}"


def _answer(seen: Seen, params: Params) -> float | None:
    """Of these runs in place of the first side's; None where there are none."""
    value = seen.select(params).median(seen.metric)
    if value is None or seen.over is None:
        return value
    beside = seen.over.median(seen.metric)
    return value / beside if beside else None


def _off(value: float, paper: float) -> float:
    """How many times larger or smaller, as a logarithm."""
    return abs(math.log(value / paper)) if value > 0 else math.inf


@dataclass(frozen=True)
class Unused(Cause):
    """What a side has and the other has not was never used: `share` is the measure of its use."""

    share: str
    says: str

    def tell(self, seen: Seen) -> str:
        used = seen.of.median(self.share)
        if used != 0:
            return ""
        return f"{self.says} was 0 in the median run, so nothing differs by it."
