# SPDX-License-Identifier: MIT
"""The sender's rounds and message numbers.

A message gets its number when it leaves, after its dependencies. A new round begins where the
dependencies in the current round are more than three, or where one lies too far back for the bits
that it has, or where message numbers are used up. The receiver delivers nothing of a round before
all of the rounds before it.

A message without dependencies in its round is a reset message: it has room for the termination
number. So any of them tells the receiver where the round before ends, not the first one alone.
"""

from collections.abc import Iterable

from experiments.workloads.smt.header import (
    BITS,
    MOST_DEPENDENCIES,
    NUMBERS,
    ROUNDS,
    Header,
)


class Numbering:
    """`bits` of each dependency by their number, and `numbers` of a round, are smaller in tests."""

    def __init__(self, bits: tuple[int, ...] = BITS, numbers: int = NUMBERS) -> None:
        self.round = 0  # not taken modulo 2^16, which the header does
        self._bits, self._numbers = bits, numbers
        self._next = 0
        self._termination: int | None = None
        self._of_round: dict[int, int] = {}

    def header(self, message: int, needs: Iterable[int], tag: int, priority: int) -> Header:
        """Of the next message that leaves. `message` and `needs` are the ordering graph's."""
        found = [self._of_round[it] for it in needs if it in self._of_round]
        deltas = tuple(self._next - it for it in sorted(found))
        if self._next == self._numbers or not self._fit(deltas):
            self._begin_round()
            deltas = ()
        header = Header(
            tag=tag,
            round=self.round % ROUNDS,
            number=self._next,
            priority=priority,
            deltas=deltas,
            termination=None if deltas else self._termination,
        )
        self._of_round[message] = self._next
        self._next += 1
        return header

    def _fit(self, deltas: tuple[int, ...]) -> bool:
        if len(deltas) > MOST_DEPENDENCIES:
            return False
        return all(it < 1 << self._bits[len(deltas)] for it in deltas)

    def _begin_round(self) -> None:
        self._termination = self._next - 1
        self._next = 0
        self.round += 1
        self._of_round.clear()
