# SPDX-License-Identifier: MIT
"""Messages as they stand on a pipe, written from docs/wire-format.md."""

import ipaddress
import struct

FIN_ORDER, FIN_RESET, FIN_HALF = 0x88, 0x99, 0x77


def data(conn: int, number: int, payload: bytes) -> bytes:
    return struct.pack("<HIH", conn, number % 2**32, 8 + len(payload)) + payload


def syn(conn: int, address: str, port: int, number: int = 0) -> bytes:
    head = struct.pack("<HIH", conn, number, 0xFFFF)
    return head + ipaddress.IPv4Address(address).packed + struct.pack("<H", port)


def fin(conn: int, number: int, reason: int = FIN_ORDER) -> bytes:
    return struct.pack("<HIHB", conn, number % 2**32, 0xFFFE, reason)


def extension(body: bytes) -> bytes:
    return struct.pack("<HIH", 0, 0, 8 + len(body)) + body


def hello(session: bytes, pipe: int, pipes: int, features: int = 0x7F) -> bytes:
    return extension(
        struct.pack("<BBI16sBBHQII", 1, 1, features, session, pipe, pipes, 0, 0, 1 << 20, 1 << 24)
    )


def welcome(features: int = 0x7F, conn_early: int = 65536, session_early: int = 1 << 20) -> bytes:
    return extension(
        struct.pack("<BBIBQIIII", 2, 1, features, 0, 0, 1 << 20, 1 << 24, conn_early, session_early)
    )


def synack(conn: int, result: int = 0) -> bytes:
    return extension(struct.pack("<BHB", 3, conn, result))


def open_name(conn: int, name: str, port: int) -> bytes:
    raw = name.encode()
    return extension(struct.pack("<BHBB", 11, conn, 0x6E, len(raw)) + raw + struct.pack("<H", port))
