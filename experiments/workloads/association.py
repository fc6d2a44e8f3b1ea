# SPDX-License-Identifier: MIT
"""A client's UDP socket to one server: straight there, or by one of lp's two ways in.

`socks5`: an association by UDP ASSOCIATE, whose header each datagram has. `forward`: a port of the
client's loopback, which lp relays to the server's port of the same number.
"""

import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Literal, Self

from experiments.workloads.exchange import read_exactly

LOOPBACK = "127.0.0.1"
SOCKS = (LOOPBACK, 1080)  # where lp listens
REPLY_BYTES = 10  # of SOCKS5, with an IPv4 address
LARGEST = 65_536
Address = tuple[str, int]
Entry = Literal["none", "socks5", "forward"]  # how datagrams come to lp; none: they do not


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


def forwards(address: str, ports: Iterable[int]) -> list[str]:
    """lp's options for the entry `forward` to these ports of a server."""
    return [f"--forward=udp:{port}:{address}:{port}" for port in ports]


class Association:
    """By SOCKS5, lp's header is taken off again. What others send is not heard."""

    def __init__(self, to: Address, *, entry: Entry, seconds: float) -> None:
        socks = entry == "socks5"
        self._head = wrapped(to) if socks else b""
        self._control = socket.create_connection(SOCKS, seconds) if socks else None
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        straight = (LOOPBACK, to[1]) if entry == "forward" else to
        try:
            self.sock.connect(associate(self._control) if self._control else straight)
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
        self.sock.close()
        if self._control:
            self._control.close()

    def send(self, payload: bytes) -> None:
        self.sock.send(self.packed(payload))

    def receive(self, seconds: float) -> bytes:
        """The next datagram's payload; TimeoutError if none comes."""
        self.sock.settimeout(max(seconds, 1e-6))
        return self.payload(self.sock.recv(LARGEST))

    def packed(self, payload: bytes) -> bytes:
        """As it goes over the socket."""
        return self._head + payload

    def payload(self, data: bytes) -> bytes:
        """Of what came over the socket. Raises NotRelayed."""
        if not data.startswith(self._head):
            raise NotRelayed(f"a datagram from elsewhere: {data[:REPLY_BYTES].hex()}")
        return data[len(self._head) :]
