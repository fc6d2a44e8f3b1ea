# SPDX-License-Identifier: MIT
"""What a page saves of round trips is saved before its first file is there; the rest is bytes."""

from dataclasses import dataclass
from statistics import median

from experiments.causes.cause import Cause, Seen, explains_ratio
from experiments.causes.units import percent, seconds, three


@dataclass(frozen=True)
class Before(Cause):
    """`until`: the measure of when that file is there. Settings differ in `unit`."""

    until: str
    unit: str

    def tell(self, seen: Seen) -> str:
        if seen.over is None or seen.paper is None:
            return ""
        pairs = seen.pairs(self.unit, self.until)
        if not pairs:
            return ""
        saved = [over.measured[self.until] - of.measured[self.until] for of, over in pairs]
        shares = [
            one / over.measured[seen.metric] for one, (_, over) in zip(saved, pairs, strict=True)
        ]
        expected = 1 - median(shares)
        took = median(saved) / (1 - seen.paper) if seen.paper < 1 else 0.0
        text = (
            f"The HTML is there {seconds(median(saved))} sooner, {percent(median(shares))} of a "
            f"page's time, and its files come at the same rate: {three(expected)} expected, "
            f"{three(seen.ours)} measured, {explains_ratio(expected, seen.ours)}."
        )
        if not took:
            return text
        return (
            f"{text} The published {three(seen.paper)} is that of pages that take "
            f"{seconds(took)} in all, if as much is saved of them."
        )
