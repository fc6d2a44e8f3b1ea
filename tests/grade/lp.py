# SPDX-License-Identifier: MIT
"""A local proxy that does as it is told: which message, over which pipe, in how many pieces.

What RP sends is held to the protocol to the letter: lengths, ids of connections that exist,
numbers from 0 without gap or repetition, nothing after a FIN.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from typing import TYPE_CHECKING

from . import wire
from .failure import Failure
from .stream import Inbox, Pattern

if TYPE_CHECKING:
    from .lab import Lab
    from .server import Peer, Server

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
QUEUE_BYTES = 1 << 17  # held for a pipe before an upload pauses
BATCH = 4  # messages of an upload that a pipe is given at a time


class Pipe:
    def __init__(self, lp: LocalProxy, index: int, sock: socket.socket) -> None:
        self.lp = lp
        self.index = index
        self.sock = sock
        self.out = bytearray()
        self.reader = wire.Reader()
        self.reading = True
        self.closed = False
        self.bytes_in = 0
        self._watch()

    def _watch(self) -> None:
        events = select.EPOLLIN * self.reading | select.EPOLLOUT * bool(self.out)
        if events and not self.closed:
            self.lp.lab.watch(self.sock.fileno(), events, self._on_event)
        else:
            # Not even HUP may wake one whom nobody wants to hear.
            self.lp.lab.unwatch(self.sock.fileno())

    def pause(self) -> None:
        self.reading = False
        self._watch()

    def resume(self) -> None:
        self.reading = True
        self._watch()

    def send(self, stream: bytes) -> None:
        self.out += stream
        self._flush()

    def _flush(self) -> None:
        try:
            while self.out:
                del self.out[: self.sock.send(memoryview(self.out)[: 1 << 18])]
        except BlockingIOError:
            pass
        except OSError as err:
            self._lost(f"could not be written to: {err.strerror}")
        self._watch()

    def _on_event(self, mask: int) -> None:
        if mask & select.EPOLLOUT:
            self._flush()
        if self.reading and mask & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self._read()

    def _read(self) -> None:
        try:
            chunk = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as err:
            self._lost(f"failed: {err.strerror}")
            return
        if not chunk:
            self._lost("was closed by RP: pipes stay when a connection ends")
            return
        self.bytes_in += len(chunk)
        try:
            for message in self.reader.feed(chunk):
                self.lp.take(message, self)
        except wire.Malformed as err:
            raise Failure(f"pipe {self.index + 1}: {err}") from None

    def _lost(self, what: str) -> None:
        self.closed = True
        self._watch()
        if not self.lp.may_lose_pipes:
            raise Failure(f"pipe {self.index + 1} of {len(self.lp.pipes)} {what}")

    def close(self, by_reset: bool = True) -> None:
        if self.sock.fileno() < 0:
            return
        self.lp.lab.unwatch(self.sock.fileno())
        self.closed = True
        if by_reset:
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.sock.close()


class Conn:
    """One connection as LP sees it: what it sends, and what came back in order."""

    def __init__(self, lp: LocalProxy, ident: int, address: str, port: int) -> None:
        self.lp = lp
        self.id = ident
        self.address = address
        self.port = port
        self.peer: Peer | None = None
        self.number = 0  # of the next uplink message
        self.inbox = Inbox(f"downlink of connection {ident}")
        self.expected = 0  # number of the next downlink message
        self.held: dict[int, wire.Message] = {}
        self.last: int | None = None  # number of RP's FIN, as soon as it is known
        self.reason = 0  # of RP's FIN, when it is due
        self.ended_by_lp = False
        self.stale_from: int | None = None  # numbers that belong to the id's last owner
        self.upload: tuple[Pattern, int] | None = None

    def __str__(self) -> str:
        return f"connection {self.id} (to {self.address}:{self.port})"

    # -- uplink -----------------------------------------------------------------------------

    def make_syn(self) -> bytes:
        self.number = 1
        return wire.syn(self.id, self.address, self.port)

    def make_data(self, payload: bytes) -> bytes:
        self.number += 1
        return wire.data(self.id, self.number - 1, payload)

    def make_fin(self, reason: int = wire.BY_FIN) -> bytes:
        self.number += 1
        self.ended_by_lp = True
        return wire.fin(self.id, self.number - 1, reason)

    def syn(self, pipe: int | None = None) -> Conn:
        self.lp.send(self.make_syn(), pipe)
        return self

    def data(self, payload: bytes, pipe: int | None = None) -> None:
        self.lp.send(self.make_data(payload), pipe)

    def fin(self, reason: int = wire.BY_FIN, pipe: int | None = None) -> None:
        self.lp.send(self.make_fin(reason), pipe)

    def start_upload(self, pattern: Pattern) -> None:
        self.upload = (pattern, 0)
        self.lp.uploads.append(self)

    def next_upload(self) -> bytes:
        """The next message of the upload, nothing after its last."""
        assert self.upload is not None
        pattern, offset = self.upload
        payload = pattern.read(offset, wire.PAYLOAD_MAX)
        self.upload = (pattern, offset + len(payload))
        return self.make_data(payload) if payload else b""

    # -- downlink ---------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """RP's FIN came and was due."""
        return self.reason != 0

    def take(self, message: wire.Message) -> None:
        number = message.number
        if self.stale_from is not None and number >= self.stale_from:
            return
        if self.last is not None and number > self.last:
            raise Failure(f"{self}: message {number} came after the FIN, number {self.last}")
        if number < self.expected or number in self.held:
            raise Failure(f"{self}: downlink message number {number} came twice")
        if message.reason:
            if any(held > number for held in self.held):
                raise Failure(f"{self}: the FIN has number {number}, though later ones came")
            self.last = number
        self.held[number] = message
        while self.expected in self.held:
            self._deliver(self.held.pop(self.expected))

    def _deliver(self, message: wire.Message) -> None:
        self.expected += 1
        if message.reason:
            self.reason = message.reason
        else:
            self.inbox.feed(message.payload)

    def hint(self) -> str:
        if not self.held:
            return ""
        numbers = sorted(self.held)
        return (
            f"{self}: downlink message number {self.expected} is missing while "
            + (
                f"a later one came (number {numbers[0]})"
                if len(numbers) == 1
                else f"{len(numbers)} later ones came ({numbers[0]} to {numbers[-1]})"
            )
            + (" (numbers start at 0)" if self.expected == 0 else "")
        )


