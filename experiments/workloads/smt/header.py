# SPDX-License-Identifier: MIT
"""The header of a message: four words of 32 bits, most significant bit first.

    priority 7 | tag 7 | P 1 | R 1 | round 16
    message number 32
    NV 2 | dependencies 30          R set: termination number 32
    first pointer 32

The thesis names the fields and says that tag has 7 bits, the message number 32, and the
dependencies 30; the widths of priority, P, R, round and NV were lost with its figure, and are ours.
NV of 1, 2 or 3 dependencies leaves each of them 30, 15 or 10 bits. P and the first pointer are of
redundancy elimination, which we do not have: both are 0.
"""

import itertools
from dataclasses import dataclass

from experiments.workloads.smt.failure import BadMessage

SIZE = 16
CONTROL = 0  # the tag of control messages
TAGS = 1 << 7
PRIORITIES = 1 << 7
ROUNDS = 1 << 16
NUMBERS = 1 << 32
MOST_DEPENDENCIES = 3
BITS = (0, 30, 15, 10)  # of each dependency, by their number
_FIELD = 30


@dataclass(frozen=True)
class Header:
    """`deltas`: how far the dependencies lie back, the farthest first. `termination`: the last
    message number of the round before; None unless this is a reset message."""

    tag: int
    round: int
    number: int
    priority: int = 0
    deltas: tuple[int, ...] = ()
    termination: int | None = None

    @property
    def needs(self) -> tuple[int, ...]:
        """The numbers of the dependencies, ascending."""
        return tuple(self.number - it for it in self.deltas)

    def encode(self) -> bytes:
        first = self.priority << 25 | self.tag << 18 | self._is_reset << 16 | self.round
        words = (first, self.number, self._third(), 0)
        return b"".join(it.to_bytes(4, "big") for it in words)

    @property
    def _is_reset(self) -> bool:
        return self.termination is not None

    def _third(self) -> int:
        if self.termination is not None:
            assert not self.deltas, "a reset message has no dependencies in its round"
            return self.termination
        word, shift = len(self.deltas) << _FIELD, _FIELD
        for delta in self.deltas:
            bits = BITS[len(self.deltas)]
            assert 0 < delta < 1 << bits, f"{delta} does not fit into {bits} bits"
            shift -= bits
            word |= delta << shift
        return word


def decode(data: bytes) -> Header:
    """Raises BadMessage."""
    if len(data) < SIZE:
        raise BadMessage(f"a header of {len(data)} bytes")
    first, number, third, pointer = (
        int.from_bytes(data[at : at + 4], "big") for at in range(0, SIZE, 4)
    )
    if first >> 17 & 1 or pointer:
        raise BadMessage(f"message {number}: P is set, and nobody here eliminates redundancy")
    reset = bool(first >> 16 & 1)
    header = Header(
        tag=first >> 18 & TAGS - 1,
        round=first & ROUNDS - 1,
        number=number,
        priority=first >> 25,
        deltas=() if reset else _deltas(number, third),
        termination=third if reset else None,
    )
    if header.encode() != data[:SIZE]:
        raise BadMessage(f"message {number}: bits that no dependency uses are set")
    return header


def _deltas(number: int, third: int) -> tuple[int, ...]:
    count, shift = third >> _FIELD, _FIELD
    deltas = []
    for _ in range(count):
        shift -= BITS[count]
        deltas.append(third >> shift & (1 << BITS[count]) - 1)
    if any(not 0 < it <= number for it in deltas):
        raise BadMessage(f"message {number}: a dependency {deltas} before it is none of its round")
    if any(a <= b for a, b in itertools.pairwise(deltas)):
        raise BadMessage(f"message {number}: dependencies {deltas} are not the farthest first")
    return tuple(deltas)
