# SPDX-License-Identifier: MIT
"""What client and server say to each other: a request, bytes up, a reply, bytes down.

    client  REQUEST, `up` bytes ->
            <- REPLY, `down` bytes        at once, or a frame every `interval_us`

or, of an exchange of queries, each of `frame_bytes`:

    client  REQUEST, a query ->
            <- as many bytes              at once; and so on, until `up` bytes were sent
            <- REPLY

A connection carries any number of exchanges, also before the earlier ones were answered. The
server looks at every byte before it replies; the client at every byte that it reads.
"""

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from experiments.workloads.pattern import CHUNK, WrongByte, check, piece, view

TCP_CONGESTION = 13
IPPROTO_MPTCP = 262
SOL_MPTCP, MPTCP_INFO = 284, 1
MPTCP_FELL_BACK = 1

# magic, congestion control, up, its start, down, its start, bytes of a frame, microseconds
_REQUEST = struct.Struct("!4s16sQQQQII")
# magic, congestion control in force, bytes that came, the server's monotonic clock in ns
_REPLY = struct.Struct("!4s16sQQ")
REQUEST_BYTES, REPLY_BYTES = _REQUEST.size, _REPLY.size


class CutShort(ConnectionError):
    """The connection ended before everything had arrived."""


class Refused(RuntimeError):
    """The kernel did not take a setting of a socket."""


@dataclass(frozen=True)
class Request:
    cc: str
    up: int = 0
    up_start: int = 0
    down: int = 0
    down_start: int = 0
    frame_bytes: int = 0  # 0: as fast as it goes
    interval_us: int = 0
    queries: bool = False

    def packed(self) -> bytes:
        magic = b"TM3=" if self.queries else b"TM3?"
        numbers = (self.up, self.up_start, self.down, self.down_start)
        return _REQUEST.pack(magic, self.cc.encode(), *numbers, self.frame_bytes, self.interval_us)

    @classmethod
    def parsed(cls, data: bytes) -> "Request":
        magic, cc, *numbers = _REQUEST.unpack(data)
        if magic not in (b"TM3?", b"TM3="):
            raise WrongByte(f"a request begins with {magic!r}")
        return cls(cc.rstrip(b"\0").decode(), *numbers, queries=magic == b"TM3=")


@dataclass(frozen=True)
class Reply:
    cc: str
    received: int
    clock_ns: int
    right: bool = True  # False: a wrong byte, or fewer than announced

    def packed(self) -> bytes:
        magic = b"TM3!" if self.right else b"BAD!"
        return _REPLY.pack(magic, self.cc.encode(), self.received, self.clock_ns)

    @classmethod
    def parsed(cls, data: bytes) -> "Reply":
        magic, cc, received, clock_ns = _REPLY.unpack(data)
        if magic not in (b"TM3!", b"BAD!"):
            raise WrongByte(f"a reply begins with {magic!r}")
        return cls(cc.rstrip(b"\0").decode(), received, clock_ns, magic == b"TM3!")


def set_congestion_control(sock: socket.socket, name: str) -> str:
    """Sets it and reads it back; of MPTCP, that of each subflow."""
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
    found = sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()
    if found != name:
        raise Refused(f"congestion control is {found}, not {name}")
    return found


def read_exactly(sock: socket.socket, size: int) -> bytes:
    """All of it; b"" at an end before the first byte."""
    data = bytearray()
    while len(data) < size:
        block = sock.recv(size - len(data))
        if not block:
            if data:
                raise CutShort(f"the connection ended after {len(data)} of {size} bytes")
            return b""
        data += block
    return bytes(data)


def read_stream(
    sock: socket.socket, size: int, start: int, seen: Callable[[int], None] | None = None
) -> int:
    """Reads and compares `size` bytes; how many came before the connection's end.

    `seen` is told the number so far after each read.
    """
    done = 0
    while done < size:
        data = sock.recv(min(CHUNK, size - done))
        if not data:
            return done
        check(start, done, data)
        done += len(data)
        if seen is not None:
            seen(done)
    return done


def write_stream(sock: socket.socket, size: int, start: int, done: int = 0) -> None:
    while done < size:
        data = view(start, done, size - done)
        sock.sendall(data)
        done += len(data)


@dataclass(frozen=True)
class Times:
    """Of one exchange, in seconds of the monotonic clock."""

    asked: float
    first: float
    last: float


class Connection:
    """The client's end. `began` is when connect() was called."""

    def __init__(
        self,
        to: tuple[str, int],
        cc: str,
        *,
        mptcp: bool = False,
        seconds: float = 60.0,
        rcvbuf: int = 0,
        source: str = "",
        source_port: int = 0,
    ) -> None:
        self.cc = cc
        protocol = IPPROTO_MPTCP if mptcp else socket.IPPROTO_TCP
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        try:
            set_congestion_control(self.sock, cc)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if rcvbuf:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            if source or source_port:
                self.sock.bind((source, source_port))
            self.sock.settimeout(seconds)
            self.began = time.monotonic()
            self.sock.connect(to)
            self.connected = time.monotonic()
        except BaseException:
            self.sock.close()
            raise

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, request: Request) -> None:
        """The request and its bytes."""
        head = request.packed()
        first = piece(request.up_start, 0, request.up)
        self.sock.sendall(head + first)
        write_stream(self.sock, request.up, request.up_start, len(first))

    def reply(self, request: Request) -> Reply:
        data = read_exactly(self.sock, REPLY_BYTES)
        if not data:
            raise CutShort("the connection ended before the reply")
        reply = Reply.parsed(data)
        if not reply.right or reply.received != request.up:
            raise WrongByte(f"the server got {reply.received} of {request.up} bytes right")
        if reply.cc != self.cc:
            raise Refused(f"the server's congestion control is {reply.cc}, not {self.cc}")
        return reply

    def exchange(self, request: Request, seen: Callable[[int], None] | None = None) -> Times:
        asked = time.monotonic()
        self.ask(request)
        self.reply(request)
        first = time.monotonic()
        came = read_stream(self.sock, request.down, request.down_start, seen)
        if came != request.down:
            raise CutShort(f"the connection ended after {came} of {request.down} bytes")
        return Times(asked, first, time.monotonic())

    def subflows(self) -> int:
        """Of an MPTCP connection: how many it has; Refused where it is plain TCP after all."""
        info = self.sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
        extra, flags = info[0], struct.unpack_from("=I", info, 8)[0]
        if flags & MPTCP_FELL_BACK:
            raise Refused("MPTCP fell back to TCP")
        return extra + 1