class LocalProxy:
    """N pipes from one address, and the connections carried by them."""

    def __init__(self, lab: Lab, address: str = "127.0.0.1") -> None:
        self.lab = lab
        self.address = address
        self.pipes: list[Pipe] = []
        self.conns: dict[int, Conn] = {}
        self.uploads: list[Conn] = []
        self.turn = 0
        self.next_id = 1
        self.may_lose_pipes = False
        lab.lps.append(self)

    # -- pipes ------------------------------------------------------------------------------

    def open_pipe(self, seconds: float, rcvbuf: int = 0) -> Pipe:
        """Connect one pipe, trying again while RP does not listen yet."""
        end = time.monotonic() + seconds
        while True:
            sock = socket.socket()
            if rcvbuf:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                sock.bind((self.address, 0))
                sock.connect(("127.0.0.1", 6000))
                break
            except (ConnectionRefusedError, TimeoutError):
                sock.close()
                self.lab.require_alive("RP to listen on port 6000")
                if time.monotonic() > end:
                    raise Failure(
                        f"RP did not listen on port 6000 within {seconds:g} s"
                        if not self.pipes
                        else f"RP did not take pipe {len(self.pipes) + 1} within {seconds:g} s"
                    ) from None
                self.lab.pump(0.01)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe = Pipe(self, len(self.pipes), sock)
        self.pipes.append(pipe)
        return pipe

    def open_pipes(self, count: int, seconds: float, rcvbuf: int = 0) -> LocalProxy:
        while len(self.pipes) < count:
            self.open_pipe(seconds, rcvbuf)
        return self

    @property
    def unsent(self) -> int:
        return sum(len(pipe.out) for pipe in self.pipes if not pipe.closed)

    def send(self, stream: bytes, pipe: int | None = None) -> None:
        """Over this pipe, or else over the next in turn."""
        if pipe is None:
            pipe, self.turn = self.turn, (self.turn + 1) % len(self.pipes)
        self.pipes[pipe].send(stream)

    def fill(self) -> bool:
        """Go on with each upload for a few messages; False when no pipe takes more now."""
        progress = False
        for conn in list(self.uploads):
            for _ in self.pipes:
                pipe = self.pipes[self.turn]
                self.turn = (self.turn + 1) % len(self.pipes)
                if len(pipe.out) < QUEUE_BYTES and not pipe.closed:
                    progress |= self._upload(conn, pipe)
        return progress

    def _upload(self, conn: Conn, pipe: Pipe) -> bool:
        batch = b"".join(conn.next_upload() for _ in range(BATCH))
        if batch:
            pipe.send(batch)
        elif conn in self.uploads:
            self.uploads.remove(conn)
        return bool(batch)

    def pause(self) -> None:
        for pipe in self.pipes:
            pipe.pause()

    def resume(self) -> None:
        for pipe in self.pipes:
            pipe.resume()

    # -- connections ------------------------------------------------------------------------

    def dial(self, server: Server, ident: int | None = None) -> Conn:
        """A new connection to this server; its SYN is not sent yet."""
        return self.dial_address(server.new_address(), server.port, ident)

    def dial_address(self, address: str, port: int, ident: int | None = None) -> Conn:
        if ident is None:
            ident, self.next_id = self.next_id, self.next_id + 1
        conn = Conn(self, ident, address, port)
        last = self.conns.get(ident)
        if last is not None:
            conn.stale_from = last.expected
        self.conns[ident] = conn
        self.lab.dialled[conn.address] = conn
        return conn

    def take(self, message: wire.Message, pipe: Pipe) -> None:
        conn = self.conns.get(message.conn)
        if conn is None:
            what = "FIN" if message.reason else f"data ({len(message.payload)} bytes)"
            raise Failure(
                f"pipe {pipe.index + 1} brought {what}, number {message.number}, for "
                f"connection {message.conn}, which LP never opened"
            )
        conn.take(message)

    def hints(self) -> list[str]:
        hints = [conn.hint() for conn in self.conns.values()]
        pending = [pipe for pipe in self.pipes if pipe.reader.pending]
        for pipe in pending:
            header = pipe.reader.pending[:8].hex(" ")
            hints.append(
                f"pipe {pipe.index + 1} ends within a message: {len(pipe.reader.pending)} bytes, "
                f"header {header} (does its length count the 8 header bytes?)"
            )
        return [hint for hint in hints if hint]

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
