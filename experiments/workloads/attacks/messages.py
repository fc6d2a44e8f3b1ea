# SPDX-License-Identifier: MIT
"""Messages of pipes by hand, right or wrong as an attack wants them.

Written from docs/wire-format.md, not from mux/, so that both cannot share a mistake.
"""

import socket
import struct
from dataclasses import dataclass

SYN = 0xFFFF
FIN = 0xFFFE
BY_FIN = 0x88
BY_RST = 0x99
HEADER = struct.Struct("<HIH")
VERSION_1 = 0x5F
TCP = 6
HELLO = struct.Struct("<BBI16sBBIBBHI")


def header(conn: int, number: int, length: int) -> bytes:
    return HEADER.pack(conn, number, length)


def syn(conn: int, host: str, port: int, number: int = 0) -> bytes:
    return header(conn, number, SYN) + socket.inet_aton(host) + struct.pack("<H", port)


def data(conn: int, number: int, payload: bytes) -> bytes:
    return header(conn, number, len(payload) + HEADER.size) + payload


def fin(conn: int, number: int, reason: int = BY_FIN) -> bytes:
    return header(conn, number, FIN) + bytes([reason])


def ping(token: int) -> bytes:
    return data(0, 0, struct.pack("<BQQ", 5, token, 0))


@dataclass(frozen=True)
class Hello:
    session: bytes
    pipe: int
    pipes: int
    incarnation: int = 0
    version: int = 1
    features: int = VERSION_1

    def to_bytes(self) -> bytes:
        body = HELLO.pack(
            1, self.version, self.features, self.session, self.pipe, self.pipes,
            self.incarnation, 0, 0, 0, 1 << 20,
        )  # fmt: skip
        return data(0, 0, body)


def open_(
    conn: int, host: str, port: int, window: int = 1 << 16, number: int = 0, protocol: int = TCP
) -> bytes:
    """OPEN to an IPv4 address."""
    address = socket.inet_aton(host)
    body = struct.pack("<BHBBB", 11, conn, protocol, 4, len(address))
    return data(0, number, body + address + struct.pack("<HI", port, window))
