# SPDX-License-Identifier: MIT
"""Numbered UDP packets, paced on one side and timed by the kernel on the other.

Both sides are sockets of this process on the same clock, so what is measured is one way.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

HEAD = struct.Struct("!QQ")  # number, when it was sent (ns of the wall clock)
STAMP = struct.Struct("qq")
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
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
    """Leaves what comes to a UDP socket in the kernel, stamped, until it is read at the end.

    So nothing of ours runs beside the sender while it is paced. There is room for some 25,000
    packets.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.arrivals: list[Arrival] = []
        self._sock = sock
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)

    def read(self) -> None:
        """Everything that has come so far."""
        self._sock.setblocking(False)
        while True:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(65536, 64)
            except BlockingIOError:
                return
            stamp = next(
                body
                for level, kind, body in ancillary
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS)
            )
            seconds, nanoseconds = STAMP.unpack(stamp)
            number, sent_ns = HEAD.unpack_from(data)
            received_ns = seconds * 1_000_000_000 + nanoseconds
            self.arrivals.append(Arrival(number, sent_ns, received_ns, len(data) + UDP_HEADERS))


@contextmanager
def receiving(sock: socket.socket) -> Iterator[Receiver]:
    """What comes to `sock` until the block ends."""
    receiver = Receiver(sock)
    yield receiver
    receiver.read()


@contextmanager
def promptly() -> Iterator[None]:
    """This thread runs when it wants to, whatever else the machine does; needs root."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def send(sock: socket.socket, to: tuple[str, int], ip_bytes: int, count: int, gap_s: float) -> None:
    """`count` packets of `ip_bytes`, one each `gap_s`; one that is late does not delay the rest."""
    padding = bytes(ip_bytes - UDP_HEADERS - HEAD.size)
    with promptly():
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
