# SPDX-License-Identifier: MIT
"""What an object in ranges takes that are asked for one after another, each for a round trip."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, Side, explains_ratio
from experiments.causes.units import percent, seconds, three
from topologies.parameter import Params

HALVINGS = 30


@dataclass(frozen=True)
class Ranges(Cause):
    """`serial`: what serial requests take by a configuration's parameters, with so much of its
    round trips; None where it knows nothing of it."""

    serial: Callable[[Params, float], float | None]

    def tell(self, seen: Seen) -> str:
        if seen.over is None or not seen.over.settings or not seen.of.settings:
            return ""
        both = [self._expected(it) for it in (seen.of, seen.over)]
        expected, least = self._ratio(seen, 1.0), self._ratio(seen, 0.0)
        if expected is None or least is None:
            return ""
        of, over = (seconds(it) for it in both if it is not None)
        text = (
            f"Each range takes a round trip besides its bytes: by that {of} instead of {over} are "
            f"expected, slow start included, a ratio of {three(expected)}; {three(seen.ours)} was "
            f"measured, {explains_ratio(expected, seen.ours)}. Without any round trips it would "
            f"be {three(least)}"
        )
        if seen.paper is None:
            return f"{text}."
        part = self._part(seen, seen.paper)
        if part is None:
            return f"{text}, which is not the published {three(seen.paper)} either."
        return (
            f"{text}; the published {three(seen.paper)} is that of {percent(part)} of the round "
            f"trip here."
        )

    def _expected(self, side: Side, part: float = 1.0) -> float | None:
        return self.serial(side.params, part)

    def _ratio(self, seen: Seen, part: float) -> float | None:
        assert seen.over is not None
        of, over = (self._expected(it, part) for it in (seen.of, seen.over))
        return None if of is None or not over else of / over

    def _part(self, seen: Seen, paper: float) -> float | None:
        """Of the round trips, by which the published ratio comes out; None: by none up to ours."""
        low, high = 0.0, 1.0
        ends = [(self._ratio(seen, it) or 0.0) - paper for it in (low, high)]
        if ends[0] * ends[1] > 0:
            return None
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if ends[0] * ((self._ratio(seen, middle) or 0.0) - paper) <= 0:
                high = middle
            else:
                low = middle
        return high
