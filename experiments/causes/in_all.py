# SPDX-License-Identifier: MIT
"""A page takes as much less time as page and download together were carried faster meanwhile."""

from dataclasses import dataclass
from statistics import median

from experiments.causes.cause import Cause, Seen, explains_ratio
from experiments.causes.units import mbps, three


@dataclass(frozen=True)
class InAll(Cause):
    """`rate`: the measure of it, in Mbit/s. Settings differ in `unit`."""

    rate: str
    unit: str

    def tell(self, seen: Seen) -> str:
        if seen.over is None or seen.paper is None:
            return ""
        both = [
            (over.measured[self.rate], of.measured[self.rate])
            for of, over in seen.pairs(self.unit, self.rate)
        ]
        if not both or not all(of for _, of in both):
            return ""
        expected = median(over / of for over, of in both)
        over, of = (median(it) for it in zip(*both, strict=True))
        return (
            f"Page and download together had {mbps(of)} instead of {mbps(over)}: by that "
            f"{three(expected)} of the time is expected, {three(seen.ours)} was measured, "
            f"{explains_ratio(expected, seen.ours)}. The published {three(seen.paper)} is that of "
            f"{three(1 / seen.paper)} times the rate, or of a page that waited for less."
        )
