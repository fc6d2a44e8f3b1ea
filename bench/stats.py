# SPDX-License-Identifier: MIT
"""Medians with their spread, and ratios that stay within a block.

A machine's speed drifts from minute to minute, so a figure of one relay is only ever divided by
that of another from the same block.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """What several repetitions gave."""

    median: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> "Spread | None":
        if not values:
            return None
        return Spread(statistics.median(values), min(values), max(values), len(values))


def ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Block by block; a block in which one of the two failed has no ratio."""
    return [ours[block] / theirs[block] for block in sorted(ours) if theirs.get(block)]


def differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    return [ours[block] - theirs[block] for block in sorted(ours) if block in theirs]
