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
    return of_ranks(ranks(one), ranks(other))


def of_ranks(a: Sequence[float], b: Sequence[float]) -> float:
    mean = (len(a) - 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return both / spread**0.5 if spread else 0.0


def chance(one: Sequence[float], other: Sequence[float]) -> float:
    """Of a correlation as strong, if the values were dealt out at random."""
    there, dealt, draw = ranks(one), ranks(other), random.Random(1)
    found, as_strong = abs(of_ranks(there, dealt)), 0
    for _ in range(SHUFFLES):
        draw.shuffle(dealt)
        as_strong += abs(of_ranks(there, dealt)) >= found - 1e-9
    return as_strong / SHUFFLES


@dataclass(frozen=True)
class GoesWith(Cause):
    """By how much more a side has of `measure`. Settings differ in `unit`."""

    measure: str
    says: str
    unit: str

    def tell(self, seen: Seen) -> str:
        both = [
            (of.measured, over.measured)
            for of, over in seen.pairs(self.unit, self.measure, seen.metric)
            if of.measured[seen.metric] and over.measured[seen.metric]
        ]
        ratios = [of[seen.metric] / over[seen.metric] for of, over in both]
        more = [of[self.measure] - over[self.measure] for of, over in both]
        if len(ratios) < LEAST:
            return ""
        rho, by_chance = spearman(more, ratios), chance(more, ratios)
        which = "larger" if rho > 0 else "smaller"
        text = (
            f"Over {len(ratios)} settings the ratio is {which} where there is more of "
            f"{self.says} (rank correlation {three(rho)}, {three(by_chance)} by chance)"
        )
        return f"{text}." if by_chance < RARE else f"{text}, which decides nothing."
