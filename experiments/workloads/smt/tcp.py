# SPDX-License-Identifier: MIT
"""A line by TCP, bound to its path's address. Each message goes behind its length."""

import asyncio
import os
import socket
import struct
from typing import cast

from experiments.workloads.smt.estimate import Estimate, Reading
from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.line import Ends, Frames, Line, framed

# struct tcp_info: app_limited in the lowest bit of byte 7, snd_mss, unacked, rtt, snd_ssthresh,
# snd_cwnd, total_retrans, notsent_bytes, data_segs_out, delivery_rate.
_INFO = struct.Struct("=7xB8xI4xI40xI4xII16xI40xI8xIQ")
_NO_SSTHRESH = 0x7FFFFFFF  # before the first loss, and before the first slow start ended otherwise


class TcpLine(Line, asyncio.Protocol):
    def __init__(self, name: str, ends: Ends, printed: bool) -> None:
        super().__init__()
        self.name = name
        self.estimate = Estimate(printed)
        self._ends = ends
        self._frames = Frames()
        self._over = False
        self._segments = self._retransmitted = 0
        self._last = Reading(0.0, 0.0, 0.0, 0, 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """The kernel acknowledges at once, which it does not remember for the next time: a delayed
        acknowledgement would count as 40 ms of the path's round trip, of a path that is used little
        alone, and so it would be used less."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        try:
            for message in self._frames.put(data):
                if self._over:
                    return
                self._ends.came(self, message)
        except (BadMessage, ValueError) as wrong:
            self._lose(str(wrong))

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, OSError) and error.errno:
            self._lose(os.strerror(error.errno))
        else:
            self._lose(str(error or "the peer closed it"))

    def _lose(self, why: str) -> None:
        if not self._over:
            self.close()
            self._ends.lost(self, why)

    def reading(self) -> Reading:
        """Of one that ended, the last."""
        if self._transport.is_closing():
            return self._last
        sock = self._transport.get_extra_info("socket")
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
        limited, mss, flying, rtt_us, ssthresh, window, again, unsent, segments, rate = (
            _INFO.unpack(told)
        )
        rtt_s = max(rtt_us, 1) / 1e6
        if limited & 1 or not rate:  # it measured what the application sent, not what it could
            rate = window * mss / rtt_s
        more, lost = segments - self._segments, again - self._retransmitted
        self._segments, self._retransmitted = segments, again
        queued = unsent + self._transport.get_write_buffer_size()
        loss = min(1.0, lost / more) if more else 0.0
        opening = ssthresh >= _NO_SSTHRESH
        room = 0 if unsent else max(0, window - flying) * mss
        self._last = Reading(rtt_s, float(rate), loss, mss, queued, opening, room)
        return self._last

    def send(self, message: bytes) -> None:
        self.messages += 1
        self.bytes += len(message)
        self._transport.write(framed(message))

    def keep(self) -> None:
        """A TCP connection stays."""

    def configure(self, silence_s: float, cc: str) -> None:
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence_s * 1e3))
        if cc:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())

    def close(self) -> None:
        """What was written still goes, unless the line was lost."""
        self._over = True
        self._transport.close()
