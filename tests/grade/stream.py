# SPDX-License-Identifier: MIT
"""Bytes to send that can be made again anywhere, and bytes that came, checked as they come."""

from __future__ import annotations

import hashlib
import random

from .failure import Failure

BLOCK = 1 << 16
COLLECT_MAX = 1 << 20


class Pattern:
    """`size` bytes that follow from `seed` alone; no two blocks of them are alike."""

    def __init__(self, seed: int, size: int) -> None:
        self.size = size
        self.base = random.Random(seed).randbytes(BLOCK + 4096)

    def read(self, offset: int, count: int) -> bytes:
        end = min(offset + count, self.size)
        parts = []
        while offset < end:
            index, within = divmod(offset, BLOCK)
            part = self._block(index)[within : within + end - offset]
            parts.append(part)
            offset += len(part)
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _block(self, index: int) -> bytes:
        start = index * 7919 % 4096
        return index.to_bytes(8, "little") + self.base[start : start + BLOCK - 8]


class Inbox:
    """What one end of a connection received, in order.

    Without an expectation bytes are collected; with one they are compared at once, so that a
    wrong byte is found where it is and a flood cannot fill the grader's memory.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.data = bytearray()
        self.expected: Pattern | None = None
        self.digest = hashlib.sha256()

    def __len__(self) -> int:
        return self.count

    def expect(self, pattern: Pattern) -> None:
        early, self.data, self.count = bytes(self.data), bytearray(), 0
        self.expected = pattern
        self.digest = hashlib.sha256()
        if early:
            self.feed(early)

    @property
    def complete(self) -> bool:
        return self.expected is not None and self.count == self.expected.size

    def feed(self, chunk: bytes) -> None:
        if self.expected is None:
            self.data += chunk
            if len(self.data) > COLLECT_MAX:
                raise Failure(f"{self.name} got {len(self.data)} bytes that nobody sent")
        else:
            due = self.expected.read(self.count, len(chunk))
            if due != chunk:
                at = first_difference(due, chunk)
                raise Failure(
                    f"{self.name}: byte {self.count + at} of {self.expected.size} is wrong: "
                    f"{around(chunk, at)} came, {around(due, at)} was sent"
                )
            self.digest.update(chunk)
        self.count += len(chunk)

    def same_as(self, sent: bytes) -> bool:
        """True when exactly `sent` is here; a wrong byte is a failure at once."""
        got = bytes(self.data)
        if not sent.startswith(got):
            at = first_difference(sent, got)
            raise Failure(
                f"{self.name}: byte {at} is wrong: {around(got, at)} came, "
                f"{around(sent, at)} was sent"
            )
        return len(got) == len(sent)


def first_difference(one: bytes, other: bytes) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


def around(data: bytes, at: int) -> str:
    piece = data[at : at + 8]
    return piece.hex(" ") if piece else "nothing more"
