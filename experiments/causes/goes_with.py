# SPDX-License-Identifier: MIT
"""What a ratio goes with from setting to setting: Spearman's rank correlation, and its chance."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen
from experiments.causes.units import three

SHUFFLES = 5000
RARE = 0.05
LEAST = 5  # settings


def ranks(values: Sequence[float]) -> list[float]:
    """From 0; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(it) + (ordered.count(it) - 1) / 2 for it in values]


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    a, b = ranks(one), ranks(other)
    mean = (len(a) - 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return both / spread**0.5 if spread else 0.0


def chance(one: Sequence[float], other: Sequence[float]) -> float:
    """Of a correlation as strong, if the values were dealt out at random."""
    found, dealt, draw = abs(spearman(one, other)), list(other), random.Random(1)
    as_strong = 0
    for _ in range(SHUFFLES):
        draw.shuffle(dealt)
        as_strong += abs(spearman(one, dealt)) >= found - 1e-9
    return as_strong / SHUFFLES


@dataclass(frozen=True)
class GoesWith(Cause):
    """By how much more a side has of `measure`. Settings differ in `unit`."""

    measure: str
    says: str
    unit: str

    def tell(self, seen: Seen) -> str:
        if seen.over is None:
            return ""
        others = seen.over.by(self.unit)
        ratios, more = [], []
        for key, one in seen.of.by(self.unit).items():
            both = [one.measured, others[key].measured] if key in others else []
            if all(it.get(seen.metric) and self.measure in it for it in both) and both:
                ratios.append(both[0][seen.metric] / both[1][seen.metric])
                more.append(both[0][self.measure] - both[1][self.measure])
        if len(ratios) < LEAST:
            return ""
        rho, by_chance = spearman(more, ratios), chance(more, ratios)
        which = "larger" if rho > 0 else "smaller"
        text = (
            f"Over {len(ratios)} settings the ratio is {which} where there is more of "
            f"{self.says} (rank correlation {three(rho)}, {three(by_chance)} by chance)"
        )
        return f"{text}." if by_chance < RARE else f"{text}, which decides nothing."
