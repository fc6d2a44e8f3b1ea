# SPDX-License-Identifier: MIT
"""The baseline's messages by hand, and pipes played by the test: a raw lp and a raw rp.

Written from the protocol's description, not from mux/, so that both cannot share a mistake.
"""

import fcntl
import socket
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.relay.netns import Namespace

PORT = 6000
SYN = 0xFFFF
FIN = 0xFFFE
BY_FIN = 0x88
BY_RST = 0x99
PAYLOAD_MAX = 4096
HEADER = struct.Struct("<HIH")


def header(conn: int, number: int, length: int) -> bytes:
    return HEADER.pack(conn, number, length)


def syn(conn: int, host: str, port: int, number: int = 0) -> bytes:
    return header(conn, number, SYN) + socket.inet_aton(host) + struct.pack("<H", port)


def data(conn: int, number: int, payload: bytes) -> bytes:
    return header(conn, number, len(payload) + HEADER.size) + payload


def fin(conn: int, number: int, reason: int = BY_FIN) -> bytes:
    return header(conn, number, FIN) + bytes([reason])


@dataclass(frozen=True)
class Message:
    kind: str  # syn, data or fin
    conn: int
    number: int
    body: bytes


class Pipe:
    """One pipe, seen from the test: messages out as bytes, messages in parsed."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._in = bytearray()

    def send(self, *messages: bytes) -> None:
        self.sock.settimeout(20)
        self.sock.sendall(b"".join(messages))

    def unsent(self) -> int:
        """What of it is not yet in the other end's buffer."""
        told = fcntl.ioctl(self.sock, termios.TIOCOUTQ, struct.pack("i", 0))
        return int(struct.unpack("i", told)[0])

    def _has(self, size: int) -> bool:
        """Whether so many bytes are here, after reading; False at an orderly end between two."""
        while len(self._in) < size:
            block = self.sock.recv(65536)
            if not block:
                assert not self._in, f"the pipe ended inside a message: {bytes(self._in)!r}"
                return False
            self._in += block
        return True

    def receive(self, seconds: float = 10.0) -> Message | None:
        """The next message; None when the pipe ended. A reset or a time-out is an exception,
        and what has come of a message until then is kept for the next call."""
        self.sock.settimeout(seconds)
        if not self._has(HEADER.size):
            return None
        conn, number, length = HEADER.unpack_from(self._in)
        kind = {SYN: "syn", FIN: "fin"}.get(length, "data")
        size = HEADER.size + {SYN: 6, FIN: 1}.get(length, length - HEADER.size)
        assert kind != "data" or 9 <= length <= 4104, f"a message of length {length}"
        self._has(size)
        body = bytes(self._in[HEADER.size : size])
        del self._in[:size]
        return Message(kind, conn, number, body)

    def ended(self, seconds: float = 10.0) -> bool:
        """Whether the peer ends this pipe in time, whatever it still sends before."""
        try:
            while self.receive(seconds) is not None:
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True


@contextmanager
def raw_lp(
    ns: Namespace, pipes: int, rp: tuple[str, int] = ("127.0.0.1", PORT)
) -> Iterator[list[Pipe]]:
    """The pipes of an lp that is the test itself."""
    open_pipes: list[Pipe] = []
    try:
        for _ in range(pipes):
            open_pipes.append(Pipe(ns.connect(rp)))
        yield open_pipes
    finally:
        for pipe in open_pipes:
            pipe.sock.close()


class RawRp:
    """A listening socket that plays rp for a real lp."""

    def __init__(self, ns: Namespace, address: tuple[str, int] = ("127.0.0.1", PORT)) -> None:
        self.listener = ns.open_socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(64)
        self.listener.settimeout(10)

    def accept(self, pipes: int) -> list[Pipe]:
        return [Pipe(self.listener.accept()[0]) for _ in range(pipes)]


@contextmanager
def raw_rp(ns: Namespace) -> Iterator[RawRp]:
    rp = RawRp(ns)
    try:
        yield rp
    finally:
        rp.listener.close()
