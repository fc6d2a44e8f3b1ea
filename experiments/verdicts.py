# SPDX-License-Identifier: MIT
"""What an estimate says of a published figure: its direction, and its size.

Both verdicts look at the whole interval. More data narrow an interval, so they can turn "not
decided" into yes or no; wider data never make a yes.
"""

import math
from dataclasses import dataclass
from typing import Literal

from experiments.statistics import Estimate

# "nil": wholly within the smallest effect of interest, to whichever side.
Verdict = Literal["yes", "no", "unclear", "nil", "few", "none"]
Size = Literal["yes", "weaker", "stronger", "other", "smaller", "larger", "unclear", "few", "none"]
ANOTHER: tuple[Size, ...] = ("weaker", "stronger", "other", "smaller", "larger")


def is_another(direction: str, size: str | None) -> bool:
    """Than published: what is not decided is not."""
    return direction == "no" or size in ANOTHER


def verdict(
    got: Estimate,
    expect: Literal["less", "more", "same"],
    than: float = 1.0,
    within: float = 0.1,
) -> Verdict:
    """Does the whole interval lie where it was expected?

    "no": it lies wholly elsewhere. "unclear": it reaches over the border, which these runs
    cannot decide. "few": fewer runs than an interval needs. "none": no run at all.
    """
    if got.n == 0:
        return "none"
    if not got.enough:
        return "few"
    if expect == "same":
        if 2 * got.failed >= got.n:  # two failures are alike, which shows nothing
            return "unclear"
        bottom, top = sorted((than * (1 - within), than * (1 + within)))
        if bottom <= got.low and got.high <= top:
            return "yes"
        return "no" if got.high < bottom or got.low > top else "unclear"
    below, above = got.high < than, got.low > than
    if expect == "more":
        below, above = above, below
    if below:
        return "yes"
    return "no" if above else "unclear"


def is_nil(got: Estimate, than: float, matters: float) -> bool:
    """Whether the interval lies wholly within the smallest effect of interest."""
    bottom, top = sorted((than * (1 - matters), than * (1 + matters)))
    return got.enough and bottom < got.low and got.high < top


@dataclass(frozen=True)
class Published:
    """A published value, and how far from it ours may be to be of the same size."""

    value: float
    # What no effect is, in the same terms: 1 for a ratio, 0 for a difference. None: a value that
    # stands alone, such as a time; it is no effect, and ours is merely smaller or larger.
    none: float | None = 1.0
    margin: float = 0.1  # a share of the effect
    least: float = 0.0  # the smallest effect of interest: a share; of a difference in its unit
    read_to: float = 0.0  # what a published 0 may be: half of the last place that was printed

    @property
    def reach(self) -> tuple[float, float]:
        """From where to where a value is as large as this one.

        The margin of a ratio is a share of the effect, on a logarithmic scale: 10 % of a ratio of
        0.95 would hold no effect at all, too. It is never more than that share of the ratio, which
        for 0.02 would be half of it, and never less than what is of interest.
        """
        if self.none == 0:
            by = max(self.margin * abs(self.value), self.least)
            return self.value - by, self.value + by
        if self.value == 0:
            return -self.read_to, self.read_to
        by = math.log1p(self.margin)
        if self.none is not None:
            by = min(by, self.margin * abs(math.log(self.value / self.none)))
        by = math.exp(max(by, math.log1p(self.least)))
        return self.value / by, self.value * by

    def size(self, got: Estimate) -> Size:
        """Is ours as large? "yes": the whole interval lies within reach. "unclear": some of it
        does. Else it lies wholly beside: nearer to no effect, further from it, or beyond it."""
        if got.n == 0:
            return "none"
        if not got.enough:
            return "few"
        bottom, top = self.reach
        if bottom <= got.low and got.high <= top:
            return "yes"
        if got.low <= top and got.high >= bottom:
            return "unclear"
        return self._beside(got, below=got.high < bottom)

    def _beside(self, got: Estimate, *, below: bool) -> Size:
        if self.none is None:
            return "smaller" if below else "larger"
        if self.value == self.none or below == (self.value < self.none):
            return "stronger"
        by = self.least if self.none == 0 else self.least * self.none
        beyond = got.low > self.none and got.median >= self.none + by
        if below:
            beyond = got.high < self.none and got.median <= self.none - by
        return "other" if beyond else "weaker"
