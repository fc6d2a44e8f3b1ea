# SPDX-License-Identifier: MIT
"""How wrong the rate of a layer is that passes everything in bursts: sqrt(T / w - 1)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, near
from experiments.causes.units import ms, three


@dataclass(frozen=True)
class Bursts(Cause):
    """The root mean square of the relative error in windows of `window_s`. `shorter`: the measure
    of the same in windows of `shorter_s`, which a layer that passes all at once has to fit, too."""

    window_s: float
    shorter: str
    shorter_s: float

    def _apart(self, error: float) -> float:
        return self.window_s * (1 + error**2)

    def tell(self, seen: Seen) -> str:
        measured = seen.of.median(self.shorter)
        if seen.paper is None or not measured:
            return ""
        mine, theirs = self._apart(seen.ours), self._apart(seen.paper)
        expected = math.sqrt(max(0.0, mine / self.shorter_s - 1))
        fits = near(expected, measured)
        return (
            f"A layer that passes all its bytes at once every T is wrong by √(T/w - 1) in windows "
            f"of w. The published {three(seen.paper)} at {ms(self.window_s)} is that of bursts "
            f"{ms(theirs)} apart. Ours, {three(seen.ours)}, would be of {ms(mine)}, and then "
            f"{three(expected)} at {ms(self.shorter_s)}, where {three(measured)} was measured: "
            + (
                "it is passed in bursts, too, but nearer to each other."
                if fits
                else "here nothing is passed in such bursts."
            )
        )


@dataclass(frozen=True)
class OfBoth(Cause):
    """Of the ratio of two such errors: each has its own cause, in its own row."""

    published: Mapping[str, float]  # errors, by their measures

    def tell(self, seen: Seen) -> str:
        ours = [seen.of.median(name) for name in self.published]
        if not ours or any(it is None for it in ours):
            return ""
        told = " / ".join(three(it) for it in ours if it is not None)
        there = " / ".join(map(three, self.published.values()))
        return f"Ours is {told}, published {there}: the cause is that of the errors themselves."
