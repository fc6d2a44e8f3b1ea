# SPDX-License-Identifier: MIT
"""HELLO and WELCOME by hand, for tests that play one end of the extension.

Written from docs/wire-format.md, not from mux/, so that both cannot share a mistake.
"""

import socket
import struct
from dataclasses import dataclass

from tests.relay import wire

PORT = 6010
VERSION_1 = 0x5F
DATAGRAM = 0x80
TCP, UDP = 6, 17
NEW, RESUMED, UNKNOWN, REFUSED, BUSY = range(5)
_HELLO = struct.Struct("<BBI16sBBIBBHI")
_WELCOME = struct.Struct("<BBIBHIIHI")


@dataclass(frozen=True)
class Hello:
    session: bytes
    pipe: int
    pipes: int
    incarnation: int = 0
    version: int = 1
    features: int = VERSION_1

    def to_bytes(self) -> bytes:
        body = _HELLO.pack(
            1, self.version, self.features, self.session, self.pipe, self.pipes,
            self.incarnation, 0, 0, 0, 1 << 20,
        )  # fmt: skip
        return wire.data(0, 0, body)


def hello_of(message: wire.Message | None) -> Hello:
    """What lp said; fails unless it is a HELLO of version 1 to the byte."""
    assert message is not None and message.kind == "data", message
    assert (message.conn, message.number) == (0, 0), message
    assert len(message.body) == _HELLO.size, message
    kind, version, features, session, pipe, pipes, incarnation, *_ = _HELLO.unpack(message.body)
    assert kind == 1 and version == 1 and features & VERSION_1 == VERSION_1, message
    return Hello(session, pipe, pipes, incarnation, version, features)


def open_(
    conn: int, host: str, port: int, window: int = 1 << 16, number: int = 0, protocol: int = TCP
) -> bytes:
    """OPEN to an IPv4 address."""
    address = socket.inet_aton(host)
    body = struct.pack("<BHBBB", 11, conn, protocol, 4, len(address))
    return wire.data(0, number, body + address + struct.pack("<HI", port, window))


def open_flow(conn: int, host: str, port: int) -> bytes:
    """OPEN of a flow of datagrams to an IPv4 address."""
    body = struct.pack("<BHBBB", 11, conn, UDP, 4, 4) + socket.inet_aton(host)
    return wire.data(0, 0, body + struct.pack("<HI", port, 0))


def datagram(
    conn: int, payload: bytes, kind: int = 0, address: bytes = b"", port: int = 0
) -> bytes:
    """DATAGRAM, as right or wrong as the caller wants its address."""
    body = struct.pack("<BHBB", 12, conn, kind, len(address)) + address
    return wire.data(0, 0, body + struct.pack("<H", port) + payload)


def welcome(status: int, features: int = VERSION_1) -> bytes:
    body = _WELCOME.pack(2, 1, features, status, 1000, 1 << 16, 1 << 20, 120, 1 << 20)
    return wire.data(0, 0, body)


def status_of(message: wire.Message | None) -> int:
    """The status in a WELCOME of rp's."""
    assert message is not None and message.kind == "data", message
    assert (message.conn, message.number) == (0, 0), message
    assert len(message.body) == _WELCOME.size and message.body[0] == 2, message
    return int(_WELCOME.unpack(message.body)[3])
