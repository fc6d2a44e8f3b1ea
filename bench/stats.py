# SPDX-License-Identifier: MIT
"""Medians with their spread, and ratios that stay within a block.

A machine's speed drifts from minute to minute, so a figure of one relay is only ever divided by
that of another from the same block.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVEL = 0.95
# n values have the median of what they are drawn from between them in 1 - 2^(1-n) of all cases:
# 93.75 % for 5, 96.875 % for 6.
LEAST = 6


def beyond(count: int) -> int:
    """How many values at each end of so many in order lie outside an interval for the median.

    The true median is below the k-th smallest with the probability that of `count` throws of a coin
    fewer than k show heads, whatever the values are drawn from.
    """
    left, outside = 0, 0.0
    while left < count // 2:
        outside += 2 * math.comb(count, left) / 2**count
        if outside > 1 - LEVEL:
            break
        left += 1
    return max(0, left - 1)


@dataclass(frozen=True)
class Spread:
    """What several repetitions gave: `low` to `high` is a 95 % interval of the median, or all of
    them where they are fewer than LEAST."""

    median: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> "Spread | None":
        if not values:
            return None
        outside, order = beyond(len(values)), sorted(values)
        median = statistics.median(values)
        return Spread(median, order[outside], order[-1 - outside], len(values))


def ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Block by block; a block in which one of the two failed has no ratio."""
    return [ours[block] / theirs[block] for block in sorted(ours) if theirs.get(block)]


def differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    return [ours[block] - theirs[block] for block in sorted(ours) if block in theirs]
