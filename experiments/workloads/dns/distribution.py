# SPDX-License-Identifier: MIT
"""How answers' times are spread: which share takes longer, and where that share stays level."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

FLAT = 1.4  # a level ends at a time so many times longer than that at which it began
FEWEST = 3  # queries beyond it, to be one


@dataclass(frozen=True)
class Plateau:
    """`share` of all takes longer than `from_s`, and just as much longer than anything up to
    `to_s`."""

    share: float
    from_s: float
    to_s: float


def ccdf(seconds: Sequence[float], unanswered: int = 0) -> list[tuple[float, float]]:
    """For each time that occurred the share of all queries that takes longer, in order. What was
    given up takes longer than any."""
    if not seconds:
        raise ValueError("no query was answered")
    ordered = sorted(seconds)
    every = len(ordered) + unanswered
    found = {at: (every - done) / every for done, at in enumerate(ordered, 1)}
    return list(found.items())


def plateaus(seconds: Sequence[float], unanswered: int = 0) -> list[Plateau]:
    """The level parts of the curve, the highest first."""
    curve = ccdf(seconds, unanswered)
    fewest = FEWEST / (len(seconds) + unanswered)
    return [
        Plateau(share, here, there)
        for (here, share), (there, _) in pairwise(curve)
        if there >= FLAT * here and share >= fewest
    ]
