# SPDX-License-Identifier: MIT
"""The receiver's order: which messages that came may be delivered.

It is told what came and what was delivered, and returns what may be delivered from then on. All of
a round is delivered before anything of the next one. Where a round ends a reset message of the next
one tells.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.workloads.smt.dictionary import Dictionary
from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.header import ROUNDS, Header
from experiments.workloads.smt.hooks import Hooks


@dataclass(frozen=True)
class Message:
    header: Header
    payload: bytes


class Order:
    """`round` is the current one, `delivered` has its delivered messages."""

    def __init__(self) -> None:
        self.round = 0
        self.delivered = Dictionary()
        self.hooks = Hooks()
        self._came = Dictionary()
        self._blocked: dict[int, Message] = {}
        self._later: dict[int, dict[int, Message]] = {}
        self._terminations: dict[int, int] = {}

    def is_new(self, header: Header) -> bool:
        """Whether this message did not come yet."""
        ahead = (header.round - self.round) % ROUNDS
        if ahead == 0:
            return header.number not in self._came
        return ahead < ROUNDS // 2 and header.number not in self._later.get(header.round, ())

    def is_ready(self, header: Header) -> bool:
        """Whether this message could be delivered as soon as it came."""
        if header.round == self.round:
            return self._unmet(header) is None
        ends = header.termination is not None and header.round == (self.round + 1) % ROUNDS
        return ends and self.delivered.is_full_range(header.termination + 1)

    def came(self, message: Message) -> list[Message]:
        """A new message; what may be delivered now. Raises BadMessage."""
        header = message.header
        self._learn(header)
        if header.round == self.round:
            found = list(self._enter(message))
        else:
            self._later.setdefault(header.round, {})[header.number] = message
            found = []
        return found or self._next_round()

    def deliver(self, message: Message) -> list[Message]:
        """It was delivered; what may be delivered now, ascending."""
        number = message.header.number
        self.delivered.insert(number)
        found = []
        for it in self.hooks.wake(number):
            found += self._hang_or_release(self._blocked.pop(it))
        return found or self._next_round()

    def _learn(self, header: Header) -> None:
        """What a message tells of where a round ends."""
        last = self._terminations.get(header.round)
        if last is not None and header.number > last:
            raise BadMessage(f"message {header.number} of a round that ended with {last}")
        if header.termination is None:
            return
        before = (header.round - 1) % ROUNDS
        if (before - self.round) % ROUNDS >= ROUNDS // 2:
            return  # that round is over
        told = self._terminations.setdefault(before, header.termination)
        if told != header.termination:
            raise BadMessage(f"round {before} ends with {told}, and with {header.termination}")

    def _enter(self, message: Message) -> Iterator[Message]:
        self._came.insert(message.header.number)
        return self._hang_or_release(message)

    def _hang_or_release(self, message: Message) -> Iterator[Message]:
        unmet = self._unmet(message.header)
        if unmet is None:
            yield message
        else:
            self.hooks.hang(message.header.number, unmet)
            self._blocked[message.header.number] = message

    def _unmet(self, header: Header) -> int | None:
        return next((it for it in header.needs if it not in self.delivered), None)

    def _next_round(self) -> list[Message]:
        """Begins it once all of the current one is delivered."""
        last = self._terminations.get(self.round)
        if last is None or not self.delivered.is_full_range(last + 1):
            return []
        del self._terminations[self.round]
        self.round = (self.round + 1) % ROUNDS
        self.delivered.clear()
        self._came.clear()
        kept = self._later.pop(self.round, {})
        return [out for number in sorted(kept) for out in self._enter(kept[number])]
