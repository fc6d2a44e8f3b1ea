# SPDX-License-Identifier: MIT
"""The receiver's message number dictionary: which numbers of a round were inserted.

Numbers come almost in order, so most are below the smallest absent one or little above it.
"""

import bisect

WIDTH = 64


class Dictionary:
    """`smallest`: the smallest number that is absent. The `width` numbers after it have a bit each.
    Those after these are intervals, sorted, so that one is found in O(log n)."""

    def __init__(self, width: int = WIDTH) -> None:
        self.smallest = 0
        self._width = width
        self._bits = 0  # the lowest one is of smallest + 1
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        if number <= self.smallest:
            return number < self.smallest
        if number <= self.smallest + self._width:
            return bool(self._bits >> number - self.smallest - 1 & 1)
        at = bisect.bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def is_full_range(self, number: int) -> bool:
        """Whether all smaller numbers were inserted."""
        return number <= self.smallest

    def insert(self, number: int) -> None:
        if number in self:
            return
        if number > self.smallest + self._width:
            self._insert_interval(number)
        elif number > self.smallest:
            self._bits |= 1 << number - self.smallest - 1
        else:
            self._slide()

    def clear(self) -> None:
        self.smallest = self._bits = 0
        self._firsts, self._lasts = [], []

    def bits(self) -> str:
        """From smallest + 1 on."""
        return "".join(str(self._bits >> at & 1) for at in range(self._width))

    def intervals(self) -> list[tuple[int, int]]:
        return list(zip(self._firsts, self._lasts, strict=True))

    def _slide(self) -> None:
        """The smallest one is no longer absent."""
        present = True
        while present:
            self.smallest += 1
            present = bool(self._bits & 1)
            self._bits >>= 1
            if self._take(self.smallest + self._width):
                self._bits |= 1 << self._width - 1

    def _take(self, number: int) -> bool:
        """The bits reach this number now; whether it was in an interval, which it leaves."""
        if not self._firsts or self._firsts[0] != number:
            return False
        self._firsts[0] += 1
        if self._firsts[0] > self._lasts[0]:
            del self._firsts[0], self._lasts[0]
        return True

    def _insert_interval(self, number: int) -> None:
        at = bisect.bisect_right(self._firsts, number)
        behind = at > 0 and self._lasts[at - 1] == number - 1
        before = at < len(self._firsts) and self._firsts[at] == number + 1
        if behind and before:
            self._lasts[at - 1] = self._lasts[at]
            del self._firsts[at], self._lasts[at]
        elif behind:
            self._lasts[at - 1] = number
        elif before:
            self._firsts[at] = number
        else:
            self._firsts.insert(at, number)
            self._lasts.insert(at, number)
