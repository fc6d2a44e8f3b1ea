# SPDX-License-Identifier: MIT
"""The baseline messages, written from the protocol's text alone.

A message starts with eight bytes, little-endian: connection id (2), number (4), length (2). The
length counts the header and is 9 to 4104 for data; 0xFFFF marks a SYN (six bytes follow: the
address as it is written, the port little-endian) and 0xFFFE a FIN (one byte follows: the reason).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct("<HIH")
PAYLOAD_MAX = 4096
MESSAGE_MIN = HEADER.size + 1
MESSAGE_MAX = HEADER.size + PAYLOAD_MAX
SYN = 0xFFFF
FIN = 0xFFFE
BY_FIN = 0x88
BY_RESET = 0x99


class Malformed(Exception):
    """A message that the protocol does not allow, in words for the one who sent it."""


class Message(NamedTuple):
    conn: int
    number: int
    reason: int  # of a FIN; 0 for data
    payload: bytes


def data(conn: int, number: int, payload: bytes) -> bytes:
    return HEADER.pack(conn, number, HEADER.size + len(payload)) + payload


def syn(conn: int, address: str, port: int) -> bytes:
    return HEADER.pack(conn, 0, SYN) + socket.inet_aton(address) + struct.pack("<H", port)


def fin(conn: int, number: int, reason: int) -> bytes:
    return HEADER.pack(conn, number, FIN) + bytes([reason])


class Reader:
    """One pipe's downlink bytes, cut into messages."""

    def __init__(self) -> None:
        self.pending = b""
        self.offset = 0  # of pending[0] in the pipe's stream
        self.messages = 0

    def feed(self, chunk: bytes) -> Iterator[Message]:
        stream = self.pending + chunk if self.pending else chunk
        at = 0
        try:
            while len(stream) - at >= HEADER.size:
                conn, number, length = HEADER.unpack_from(stream, at)
                size = self._size(conn, number, length, at)
                if len(stream) - at < size:
                    break
                body = stream[at + HEADER.size : at + size]
                at += size
                self.messages += 1
                if length == FIN:
                    yield self._fin(conn, number, body[0], at - size)
                else:
                    yield Message(conn, number, 0, body)
        finally:
            self.pending = stream[at:]
            self.offset += at

    def _size(self, conn: int, number: int, length: int, at: int) -> int:
        where = f"at byte {self.offset + at} (message {self.messages + 1} of the pipe)"
        if length == SYN:
            raise Malformed(f"{where} RP sent a SYN, which only LP may send")
        if length != FIN and not MESSAGE_MIN <= length <= MESSAGE_MAX:
            raise Malformed(
                f"{where} the length field is {length}; allowed are {MESSAGE_MIN} to "
                f"{MESSAGE_MAX}, the 8 header bytes included (read as id {conn}, number "
                f"{number}; or was the length of the message before it wrong?)"
            )
        if conn == 0:
            raise Malformed(f"{where} the connection id is 0")
        return HEADER.size + 1 if length == FIN else length

    def _fin(self, conn: int, number: int, reason: int, at: int) -> Message:
        if reason not in (BY_FIN, BY_RESET):
            raise Malformed(
                f"at byte {self.offset + at} the FIN of connection {conn} gives reason "
                f"0x{reason:02x}; allowed are 0x88 and 0x99"
            )
        return Message(conn, number, reason, b"")
