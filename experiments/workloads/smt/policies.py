# SPDX-License-Identifier: MIT
"""Which connection carries what.

total     all on the first connection, each message after the one that left before it
even      each message on the next connection in turn: the published base version
least     each message where fewest bytes are queued
estimate  each message where it would be delivered first
closure   the same of a message and all that it depends on: as published
one-way   as estimate; what a round trip is longer than the least is a queue on the way there
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from experiments.workloads.smt.estimate import Estimate


class Carrier(Protocol):
    estimate: Estimate


T = TypeVar("T", bound="Carrier")


@dataclass(frozen=True)
class Policy:
    name: str
    ordered: bool = False
    whole: bool = False  # a closure goes over one connection
    one_way: bool = False


POLICIES = {
    it.name: it
    for it in (
        Policy("total", ordered=True),
        Policy("even"),
        Policy("least"),
        Policy("estimate"),
        Policy("closure", whole=True),
        Policy("one-way", one_way=True),
    )
}


class Selector:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._turn = 0

    def choose(self, of: Sequence[T], size: int, now: float, bulk: bool) -> T:
        """For a message, or a whole closure, of so many bytes."""
        name = self.policy.name
        if name == "total":
            return of[0]
        if name == "even":
            self._turn += 1
            return of[(self._turn - 1) % len(of)]
        if name == "least":
            return min(of, key=lambda it: it.estimate.queued(now))
        return soonest(of, size, now, bulk, one_way=self.policy.one_way)


def soonest(
    of: Sequence[T], size: int, now: float, bulk: bool = False, *, one_way: bool = False
) -> T:
    return min(of, key=lambda it: it.estimate.seconds(size, now, bulk, one_way=one_way))
