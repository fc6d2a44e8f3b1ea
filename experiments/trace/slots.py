# SPDX-License-Identifier: MIT
"""The seconds of a session: how many flows carry data in each, and by how much round trips grew.

    I(s) = mean of RTT(p) - least RTT of p's flow, over the client's data packets p sent in slot s

A flow's least round trip is known when the flow is over, so a slot keeps sums: it is bounded by
the flows and seconds of a capture, whatever the number of packets. Slots in which as much as
TRIVIAL came down are left out, since the downlink's queue would be in their round trips.
"""

from collections import Counter
from dataclasses import dataclass, field

from experiments.trace.bursts import DOWN, UP
from experiments.trace.capture import SECOND
from experiments.trace.flow import KINDS, Flow

SLOT_NS = SECOND
TRIVIAL = 5000  # bytes


@dataclass
class Growth:
    """Of one slot and one kind of flow."""

    up: int  # bytes that the client sent in the slot, of every kind
    samples: int = 0
    total_ns: int = 0  # by which their round trips are over the least of their flows

    @property
    def mean_s(self) -> float:
        return self.total_ns / self.samples / SECOND


@dataclass
class Slots:
    """Of all sessions of a capture, numbered through."""

    busy: dict[str, Counter[int]] = field(  # by kind: slots by the number of flows with data
        default_factory=lambda: {kind: Counter() for kind in KINDS}
    )
    quiet_up: dict[int, int] = field(default_factory=dict)  # slots for I(s): bytes up
    growth: dict[str, dict[int, Growth]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    count: int = 0
    now: int = -1  # the number of the present one
    _first: int = 0  # the number of the session's first
    _began_ns: int = 0
    _ends_ns: int = 0
    _bytes: list[int] = field(default_factory=lambda: [0, 0])
    _flows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def begin(self, time_ns: int) -> None:
        """A session begins."""
        self.end()
        self._first = self.now = self.count
        self._began_ns = time_ns
        self._ends_ns = time_ns + SLOT_NS
        self.count += 1

    def advance(self, time_ns: int) -> None:
        """To the slot that this time lies in."""
        if time_ns < self._ends_ns:
            return
        self._close()
        number = (time_ns - self._began_ns) // SLOT_NS
        silent = self._first + number - self.now - 1
        for kind in KINDS:
            self.busy[kind][0] += silent
        self.now = self._first + number
        self.count = self.now + 1
        self._ends_ns = self._began_ns + (number + 1) * SLOT_NS

    def end(self) -> None:
        """The session, if there was one, is over."""
        if self.now >= 0:
            self._close()
            self.now = -1

    def carry(self, way: int, payload: int) -> None:
        self._bytes[way] += payload

    def use(self, flow: Flow) -> None:
        """A flow carries data."""
        if flow.busy_in != self.now:
            flow.busy_in = self.now
            self._flows[flow.kind] += 1

    def add(self, flow: Flow) -> None:
        """The round trips of a flow that is over; after the session is."""
        least = flow.trips.least_ns
        if least is None:
            return
        growth = self.growth[flow.kind]
        for number, (samples, total_ns) in flow.trips.by_slot.items():
            if number not in self.quiet_up:
                continue
            found = growth.setdefault(number, Growth(self.quiet_up[number]))
            found.samples += samples
            found.total_ns += total_ns - samples * least

    def _close(self) -> None:
        for kind, flows in self._flows.items():
            self.busy[kind][flows] += 1
            self._flows[kind] = 0
        if self._bytes[UP] and self._bytes[DOWN] < TRIVIAL:
            self.quiet_up[self.now] = self._bytes[UP]
        self._bytes = [0, 0]
