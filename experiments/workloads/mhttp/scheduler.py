# SPDX-License-Identifier: MIT
"""Which chunk a connection asks for next: functions of what is known, without sockets or clock.

next      the first chunk not yet asked for: the published baseline
T         the T-th, T = floor(max THR / own THR), nothing if there are not so many: as published
ahead     the first one, asked for a round trip before the last one ends
deadline  the same, but no chunk that another connection would deliver sooner

A connection that delivered nothing yet has no estimate. T would be infinite and the connection
never used, so it asks for the first chunk; the publication does not say what it does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """What a scheduler knows of a connection."""

    thr: float  # bytes a second, as published; 0: nothing measured
    rate: float  # of the last half second in which it was used
    rtt_s: float
    left: int  # bytes asked for that did not come yet

    def free_s(self) -> float:
        """When a chunk's first byte could come, if it is asked for now."""
        return max(self.rtt_s, self.left / self.rate)

    def reach(self) -> float:
        """The bytes that come in a round trip: with fewer left it is time to ask."""
        return max(self.thr, self.rate) * self.rtt_s


Choose = Callable[[View, Sequence[View], Sequence[int]], int | None]


@dataclass(frozen=True)
class Scheduler:
    """`choose(own, others, sizes)`: an index into the chunks not yet asked for, if any of them."""

    name: str
    choose: Choose
    early: bool  # asks while the last chunk is under way

    def wants(self, own: View) -> bool:
        """Whether it is time to ask."""
        return not own.left or (self.early and own.left <= own.reach())


def choose_next(own: View, others: Sequence[View], sizes: Sequence[int]) -> int | None:
    return 0 if sizes else None


def choose_t(own: View, others: Sequence[View], sizes: Sequence[int]) -> int | None:
    """Chunks are left to another connection only while that is at work, so somebody always is.

    The estimate of a connection that is idle for 10 s is 0 to the last bit. T is 1 whenever no
    connection at work has more, 0 or not.
    """
    if not own.rate:
        return choose_next(own, others, sizes)
    best = max([own.thr, *(it.thr for it in others if it.left)])
    if best == own.thr:
        return choose_next(own, others, sizes)
    if best >= own.thr * (len(sizes) + 1):
        return None  # where own.thr is 0, too
    turn = int(best / own.thr)  # rounded, it may be one more than that bound allows
    return turn - 1 if turn <= len(sizes) else None


def choose_deadline(own: View, others: Sequence[View], sizes: Sequence[int]) -> int | None:
    """The first chunk for which the others, taking those before it, would need longer."""
    if not own.rate:
        return choose_next(own, others, sizes)
    rivals = [it for it in others if it.rate]
    free = [it.free_s() for it in rivals]
    for index, size in enumerate(sizes):
        ends = [begin + size / it.rate for begin, it in zip(free, rivals, strict=True)]
        if not ends or own.free_s() + size / own.rate <= min(ends):
            return index
        first = ends.index(min(ends))
        free[first] = ends[first]
    return None


SCHEDULERS = {
    it.name: it
    for it in (
        Scheduler("next", choose_next, early=False),
        Scheduler("T", choose_t, early=False),
        Scheduler("ahead", choose_next, early=True),
        Scheduler("deadline", choose_deadline, early=True),
    )
}
