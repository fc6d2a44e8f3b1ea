# SPDX-License-Identifier: MIT
"""The sender: what leaves next, and what was not acknowledged yet.

It knows neither connections nor clock: a connection is whatever it is told that a message left by.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from experiments.workloads.smt.control import Ack
from experiments.workloads.smt.failure import BadInput
from experiments.workloads.smt.graph import Graph
from experiments.workloads.smt.header import CONTROL, ROUNDS, SIZE, TAGS, Header
from experiments.workloads.smt.numbering import Numbering
from experiments.workloads.smt.priorities import Class, Priorities


@dataclass(frozen=True)
class Limits:
    """Nothing more leaves while so many messages, or bytes, are not acknowledged. A closure leaves
    whole, so it may go beyond."""

    messages: int = 1024
    bytes: int = 4 << 20


@dataclass
class Outgoing:
    """`header` and `by` once it left."""

    message: int
    tag: int
    payload: bytes
    of: Class
    header: Header | None = None
    by: Hashable = None

    @property
    def size(self) -> int:
        return SIZE + len(self.payload)


@dataclass(frozen=True)
class Leaving:
    """`together`: over one connection where the policy says so. `bulk`: large, of the lowest
    priority, and bytes are what the sender is short of."""

    messages: list[Outgoing]
    bulk: bool = False

    @property
    def size(self) -> int:
        return sum(it.size for it in self.messages)


@dataclass
class Counts:
    left: int = 0
    again: int = 0
    most_unacked: int = 0
    most_unacked_bytes: int = 0


class Sender:
    """`ordered`: each message after the one that left before it, whatever it depends on."""

    def __init__(
        self,
        classes: Iterable[Class],
        limits: Limits,
        bulk_bytes: int,
        ordered: bool,
        numbering: Numbering | None = None,
    ) -> None:
        self.graph = Graph()
        self.counts = Counts()
        self.numbering = numbering or Numbering()
        self.unacked_bytes = 0
        self.short_of: Literal["messages", "bytes"] | None = None
        self._priorities = Priorities(classes, self._unit)
        self._limits, self._bulk_bytes, self._ordered = limits, bulk_bytes, ordered
        self._messages: dict[int, Outgoing] = {}
        self._unacked: dict[tuple[int, int], Outgoing] = {}
        self._oldest: deque[Outgoing] = deque()  # the same, in the order in which they left
        self._last: int | None = None
        self._stopped: set[int] = set()
        self._dropped: dict[int, Outgoing] = {}
        self._again: dict[int, Outgoing] = {}

    @property
    def waiting(self) -> int:
        """Messages that did not leave yet."""
        return len(self._priorities)

    @property
    def unacked(self) -> int:
        return len(self._unacked)

    def submit(self, tag: int, payload: bytes, needs: Iterable[int], priority: str) -> int:
        """The message's number in the ordering graph. Raises BadInput."""
        if not CONTROL < tag < TAGS:
            raise BadInput(f"tag {tag} is not from 1 to {TAGS - 1}")
        of = self._priorities.class_of(priority)
        message = self.graph.add(needs)
        self._messages[message] = Outgoing(message, tag, payload, of)
        self._priorities.add(message, of)
        return message

    def due(self) -> Leaving | None:
        """What is to leave now, if anything. It is then to be handed to `leave`, one by one."""
        if self._again:
            return Leaving([self._again.pop(next(iter(self._again)))])
        if self._is_full():
            return None
        unit = self._priorities.take()
        if unit is None:
            return None
        bulk = self.short_of == "bytes" and unit.size >= self._bulk_bytes
        bulk = bulk and unit.of.priority == self._priorities.lowest
        return Leaving([self._messages[it] for it in unit.messages], bulk)

    def _is_full(self) -> bool:
        """Remembers which limit it was the last time."""
        if len(self._unacked) >= self._limits.messages:
            self.short_of = "messages"
            return True
        if self.unacked_bytes >= self._limits.bytes:
            self.short_of = "bytes"
            return True
        return False

    def _unit(self, message: int) -> tuple[list[int], int] | None:
        """None while a STOP holds any of it back."""
        found = self.graph.closure(message, without=self._has_left)
        messages = [self._messages[it] for it in found]
        if any(it.tag in self._stopped for it in messages):
            return None
        return found, sum(it.size for it in messages)

    def _has_left(self, message: int) -> bool:
        return message not in self._messages or self._messages[message].header is not None

    def leave(self, it: Outgoing, by: Hashable) -> bytes:
        """The message as it leaves. One that leaves again has its old header."""
        it.by = by
        self.counts.left += 1
        if it.header is None:
            needs = self.graph.needs(it.message)
            if self._ordered:
                needs = () if self._last is None else (self._last,)
            it.header = self.numbering.header(it.message, needs, it.tag, it.of.priority)
            self._last = it.message
            self._unacked[it.header.round, it.header.number] = it
            self._oldest.append(it)
            self.unacked_bytes += it.size
            counts = self.counts
            counts.most_unacked = max(counts.most_unacked, len(self._unacked))
            counts.most_unacked_bytes = max(counts.most_unacked_bytes, self.unacked_bytes)
        else:
            self.counts.again += 1
        return it.header.encode() + it.payload

    def acked(self, ack: Ack) -> None:
        while self._oldest and _is_behind(it := self._oldest[0], ack):
            self._oldest.popleft()
            assert it.header is not None
            del self._unacked[it.header.round, it.header.number], self._messages[it.message]
            self._dropped.pop(it.message, None)
            self._again.pop(it.message, None)
            self.unacked_bytes -= it.size

    def stopped(self, tag: int) -> None:
        self._stopped.add(tag)

    def restarted(self, tag: int) -> None:
        self._stopped.discard(tag)
        for it in [it for it in self._dropped.values() if it.tag == tag]:
            self._repeat(it)

    def dropped(self, round_: int, number: int) -> None:
        """It leaves again: once its application takes messages again, if that was stopped."""
        it = self._unacked.get((round_, number))
        if it is None:
            return
        self._dropped[it.message] = it
        if it.tag not in self._stopped:
            self._repeat(it)

    def tick(self) -> None:
        """Every now and then the oldest one that was dropped leaves again in spite of a STOP:
        perhaps all that fills the buffer waits for it."""
        if self._oldest and self._oldest[0].message in self._dropped:
            self._repeat(self._oldest[0])

    def lost(self, by: Hashable) -> None:
        """A connection: what left by it and was not acknowledged leaves again."""
        for it in self._unacked.values():
            if it.by == by and it.message not in self._dropped:
                self._repeat(it)

    def _repeat(self, it: Outgoing) -> None:
        self._dropped.pop(it.message, None)
        self._again[it.message] = it


def _is_behind(it: Outgoing, ack: Ack) -> bool:
    assert it.header is not None
    ahead = (ack.round - it.header.round) % ROUNDS
    return 0 < ahead < ROUNDS // 2 or (ahead == 0 and it.header.number < ack.smallest)
