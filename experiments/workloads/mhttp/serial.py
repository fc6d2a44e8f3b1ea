# SPDX-License-Identifier: MIT
"""What requests one after another allow: an object's time if each path does nothing but that.

A chunk takes a round trip and its bytes at the path's rate: there is no slow start, and no loss.
The first path is connected first; the others are when the first chunk is whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from experiments.workloads.mhttp.plan import chunks


class Connection(Protocol):
    """What asks by one path, once it is connected."""

    @property
    def rtt_s(self) -> float: ...

    def takes_s(self, size: int) -> float:
        """From a request to its last byte."""


@dataclass(frozen=True)
class Served:
    """By one path: bytes a second, and a round trip."""

    rate: float
    rtt_s: float

    def takes_s(self, size: int) -> float:
        return self.rtt_s + size / self.rate


def seconds(paths: Sequence[Connection], chunk_bytes: int, length: int) -> float:
    """Each path asks for the first chunk not yet asked for, from connect() on."""
    first, *rest = chunks(length, chunk_bytes)
    whole = paths[0].rtt_s + paths[0].takes_s(first.size)
    free = [whole, *(whole + it.rtt_s for it in paths[1:])]
    last = whole
    for part in rest:
        number = free.index(min(free))
        free[number] += paths[number].takes_s(part.size)
        last = max(last, free[number])
    return last
