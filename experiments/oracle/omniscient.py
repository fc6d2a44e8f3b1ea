# SPDX-License-Identifier: MIT
"""What could be done for a few messages by somebody who knows all that will arrive.

Every order of the messages is tried. In an order each message in its turn takes all that those
before it leave of every path, from its arrival until it is complete, so that its parts arrive
together. The best order is the one with the least mean time.
"""

from collections.abc import Sequence

from experiments.oracle.fluid import Message, check
from experiments.oracle.path import OracleError, Path, nearest_first

MOST_MESSAGES = 7

Spans = tuple[tuple[float, float], ...]  # when a path is free, in order


def solve(paths: Sequence[Path], messages: Sequence[Message]) -> tuple[list[float], list[int]]:
    """When each message is complete in the best order, and that order."""
    if len(messages) > MOST_MESSAGES:
        raise OracleError(f"{len(messages)} messages: at most {MOST_MESSAGES} for all their orders")
    check(messages)
    if not messages:
        return [], []
    search = _Search(nearest_first(paths), messages)
    free: list[Spans] = [((0.0, float("inf")),) for _ in paths]
    search.go_on(free, [], {}, 0.0)
    return [search.best[i] for i in range(len(messages))], search.order


class _Search:
    def __init__(self, paths: list[Path], messages: Sequence[Message]) -> None:
        self.paths = paths
        self.messages = messages
        self.total = float("inf")
        self.best: dict[int, float] = {}
        self.order: list[int] = []

    def go_on(
        self, free: list[Spans], order: list[int], found: dict[int, float], total: float
    ) -> None:
        """All orders that begin like this one; those that are worse by now are left out."""
        if total >= self.total:
            return
        if len(order) == len(self.messages):
            self.total, self.best, self.order = total, found, order
            return
        for i, message in enumerate(self.messages):
            if i in found:
                continue
            done = self._soonest(free, message)
            left = [
                _without(spans, message.arrival, done - path.delay)
                for spans, path in zip(free, self.paths, strict=True)
            ]
            took = done - message.arrival
            self.go_on(left, [*order, i], {**found, i: done}, total + took)

    def _soonest(self, free: list[Spans], message: Message) -> float:
        """When what is free of the paths has carried a message: its last byte arrives."""
        changes: list[tuple[float, float]] = []  # when bytes begin to arrive faster, or slower
        for spans, path in zip(free, self.paths, strict=True):
            for start, end in spans:
                start = max(start, message.arrival)
                if start < end:
                    changes.append((start + path.delay, path.rate))
                    changes.append((end + path.delay, -path.rate))
        changes.sort()
        rate, left, last = 0.0, message.size, message.arrival
        for at, change in changes:
            if rate > 0 and left <= rate * (at - last):
                break
            left -= rate * (at - last) if rate > 0 else 0.0
            rate, last = rate + change, at
            rate = 0.0 if abs(rate) < 1e-6 else rate
        return last + left / rate


def _without(spans: Spans, start: float, end: float) -> Spans:
    if end <= start:
        return spans
    left = []
    for low, high in spans:
        if low < start:
            left.append((low, min(high, start)))
        if high > end:
            left.append((max(low, end), high))
    return tuple(left)
