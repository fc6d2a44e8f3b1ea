# SPDX-License-Identifier: MIT
"""Captures made by hand: every time and every byte of them is known."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from experiments.trace.capture import Capture
from experiments.trace.flow import Ends
from experiments.trace.packet import ACK, ETHERNET, SYN
from experiments.trace.trace import Trace

CLIENT, SERVER = "10.0.1.1", "10.0.9.2"
CLIENT6, SERVER6 = "2001:db8::1", "2001:db8::2"
BEGIN_NS = 1_700_000_000 * 10**9
Frame = tuple[int, bytes, int]  # time, what was captured, length on the wire


def ns(seconds: float) -> int:
    """Whole microseconds, which is what pcap files have."""
    return BEGIN_NS + round(seconds * 10**6) * 1000


def ip(protocol: int, source: str, destination: str, inner: bytes) -> bytes:
    a, b = ip_address(source), ip_address(destination)
    if a.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(inner), protocol, 64) + a.packed + b.packed + inner
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, protocol, 0)
    return head + a.packed + b.packed + inner


def ethernet(packet: bytes) -> bytes:
    kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
    return b"\x02" * 6 + b"\x04" * 6 + kind + packet


def udp(source: tuple[str, int], destination: tuple[str, int], data: bytes) -> bytes:
    inner = struct.pack("!HHHH", source[1], destination[1], 8 + len(data), 0) + data
    return ip(17, source[0], destination[0], inner)


@dataclass
class Connection:
    """Writes packets of a connection; both sequence numbers begin near their end."""

    port: int = 40000
    server_port: int = 443
    client: str = CLIENT
    server: str = SERVER
    up: int = 0xFFFFFF00  # the next byte of the client
    down: int = 0xFFFFFE00

    def _packet(self, way: str, seq: int, ack: int, flags: int, data: int) -> bytes:
        ends = ((self.client, self.port), (self.server, self.server_port))
        (source, sport), (destination, dport) = ends if way == "up" else ends[::-1]
        numbers = (seq & 0xFFFFFFFF, ack & 0xFFFFFFFF)
        tcp = struct.pack("!HHIIBBHHH", sport, dport, *numbers, 0x50, flags, 65535, 0, 0)
        return ethernet(ip(6, source, destination, tcp + bytes(data)))

    def syn(self, at: float) -> Frame:
        return whole(at, self._packet("up", self.up - 1, 0, SYN, 0))

    def syn_ack(self, at: float) -> Frame:
        return whole(at, self._packet("down", self.down - 1, self.up, SYN | ACK, 0))

    def opened(self, at: float, trip: float = 0.0) -> list[Frame]:
        return [self.syn(at), self.syn_ack(at + trip)]

    def send(self, at: float, data: int, *, back: int = 0) -> Frame:
        """New data of the client, or what it sent `back` bytes ago once more."""
        frame = self._packet("up", self.up - back, self.down, ACK, data)
        self.up += 0 if back else data
        return whole(at, frame)

    def get(self, at: float, data: int, *, short: int = 0) -> Frame:
        """From the server; it acknowledges all but `short` bytes."""
        frame = self._packet("down", self.down, self.up - short, ACK, data)
        self.down += data
        return whole(at, frame)


def whole(at: float, frame: bytes) -> Frame:
    return ns(at), frame, len(frame)


def pcap(
    frames: Iterable[Frame], link: int = ETHERNET, order: str = "<", unit: int = 1000
) -> bytes:
    magic = 0xA1B2C3D4 if unit == 1000 else 0xA1B23C4D
    made = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link)]
    for time_ns, frame, length in frames:
        seconds, part = divmod(time_ns, 10**9)
        made += [struct.pack(f"{order}IIII", seconds, part // unit, len(frame), length), frame]
    return b"".join(made)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = ETHERNET, order: str = "<", options: bytes = b"") -> bytes:
    return block(1, struct.pack(f"{order}HHI", link, 0, 262144) + options, order)


def enhanced(frame: Frame, order: str = "<", where: int = 0, ticks_ns: int = 1000) -> bytes:
    time_ns, data, length = frame
    ticks = time_ns // ticks_ns
    head = struct.pack(f"{order}IIIII", where, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length)
    return block(6, head + data, order)


def pcapng(frames: Iterable[Frame], order: str = "<") -> bytes:
    return section(order) + interface(order=order) + b"".join(enhanced(it, order) for it in frames)


def traced(folder: Path, data: bytes | Iterable[Frame], ends: Ends | None = None) -> Trace:
    """Of a file's bytes, or of frames."""
    path = folder / "made.pcap"
    path.write_bytes(data if isinstance(data, bytes) else pcap(data))
    trace = Trace(ends or Ends())
    trace.read(Capture(path))
    return trace
