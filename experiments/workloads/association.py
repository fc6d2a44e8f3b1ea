# SPDX-License-Identifier: MIT
"""A client's UDP socket to one server: its own, or one that lp relays by SOCKS5's UDP ASSOCIATE."""

import socket
import struct
from types import TracebackType
from typing import Self

from experiments.workloads.exchange import read_exactly

SOCKS = ("127.0.0.1", 1080)  # where lp listens
REPLY_BYTES = 10  # of SOCKS5, with an IPv4 address
LARGEST = 65_536
Address = tuple[str, int]


class NotRelayed(OSError):
    """lp does not carry datagrams here."""


def wrapped(to: Address) -> bytes:
    """What SOCKS5 puts in front of each datagram to or from an IPv4 address."""
    return b"\0\0\0\1" + socket.inet_aton(to[0]) + struct.pack("!H", to[1])


def associate(control: socket.socket) -> Address:
    """Where lp takes the datagrams of this control connection."""
    control.sendall(b"\5\1\0")
    if read_exactly(control, 2) != b"\5\0":
        raise NotRelayed("lp does not greet as SOCKS5 does")
    control.sendall(b"\5\3" + wrapped(("0.0.0.0", 0))[2:])
    reply = read_exactly(control, REPLY_BYTES)
    if len(reply) < REPLY_BYTES or reply[1]:
        raise NotRelayed(f"lp refused UDP ASSOCIATE: {reply.hex()}")
    return socket.inet_ntoa(reply[4:8]), struct.unpack("!H", reply[8:])[0]


class Association:
    """`relayed`: by lp, whose header is taken off again. What others send is not heard."""

    def __init__(self, to: Address, *, relayed: bool, seconds: float) -> None:
        self._head = wrapped(to) if relayed else b""
        self._control = socket.create_connection(SOCKS, seconds) if relayed else None
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._sock.connect(associate(self._control) if self._control else to)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()
        if self._control:
            self._control.close()

    def send(self, payload: bytes) -> None:
        self._sock.send(self._head + payload)

    def receive(self, seconds: float) -> bytes:
        """The next datagram's payload; TimeoutError if none comes."""
        self._sock.settimeout(max(seconds, 1e-6))
        data = self._sock.recv(LARGEST)
        if not data.startswith(self._head):
            raise NotRelayed(f"a datagram from elsewhere: {data[:REPLY_BYTES].hex()}")
        return data[len(self._head) :]
