# SPDX-License-Identifier: MIT
"""The traffic of one capture: its sessions, its flows and the slots of its sessions.

Of a flow no more is kept than sums, and what it sent last; memory follows the number of flows.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from experiments.trace.bursts import DOWN, UP
from experiments.trace.capture import SECOND, Capture
from experiments.trace.flow import Ends, Flow
from experiments.trace.packet import READ, TCP, TOLD, link_name, parse, reverse
from experiments.trace.slots import Slots

IDLE_NS = 60 * SECOND  # without any packet for so long, a session is over
EVERY = 1 << 14  # packets between two words on how far it is


@dataclass
class Session:
    began_ns: int
    last_ns: int
    payload: list[int] = field(default_factory=lambda: [0, 0])  # of TCP and UDP, by direction


@dataclass
class Trace:
    ends: Ends = field(default_factory=Ends)
    sessions: list[Session] = field(default_factory=list)
    over: list[Flow] = field(default_factory=list)  # whose ports another flow took
    slots: Slots = field(default_factory=Slots)
    skipped: Counter[str] = field(default_factory=Counter)  # packets, by packet.SKIPPED
    packets: int = 0
    udp_packets: int = 0
    cut: int = 0  # packets of which not all was captured
    earlier: int = 0  # packets with a time before that of the one in front of them
    _now_ns: int = 0
    _flows: dict[bytes, tuple[Flow, int]] = field(default_factory=dict)  # either way: direction
    _ways: dict[bytes, int] = field(default_factory=dict)  # of UDP

    def read(self, capture: Capture, watch: Callable[[], None] = lambda: None) -> None:
        """All of a file. Raises CaptureError. `watch` is called from time to time."""
        seen = -1
        for time_ns, link, frame, length in capture.records():
            if link != seen:
                if link not in READ:
                    raise capture.wrong(f"{link_name(link)} is not read; {TOLD}")
                seen = link
            self.packets += 1
            if not self.packets % EVERY:
                watch()
            if len(frame) < length:
                self.cut += 1
            packet = parse(link, frame, length)
            if isinstance(packet, str):
                self.skipped[packet] += 1
            else:
                self._take(time_ns, length, packet)
        self._finish()

    def flows(self) -> Iterator[Flow]:
        yield from self.over
        for ends, (flow, _) in self._flows.items():
            if ends == flow.ends:  # it is there for either direction
                yield flow

    def _take(
        self, time_ns: int, length: int, packet: tuple[int, bytes, int, int, int, int]
    ) -> None:
        protocol, ends, flags, seq, ack, payload = packet
        if self.sessions and time_ns < self._now_ns:
            self.earlier += 1
            time_ns = self._now_ns
        session = self._session(time_ns)
        self._now_ns = session.last_ns = time_ns
        if protocol != TCP:
            self.udp_packets += 1
            way = self._way(ends)
        else:
            flow, way = self._flow(ends, flags, seq)
            flow.take(time_ns, self.slots.now, way, flags, seq, ack, payload)
            flow.wire[way] += length
            if payload:
                self.slots.use(flow)
        if payload:
            session.payload[way] += payload
            self.slots.carry(way, payload)

    def _session(self, time_ns: int) -> Session:
        if self.sessions and time_ns - self._now_ns < IDLE_NS:
            self.slots.advance(time_ns)
            return self.sessions[-1]
        self.slots.begin(time_ns)
        self.sessions.append(Session(time_ns, time_ns))
        return self.sessions[-1]

    def _flow(self, ends: bytes, flags: int, seq: int) -> tuple[Flow, int]:
        found = self._flows.get(ends)
        if found is not None:
            if not found[0].is_another(found[1], flags, seq):
                return found
            self.over.append(found[0])
        is_client, how = self.ends.of(ends, flags)
        back = reverse(ends)
        own = ends if is_client else back
        port = int.from_bytes(own[-2:], "big")
        flow = Flow(own, self.ends.kind(port), how)
        self._flows[back] = flow, DOWN if is_client else UP
        self._flows[ends] = flow, UP if is_client else DOWN  # last: both may be the same
        return self._flows[ends]

    def _way(self, ends: bytes) -> int:
        way = self._ways.get(ends)
        if way is None:
            way = UP if self.ends.of(ends, 0)[0] else DOWN
            self._ways[reverse(ends)] = DOWN if way == UP else UP
            self._ways[ends] = way
        return way

    def _finish(self) -> None:
        self.slots.end()
        for flow in self.flows():
            flow.bursts.end()
            self.slots.add(flow)
            flow.trips.by_slot.clear()
