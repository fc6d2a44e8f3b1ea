# SPDX-License-Identifier: MIT
"""Whoever shares a link fairly with downloads has its share of the rate, and no more."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.causes.cause import Cause, Seen, explains
from experiments.causes.units import three
from topologies.parameter import Params

OVER_FLOOR = "over_floor"


@dataclass(frozen=True)
class Fair(Cause):
    """`beside` downloads go on. `others`: what else the other side may have been, by name."""

    beside: int = 1
    others: Mapping[str, Params] = field(default_factory=dict)

    def tell(self, seen: Seen) -> str:
        if seen.over is None or seen.paper is None:
            return ""
        mine, theirs = seen.of.median(OVER_FLOOR), seen.over.median(OVER_FLOOR)
        if mine is None or theirs is None:
            return ""
        share = 1.0 + self.beside
        text = (
            f"Beside {self.beside} download a page has 1/{share:g} of the rate, so it should "
            f"take {share:g} times RTT + size/rate: {three(mine)} times were measured, "
            f"{explains(share, mine)}. The other side took {three(theirs)} times that, so the "
            f"ratio should not be below {three(share / theirs)}; the published {three(seen.paper)} "
            f"asks for {three(share / seen.paper)} times"
        )
        return f"{text}{self._others(seen)}."

    def _others(self, seen: Seen) -> str:
        assert seen.over is not None
        told = []
        for name, params in self.others.items():
            side = seen.select(params)
            took = side.median(OVER_FLOOR) if side.settings else None
            if took is not None and took != seen.over.median(OVER_FLOOR):
                told.append(f"{name} took {three(took)} times")
        return f", and {', '.join(told)}" if told else ""
