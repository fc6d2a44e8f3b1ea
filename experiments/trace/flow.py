# SPDX-License-Identifier: MIT
"""A TCP connection in a capture: who opened it, what it carried either way, its round trips."""

import ipaddress
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from experiments.trace.bursts import DOWN, UP, Bursts
from experiments.trace.packet import ACK, SYN, ports
from experiments.trace.roundtrips import RoundTrips

PIPES, CONNECTIONS = "pipes", "connections"
KINDS = (CONNECTIONS, PIPES)
TOLD, HANDSHAKE, PORT = "told", "handshake", "port"  # how the client was found
WORD = 0xFFFFFFFF
Networks = Sequence[IPv4Network | IPv6Network]


@dataclass(frozen=True)
class Ends:
    """Which of a flow's two ends is the client."""

    clients: Networks = ()  # where its address lies, if that was told
    pipes: Collection[int] = ()  # ports of rp

    def of(self, ends: bytes, flags: int) -> tuple[bool, str]:
        """Whether a flow's first packet came from its client, and how that was found."""
        half = len(ends) // 2 - 2
        if self.clients:
            source = self._has(ends[:half])
            if source != self._has(ends[half : 2 * half]):
                return source, TOLD
        if flags & SYN:
            return not flags & ACK, HANDSHAKE
        source_port, destination_port = ports(ends)
        return source_port >= destination_port, PORT

    def _has(self, address: bytes) -> bool:
        found = ipaddress.ip_address(address)
        return any(found in network for network in self.clients)

    def kind(self, server_port: int) -> str:
        return PIPES if server_port in self.pipes else CONNECTIONS


class Flow:
    __slots__ = ("bursts", "busy_in", "ends", "found", "kind", "packets", "payload", "trips")
    __slots__ += ("_syns", "wire")

    def __init__(self, ends: bytes, kind: str, found: str) -> None:
        """`ends` are those of its client's packets."""
        self.ends = ends
        self.kind = kind
        self.found = found
        self.packets = [0, 0]  # by direction, as all that follows
        self.wire = [0, 0]  # bytes of frames
        self.payload = [0, 0]  # bytes of TCP, those that were sent again as well
        self.bursts = Bursts()
        self.trips = RoundTrips()
        self.busy_in = -1  # the slot in which it carried data last
        self._syns: list[int | None] = [None, None]

    def is_another(self, way: int, flags: int, seq: int) -> bool:
        """Whether this packet opens another connection between the same two ports."""
        return flags & (SYN | ACK) == SYN and self._syns[way] != seq

    def take(
        self, time_ns: int, slot: int, way: int, flags: int, seq: int, ack: int, payload: int
    ) -> None:
        self.packets[way] += 1
        self.bursts.take(time_ns, way, payload)
        if flags & SYN:
            self._opening(time_ns, way, flags, seq)
            seq = seq + 1 & WORD  # of data, if the SYN has some
        if payload:
            self.payload[way] += payload
            if way == UP:
                self.trips.sent(time_ns, slot, seq, payload)
        if way == DOWN and flags & ACK:
            self.trips.acknowledged(time_ns, ack)

    def _opening(self, time_ns: int, way: int, flags: int, seq: int) -> None:
        if way == UP and not flags & ACK:
            self.trips.opened(time_ns, again=self._syns[UP] is not None)
        elif way == DOWN and flags & ACK:
            self.trips.answered(time_ns)
        self._syns[way] = seq
