# SPDX-License-Identifier: MIT
"""Packets and capture files, made by hand: Ethernet, IPv4, TCP, pcap."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from socket import inet_aton

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
EPOCH_US = 1_600_000_000 * 1_000_000


@dataclass(frozen=True)
class Endpoint:
    address: str
    port: int


def tcp_packet(
    src: Endpoint,
    dst: Endpoint,
    seq: int,
    payload: bytes,
    flags: int = PSH | ACK,
    ack: int = 1,
    options: bytes = b"",
) -> bytes:
    options += bytes(-len(options) % 4)
    size = 0x50 + len(options) * 4
    tcp = struct.pack(
        ">HHIIBBHHH", src.port, dst.port, seq % 2**32, ack % 2**32, size, flags, 65535, 0, 0
    )
    tcp += options
    addresses = inet_aton(src.address) + inet_aton(dst.address)
    total = 20 + len(tcp) + len(payload)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + addresses
    return b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x08\0" + ip + tcp + payload


@dataclass
class Capture:
    """Packets with their times in microseconds; written in the order of time."""

    packets: list[tuple[int, int, bytes]] = field(default_factory=list)

    def add(self, time_us: int, packet: bytes) -> None:
        self.packets.append((time_us, len(self.packets), packet))

    def write(self, path: Path, snaplen: int = 262144) -> None:
        with path.open("wb") as out:
            out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
            for time_us, _, packet in sorted(self.packets):
                second, us = divmod(EPOCH_US + time_us, 1_000_000)
                kept = packet[:snaplen]
                out.write(struct.pack("<IIII", second, us, len(kept), len(packet)) + kept)


@dataclass
class TcpStream:
    """One TCP connection whose bytes are put on the wire as the caller says."""

    capture: Capture
    client: Endpoint
    server: Endpoint
    up_next: int = 1001
    down_next: int = 5001

    def open(self, time_us: int) -> None:
        near, far = self.client, self.server
        self.capture.add(time_us, tcp_packet(near, far, self.up_next - 1, b"", SYN, 0))
        self.capture.add(
            time_us + 1, tcp_packet(far, near, self.down_next - 1, b"", SYN | ACK, self.up_next)
        )
        self.capture.add(time_us + 2, tcp_packet(near, far, self.up_next, b"", ACK, self.down_next))

    def up(self, time_us: int, payload: bytes, flags: int = PSH | ACK) -> None:
        packet = tcp_packet(self.client, self.server, self.up_next, payload, flags, self.down_next)
        self.capture.add(time_us, packet)
        self.up_next += len(payload) + (flags & FIN)

    def down(self, time_us: int, payload: bytes, flags: int = PSH | ACK) -> None:
        packet = tcp_packet(self.server, self.client, self.down_next, payload, flags, self.up_next)
        self.capture.add(time_us, packet)
        self.down_next += len(payload) + (flags & FIN)

    def send(self, time_us: int, payload: bytes, up: bool) -> None:
        (self.up if up else self.down)(time_us, payload)

    def close(self, time_us: int) -> None:
        self.up(time_us, b"", FIN | ACK)
        self.down(time_us + 1, b"", FIN | ACK)
