# SPDX-License-Identifier: MIT
"""An object under way over several connections: who is asked for what, and what may leave.

It knows no socket and no clock: whoever drives it tells what came and when 20 ms are over. The
client does so by the clock, tests in virtual time.
"""

from collections import deque
from dataclasses import dataclass, field

from experiments.workloads.mhttp.buffer import Buffer
from experiments.workloads.mhttp.meter import Meter
from experiments.workloads.mhttp.plan import Plan, Range
from experiments.workloads.mhttp.scheduler import Scheduler, View

MOST_HELD = 64 << 20


@dataclass
class Lane:
    """One connection: what it was asked for and did not deliver yet, in order."""

    rtt_s: float
    meter: Meter
    asked: deque[Range] = field(default_factory=deque)

    @property
    def left(self) -> int:
        return sum(it.size for it in self.asked)

    def view(self) -> View:
        return View(self.meter.thr, self.meter.rate, self.rtt_s, self.left)


class Transfer:
    """Lanes join and are lost; each byte is asked of one lane at a time."""

    def __init__(
        self, length: int, chunk_bytes: int, scheduler: Scheduler, most_held: int = MOST_HELD
    ) -> None:
        self.length = length
        self.scheduler = scheduler
        self.most_held = most_held
        self.plan = Plan(length, chunk_bytes)
        self.buffer = Buffer()
        self.lanes: dict[int, Lane] = {}

    @property
    def whole(self) -> bool:
        return self.buffer.front == self.length

    def join(self, number: int, rtt_s: float, meter: Meter | None = None) -> None:
        self.lanes[number] = Lane(rtt_s, meter or Meter())

    def ask_first(self, number: int) -> Range:
        """The first chunk, which was asked for before the length was known."""
        return self._ask(number, 0)

    def ask(self, number: int) -> Range | None:
        """What this lane is to ask for now, if anything; from now on it is under way."""
        own = self.lanes[number].view()
        if not self.plan.waiting or not self.scheduler.wants(own):
            return None
        index = self._index(number, own)
        return None if index is None else self._ask(number, index)

    def _index(self, number: int, own: View) -> int | None:
        """With too much in the buffer only what it waits for is asked for."""
        if self.buffer.held > self.most_held:
            return 0 if self.plan.waiting[0].start == self.buffer.front else None
        others = [lane.view() for key, lane in self.lanes.items() if key != number]
        return self.scheduler.choose(own, others, [it.size for it in self.plan.waiting])

    def _ask(self, number: int, index: int) -> Range:
        part = self.plan.take(index)
        self.lanes[number].asked.append(part)
        return part

    def came(self, number: int, data: bytes) -> list[bytes]:
        """Bytes of what this lane was asked for first; what may leave now."""
        lane = self.lanes[number]
        part = lane.asked.popleft()
        assert 0 < len(data) <= part.size, f"{len(data)} bytes of {part}"
        if len(data) < part.size:
            lane.asked.appendleft(Range(part.start + len(data), part.end))
        lane.meter.came(len(data))
        return self.buffer.put(part.start, data)

    def lost(self, number: int) -> None:
        """What it still owed is to be asked of another."""
        for part in self.lanes.pop(number).asked:
            self.plan.give_back(part)

    def tick(self) -> None:
        for lane in self.lanes.values():
            lane.meter.tick(bool(lane.asked))
