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
LISTEN = 0x100
PATH = 0x200
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
    path: int = 0
    flags: int = 0
    cost: int = 0

    def to_bytes(self) -> bytes:
        body = _HELLO.pack(
            1, self.version, self.features, self.session, self.pipe, self.pipes,
            self.incarnation, self.path, self.flags, self.cost, 1 << 20,
        )  # fmt: skip
        return wire.data(0, 0, body)


def hello_of(message: wire.Message | None) -> Hello:
    """What lp said; fails unless it is a HELLO of version 1 to the byte."""
    assert message is not None and message.kind == "data", message
    assert (message.conn, message.number) == (0, 0), message
    assert len(message.body) == _HELLO.size, message
    kind, version, features, session, *pipe, path, flags, cost, _ = _HELLO.unpack(message.body)
    assert kind == 1 and version == 1 and features & VERSION_1 == VERSION_1, message
    return Hello(session, *pipe, version, features, path, flags, cost)


def open_(
    conn: int, host: str, port: int, window: int = 1 << 16, number: int = 0, protocol: int = TCP
) -> bytes:
    """OPEN to an IPv4 address."""
    address = socket.inet_aton(host)
    body = struct.pack("<BHBBB", 11, conn, protocol, 4, len(address))
    return wire.data(0, number, body + address + struct.pack("<HI", port, window))


def open_name(conn: int, name: str, port: int) -> bytes:
    """OPEN to a name."""
    body = struct.pack("<BHBBB", 11, conn, TCP, ord("n"), len(name)) + name.encode()
    return wire.data(0, 0, body + struct.pack("<HI", port, 1 << 16))


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


def listen(listener: int, host: str, port: int, protocol: int = TCP) -> bytes:
    """LISTEN on an address; what is neither IPv4 nor IPv6 goes as a name."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        address, kind = socket.inet_pton(family, host), 6 if ":" in host else 4
    except OSError:
        address, kind = host.encode(), ord("n")
    body = struct.pack("<BHBBB", 13, listener, protocol, kind, len(address)) + address
    return wire.data(0, 0, body + struct.pack("<H", port))


def listening(listener: int, result: int, port: int = 0) -> bytes:
    return wire.data(0, 0, struct.pack("<BHBH", 14, listener, result, port))


def open_of(
    conn: int, listener: int, host: str = "192.0.2.9", kind: str = "L", number: int = 0
) -> bytes:
    """RP's OPEN for who came from `host` to a listener; of kind "\\4" it is one to `host`."""
    address = (struct.pack("<H", listener) if kind == "L" else b"") + socket.inet_aton(host)
    body = struct.pack("<BHBBB", 11, conn, TCP, ord(kind), len(address)) + address
    return wire.data(0, number, body + struct.pack("<HI", 4711, 1 << 16))


def listening_of(message: wire.Message | None) -> tuple[int, int, int] | None:
    """Listener, result and port of a LISTENING; None: it is another message."""
    assert message is not None, "the pipe ended"
    if message.kind != "data" or message.conn or message.body[0] != 14:
        return None
    _, listener, result, port = struct.unpack("<BHBH", message.body)
    return listener, result, port


def path(number: int, serial: int, state: int = 0, cost: int = 0) -> bytes:
    return wire.data(0, 0, struct.pack("<BBBHI", 15, number, state, cost, serial))


def welcome(status: int, features: int = VERSION_1) -> bytes:
    body = _WELCOME.pack(2, 1, features, status, 1000, 1 << 16, 1 << 20, 120, 1 << 20)
    return wire.data(0, 0, body)


def status_of(message: wire.Message | None) -> int:
    """The status in a WELCOME of rp's."""
    assert message is not None and message.kind == "data", message
    assert (message.conn, message.number) == (0, 0), message
    assert len(message.body) == _WELCOME.size and message.body[0] == 2, message
    return int(_WELCOME.unpack(message.body)[3])
