# SPDX-License-Identifier: MIT
"""mHTTP over toy paths in virtual time: the transfer is the client's own, the network is not.

A path has a rate and a round trip, and no slow start. A chunk's first byte comes a round trip after
it was asked for, or behind what was asked for before. The first path is there at once, the others
a round trip after the first chunk is whole. THR is the paths' rate, known from the beginning.
"""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.workloads.mhttp.meter import Meter
from experiments.workloads.mhttp.scheduler import SCHEDULERS
from experiments.workloads.mhttp.transfer import Transfer

MIB = 1 << 20


class Known(Meter):
    """A meter that needs to measure nothing."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._known = rate
        self.thr = rate

    @property
    def rate(self) -> float:
        return self._known


@dataclass(frozen=True)
class Path:
    mbps: float
    rtt_ms: float

    @property
    def rate(self) -> float:
        return self.mbps * 1e6 / 8

    @property
    def rtt_s(self) -> float:
        return self.rtt_ms / 1e3


@dataclass(frozen=True)
class Outcome:
    seconds: float
    peak_mib: float
    mib: tuple[float, ...]  # by path


def run(
    paths: Sequence[Path],
    policy: str,
    chunk: int,
    length: int = 16 * MIB,
    piece: int | None = None,
) -> Outcome:
    """`piece`: bytes come in so many at a time; None: by whole chunks."""
    transfer = Transfer(length, chunk, SCHEDULERS[policy])
    free = [0.0] * len(paths)  # when a path has delivered all that it was asked for
    carried = [0] * len(paths)
    counter = itertools.count()
    events: list[tuple[float, int, int, int]] = []  # time, order, path, bytes that came

    def push(at: float, number: int, size: int) -> None:
        heapq.heappush(events, (at, next(counter), number, size))

    def offer(number: int, now: float) -> None:
        while (part := transfer.ask(number)) is not None:
            begin = max(now + paths[number].rtt_s, free[number])
            step = piece or part.size
            for start in range(0, part.size, step):
                size = min(step, part.size - start)
                push(begin + (start + size) / paths[number].rate, number, size)
            free[number] = begin + part.size / paths[number].rate

    def join(number: int, now: float) -> None:
        transfer.join(number, paths[number].rtt_s, Known(paths[number].rate))
        offer(number, now)

    join(0, 0.0)
    now, opened = 0.0, False
    while events:
        now, _, number, size = heapq.heappop(events)
        if not size:
            join(number, now)
            continue
        transfer.came(number, bytes(size))
        carried[number] += size
        for lane in transfer.lanes:
            offer(lane, now)
        if not opened and transfer.buffer.front >= min(chunk, length):
            opened = True
            for other in range(1, len(paths)):
                push(now + paths[other].rtt_s, other, 0)
    assert transfer.whole and not transfer.plan.waiting
    return Outcome(now, transfer.buffer.peak / MIB, tuple(it / MIB for it in carried))
