# SPDX-License-Identifier: MIT
"""Numbered UDP packets, paced on one side and timed by the kernel on the other.

Both sides are sockets of this process on the same clock, so what is measured is one way.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

HEAD = struct.Struct("!QQ")  # number, when it was sent (ns of the wall clock)
STAMP = struct.Struct("qq")
SO_TIMESTAMPNS = 35
UDP_HEADERS = 28  # IPv4 and UDP
BUFFER = 64 << 20


@dataclass(frozen=True)
class Arrival:
    number: int
    sent_ns: int
    received_ns: int
    ip_bytes: int

    @property
    def delay_ms(self) -> float:
        return (self.received_ns - self.sent_ns) / 1e6


class Receiver:
    """Takes everything that comes to a UDP socket, in a thread of its own."""

    def __init__(self, sock: socket.socket) -> None:
        self.arrivals: list[Arrival] = []
        self._sock = sock
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), BUFFER)
        sock.settimeout(0.05)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(65536, 64)
            except TimeoutError:
                if self._stop.is_set():
                    return
                continue
            stamp = next(
                body for level, kind, body in ancillary if (level, kind) == (1, SO_TIMESTAMPNS)
            )
            seconds, nanoseconds = STAMP.unpack(stamp)
            number, sent_ns = HEAD.unpack_from(data)
            received_ns = seconds * 1_000_000_000 + nanoseconds
            self.arrivals.append(Arrival(number, sent_ns, received_ns, len(data) + UDP_HEADERS))

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)


@contextmanager
def receiving(sock: socket.socket) -> Iterator[Receiver]:
    receiver = Receiver(sock)
    try:
        yield receiver
    finally:
        receiver.close()


def send(sock: socket.socket, to: tuple[str, int], ip_bytes: int, count: int, gap_s: float) -> None:
    """`count` packets of `ip_bytes`, one each `gap_s`; one that is late does not delay the rest."""
    padding = bytes(ip_bytes - UDP_HEADERS - HEAD.size)
    start = time.monotonic()
    for number in range(count):
        ahead = start + number * gap_s - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        sock.sendto(HEAD.pack(number, time.time_ns()) + padding, to)


def rate_mbps(arrivals: list[Arrival], overhead_bytes: int = 14) -> float:
    """Between the first and the last arrival, with so many bytes on top of each IP packet."""
    span_s = (arrivals[-1].received_ns - arrivals[0].received_ns) / 1e9
    counted = sum(a.ip_bytes + overhead_bytes for a in arrivals[1:])
    return counted * 8 / span_s / 1e6
