# SPDX-License-Identifier: MIT
"""Messages as they stand on a pipe, written from docs/wire-format.md."""

import ipaddress
import struct

FIN_ORDER, FIN_RESET, FIN_HALF = 0x88, 0x99, 0x77
VERSION_1, LARGE = 0x5F, 0x800  # features


def data(conn: int, number: int, payload: bytes) -> bytes:
    return struct.pack("<HIH", conn, number % 2**32, 8 + len(payload)) + payload


def syn(conn: int, address: str, port: int, number: int = 0) -> bytes:
    head = struct.pack("<HIH", conn, number, 0xFFFF)
    return head + ipaddress.IPv4Address(address).packed + struct.pack("<H", port)


def fin(conn: int, number: int, reason: int = FIN_ORDER) -> bytes:
    return struct.pack("<HIHB", conn, number % 2**32, 0xFFFE, reason)


def extension(body: bytes, number: int = 0) -> bytes:
    return struct.pack("<HIH", 0, number % 2**32, 8 + len(body)) + body


def hello(
    session: bytes, pipe: int, pipes: int, incarnation: int = 0, features: int = VERSION_1
) -> bytes:
    place = struct.pack("<16sBBI", session, pipe, pipes, incarnation)
    return extension(struct.pack("<BBI", 1, 1, features) + place + struct.pack("<BBHI", 0, 0, 0, 1))


def welcome(
    conn_early: int = 65536,
    session_early: int = 1 << 20,
    status: int = 0,
    features: int = VERSION_1,
) -> bytes:
    return extension(
        struct.pack("<BBIBHIIHI", 2, 1, features, status, 1024, conn_early, session_early, 120, 1)
    )


def synack(conn: int, number: int = 0, result: int = 0, offset: int = 1 << 16) -> bytes:
    return extension(struct.pack("<BHBQ", 3, conn, result, offset), number)


def window(conn: int, offset: int) -> bytes:
    return extension(struct.pack("<BHQ", 4, conn, offset))


def open_name(conn: int, name: str, port: int, number: int = 0) -> bytes:
    raw = name.encode()
    head = struct.pack("<BHBBB", 11, conn, 6, 0x6E, len(raw))
    return extension(head + raw + struct.pack("<HI", port, 1 << 16), number)
