# SPDX-License-Identifier: MIT
"""A line by QUIC, bound to its path's address: a stream for each message, or one for all.

With a stream each, no message waits for another one's lost packet. aioquic takes turns between
streams, so that large messages would all end late: a message is handed to it when those before it
were sent, except for what fills a packet. aioquic's own numbers (round trip, window, what a stream
did not send yet) have no public names; they are used in this file alone.
"""

import asyncio
import ssl
from collections import deque
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    QuicEvent,
    StreamDataReceived,
)
from aioquic.quic.stream import QuicStream

from experiments.workloads.smt.estimate import Estimate, Reading
from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.line import LARGEST, Ends, Frames, Line, framed

ALPN = {False: "smt", True: "smt-ordered"}
LARGEST_DATAGRAM = 1350  # as of our HTTP/3
WINDOW = 16 << 20  # of flow control: it bounds nothing here, the limits of the sender do
STREAMS = 4096  # of messages under way


def configured(is_client: bool, silence_s: float, protocols: list[str]) -> QuicConfiguration:
    """Nobody checks certificates: it is a measurement between our own programs."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=protocols,
        congestion_control_algorithm="cubic",
        max_datagram_size=LARGEST_DATAGRAM,
        idle_timeout=silence_s,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        verify_mode=ssl.CERT_NONE,
    )


class QuicLine(Line, QuicConnectionProtocol):
    """`ordered`: one stream for all; None: as the client chooses by ALPN."""

    def __init__(
        self, quic: QuicConnection, name: str, ends: Ends, printed: bool, ordered: bool | None
    ) -> None:
        Line.__init__(self)
        QuicConnectionProtocol.__init__(self, quic)
        quic._local_max_streams_uni.value = STREAMS
        self.name = name
        self.estimate = Estimate(printed)
        self.ordered = ordered
        self._ends = ends
        self._over = False
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._unsent: deque[QuicStream] = deque()
        self._stream: int | None = None
        self._frames = Frames()
        self._incoming: dict[int, bytearray] = {}
        self._pings = 0

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self._lose(event.reason_phrase or "the peer closed it")
        elif isinstance(event, StreamDataReceived) and not self._over:
            try:
                self._take(event)
            except (BadMessage, ValueError) as wrong:
                self._lose(str(wrong))

    def error_received(self, error: Exception) -> None:
        """Of ICMP: nobody listens there."""
        self._lose(str(error))

    def _take(self, event: StreamDataReceived) -> None:
        if self.in_order:
            for message in self._frames.put(event.data):
                self._ends.came(self, message)
            return
        buffer = self._incoming.setdefault(event.stream_id, bytearray())
        buffer += event.data
        if len(buffer) > LARGEST:
            raise BadMessage(f"a message of more than {LARGEST} bytes")
        if event.end_stream:
            self._ends.came(self, bytes(self._incoming.pop(event.stream_id)))

    @property
    def in_order(self) -> bool:
        if self.ordered is None:
            self.ordered = self._quic.tls.alpn_negotiated == ALPN[True]
        return self.ordered

    def _lose(self, why: str) -> None:
        if not self._over:
            self.close()
            self._ends.lost(self, why)

    def reading(self) -> Reading:
        """aioquic does not count losses: the rate follows the window, which does."""
        loss = self._quic._loss
        rtt_s = max(loss._rtt_smoothed, 1e-3)
        rate = loss.congestion_window / rtt_s
        opening = loss._cc.ssthresh is None
        room = max(0, loss.congestion_window - loss.bytes_in_flight)
        return Reading(rtt_s, rate, 0.0, LARGEST_DATAGRAM, self._left_bytes(), opening, room)

    def _left_bytes(self) -> int:
        return self._queued_bytes + sum(map(unsent, self._unsent))

    def send(self, message: bytes) -> None:
        self.messages += 1
        self.bytes += len(message)
        self._queue.append(message)
        self._queued_bytes += len(message)
        self._transmit_soon()

    def transmit(self) -> None:
        """Called by aioquic as well, whenever it could send: then the next messages follow."""
        super().transmit()
        while self._feed():
            super().transmit()

    def _feed(self) -> bool:
        """Hands over messages while less than two packets of the earlier ones are unsent."""
        if self._over:
            return False
        while self._unsent and not unsent(self._unsent[0]):
            self._unsent.popleft()
        left, fed = sum(map(unsent, self._unsent)), False
        while self._queue and left < 2 * LARGEST_DATAGRAM:
            message = self._queue.popleft()
            self._queued_bytes -= len(message)
            left += len(message)
            self._hand_over(message)
            fed = True
        return fed

    def _hand_over(self, message: bytes) -> None:
        if self.in_order:
            if self._stream is None:
                self._stream = self._quic.get_next_available_stream_id(is_unidirectional=True)
            stream, data, last = self._stream, framed(message), False
        else:
            stream = self._quic.get_next_available_stream_id(is_unidirectional=True)
            data, last = message, True
        self._quic.send_stream_data(stream, data, end_stream=last)
        it = self._quic._streams[stream]
        if it not in self._unsent:
            self._unsent.append(it)

    def keep(self) -> None:
        self._pings += 1
        self._quic.send_ping(self._pings)
        self._transmit_soon()

    def configure(self, silence_s: float, cc: str) -> None:
        """The shorter idle timeout of both ends holds for both, and all have CUBIC."""

    def close(self) -> None:
        """What fits into the window still goes."""
        if not self._over:
            self.transmit()
            self._over = True
            QuicConnectionProtocol.close(self)


def unsent(stream: QuicStream) -> int:
    """Bytes that never were in a packet, or that were in lost ones."""
    return sum(it.stop - it.start for it in stream.sender._pending)


async def open_quic(
    name: str,
    local: str | None,
    to: tuple[str, int],
    ends: Ends,
    silence_s: float,
    printed: bool,
    ordered: bool,
) -> QuicLine:
    """Raises OSError."""
    anywhere = "::" if ":" in to[0] else "0.0.0.0"
    quic = QuicConnection(configuration=configured(True, silence_s, [ALPN[ordered]]))
    loop = asyncio.get_running_loop()
    _, line = await loop.create_datagram_endpoint(
        lambda: ClientLine(quic, name, ends, printed, ordered), local_addr=(local or anywhere, 0)
    )
    line.connect(to)
    try:
        async with asyncio.timeout(silence_s):
            await line.wait_connected()
    except (TimeoutError, ConnectionError):
        line.close()
        raise ConnectionError(f"path {name}: no QUIC from {to[0]} port {to[1]}") from None
    return line


class ClientLine(QuicLine):
    """Has a socket of its own, which ends with it."""

    def quic_event_received(self, event: QuicEvent) -> None:
        super().quic_event_received(event)
        if isinstance(event, ConnectionTerminated) and self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        super().close()
        asyncio.get_running_loop().call_later(0.05, self._shut)

    def _shut(self) -> None:
        transport: Any = self._transport
        if self._timer is not None:
            self._timer.cancel()
        if transport is not None:
            transport.close()
