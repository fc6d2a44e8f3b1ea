# SPDX-License-Identifier: MIT
"""A circumstance is a cause where the figure comes out as published without it."""

from dataclasses import dataclass
from typing import Literal

from experiments.causes.cause import Cause, Seen
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
        side = seen.select(self.params)
        value = side.median(seen.metric) if side.settings else None
        if value is not None and seen.over is not None:
            beside = seen.over.median(seen.metric)
            value = value / beside if beside else None
        if value is None:
            return ""
        holds = value < self.than if self.expect == "less" else value > self.than
        return f"{self.says} it is {three(value)} instead of {three(seen.ours)}, " + (
            "as published: that is the cause." if holds else "so that is not the cause."
        )


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
