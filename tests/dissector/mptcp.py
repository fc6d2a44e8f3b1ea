# SPDX-License-Identifier: MIT
"""A pipe over MPTCP (RFC 8684): its bytes on subflows, with the options that tell their places."""

import hashlib
import struct
from dataclasses import dataclass, field

from tests.dissector.packets import ACK, PSH, SYN, Capture, Endpoint, tcp_packet

UP, DOWN = True, False


def digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def option(subtype: int, *rest: bytes, low: int = 0) -> bytes:
    body = bytes([subtype << 4 | low]) + b"".join(rest)
    return bytes([30, len(body) + 2]) + body


def capable(*keys: bytes) -> bytes:
    return option(0, b"\x01", *keys, low=1)


@dataclass
class Subflow:
    client: Endpoint
    server: Endpoint
    next: dict[bool, int] = field(default_factory=lambda: {UP: 1, DOWN: 1})  # behind the SYN's

    def packet(self, up: bool, sequence: int, payload: bytes, flags: int, options: bytes) -> bytes:
        isn = 1000 if up else 5000
        near, far = (self.client, self.server) if up else (self.server, self.client)
        return tcp_packet(near, far, isn + sequence, payload, flags, 1, options)


@dataclass
class Pipe:
    """Bytes are numbered when they are sent; packets may be captured later, in another order."""

    capture: Capture
    subflows: list[Subflow]
    keys: dict[bool, bytes]
    sent: dict[bool, int] = field(default_factory=lambda: {UP: 0, DOWN: 0})

    def open(self, time_us: int) -> None:
        first = self.subflows[0]
        for flags, up, words in (
            (SYN, UP, capable()),
            (SYN | ACK, DOWN, capable(self.keys[DOWN])),
            (ACK, UP, capable(self.keys[UP], self.keys[DOWN])),
        ):
            at = 1 if flags == ACK else 0
            self.capture.add(time_us, first.packet(up, at, b"", flags, words))
            time_us += 1
        for number, other in enumerate(self.subflows[1:], 1):
            token = option(1, bytes([number]), digest(self.keys[DOWN])[:4], b"rand")
            answer = option(1, bytes([number]), b"half mac", b"rand")
            self.capture.add(time_us, other.packet(UP, 0, b"", SYN, token))
            self.capture.add(time_us + 1, other.packet(DOWN, 0, b"", SYN | ACK, answer))
            time_us += 2

    def send(
        self, time_us: int, subflow: int, raw: bytes, up: bool, *, again: bool = False
    ) -> None:
        """`again`: the bytes sent last, on another subflow."""
        flow = self.subflows[subflow]
        if again:
            self.sent[up] -= len(raw)
        begin = int.from_bytes(digest(self.keys[up])[-8:], "big") + 1
        number = (begin + self.sent[up]) % 2**64
        words = struct.pack(">BQIHH", 0x0C, number, flow.next[up], len(raw), 0)
        packet = flow.packet(up, flow.next[up], raw, PSH | ACK, option(2, words))
        self.capture.add(time_us, packet)
        flow.next[up] += len(raw)
        self.sent[up] += len(raw)


def two_ways(capture: Capture, number: int = 0) -> Pipe:
    """One pipe with two subflows, each with addresses of its own; `number`: of several such."""
    flows = [
        Subflow(Endpoint(f"10.8.1.{number + 1}", 40_000), Endpoint("10.9.0.1", 6000)),
        Subflow(Endpoint(f"10.8.2.{number + 1}", 50_000), Endpoint("10.9.0.2", 6000)),
    ]
    return Pipe(capture, flows, {UP: b"LP's ke%d" % number, DOWN: b"RP's ke%d" % number})
