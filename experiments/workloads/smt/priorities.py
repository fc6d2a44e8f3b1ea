# SPDX-License-Identifier: MIT
"""The sender's priority scheduler: strict priorities, and within each weighted shares.

A message's class has a priority and a weight. The highest priority with anything to send comes
first. Its classes share by weighted deficit round robin (Shreedhar and Varghese). A message hands
its priority and its share on to all that it depends on: these leave with it, at the cost of its
class.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from experiments.workloads.smt.failure import BadInput
from experiments.workloads.smt.header import PRIORITIES

QUANTUM = 4096  # bytes in each turn of a class of weight 1


@dataclass(frozen=True)
class Class:
    """Of messages. The larger `priority` comes first."""

    name: str
    priority: int = 0
    weight: int = 1

    @classmethod
    def of(cls, text: str) -> "Class":
        """NAME=PRIORITY[:WEIGHT]. Raises BadInput."""
        name, _, told = text.partition("=")
        priority, _, weight = told.partition(":")
        try:
            found = cls(name, int(priority), int(weight or "1"))
        except ValueError:
            raise BadInput(f"priority {text!r} is not NAME=PRIORITY[:WEIGHT]") from None
        if not name or not 0 <= found.priority < PRIORITIES or not 0 < found.weight <= 1000:
            raise BadInput(
                f"priority {text!r}: PRIORITY is from 0 to {PRIORITIES - 1}, WEIGHT from 1 to 1000"
            )
        return found


@dataclass(frozen=True)
class Unit:
    """Messages that leave together: one, after those that it depends on and that did not leave."""

    messages: list[int]
    size: int
    of: Class


@dataclass
class Turns:
    """The classes of one priority. The first one's turn it is; each has a credit of bytes."""

    classes: deque[Class]
    queues: dict[Class, deque[int]] = field(default_factory=dict)
    credit: dict[Class, int] = field(default_factory=dict)

    def take(self, units: dict[Class, Unit]) -> Unit:
        """One of these, the first of each class that has any."""
        while True:
            mine = self.classes[0]
            if mine in units and units[mine].size <= self.credit.get(mine, 0):
                self.credit[mine] -= units[mine].size
                return units[mine]
            if mine not in units:
                self.credit[mine] = 0
            self.classes.rotate(-1)
            following = self.classes[0]
            self.credit[following] = self.credit.get(following, 0) + QUANTUM * following.weight


class Priorities:
    """Messages that wait, by class. `unit` tells what would leave with a message, and its bytes;
    None where it must not leave now."""

    def __init__(
        self,
        classes: Iterable[Class],
        unit: Callable[[int], tuple[list[int], int] | None],
    ) -> None:
        self._classes = {it.name: it for it in classes}
        self._unit = unit
        self._waiting: set[int] = set()
        self._turns = {
            priority: Turns(deque(it for it in self._classes.values() if it.priority == priority))
            for priority in sorted({it.priority for it in self._classes.values()}, reverse=True)
        }

    @property
    def lowest(self) -> int:
        return min(self._turns)

    def __len__(self) -> int:
        return len(self._waiting)

    def class_of(self, name: str) -> Class:
        """Raises BadInput."""
        if name not in self._classes:
            raise BadInput(f"unknown priority {name!r}: it is none of {', '.join(self._classes)}")
        return self._classes[name]

    def add(self, message: int, of: Class) -> None:
        self._turns[of.priority].queues.setdefault(of, deque()).append(message)
        self._waiting.add(message)

    def take(self) -> Unit | None:
        """What leaves next; it waits no more."""
        for turns in self._turns.values():
            units = {it: found for it in turns.queues if (found := self._first(turns, it))}
            if units:
                unit = turns.take(units)
                self._waiting.difference_update(unit.messages)
                return unit
        return None

    def _first(self, turns: Turns, of: Class) -> Unit | None:
        """Of the first message that may leave; those that left with others are forgotten."""
        queue = turns.queues[of]
        while queue and queue[0] not in self._waiting:
            queue.popleft()
        for message in queue:
            if message in self._waiting and (found := self._unit(message)) is not None:
                return Unit(*found, of)
        return None
