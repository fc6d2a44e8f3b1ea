# SPDX-License-Identifier: MIT
"""Which parts of an object nobody was asked for yet."""

import bisect
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Range:
    """Bytes of an object, from `start` to the one before `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def field(self) -> str:
        """As the field Range has it: its last byte is in it."""
        return f"bytes={self.start}-{self.end - 1}"


def chunks(length: int, chunk_bytes: int) -> list[Range]:
    """ceil(length / chunk_bytes) of them; the last one may be shorter."""
    if chunk_bytes < 1:
        raise ValueError(f"a chunk of {chunk_bytes} bytes")
    starts = range(0, length, chunk_bytes)
    return [Range(start, min(start + chunk_bytes, length)) for start in starts]


class Plan:
    """The set D: what is to be asked for, in its order. What a lost connection owed comes back."""

    def __init__(self, length: int, chunk_bytes: int) -> None:
        self.waiting = chunks(length, chunk_bytes)

    def take(self, index: int) -> Range:
        return self.waiting.pop(index)

    def give_back(self, part: Range) -> None:
        bisect.insort(self.waiting, part)
