# SPDX-License-Identifier: MIT
"""Recomputes from the whole graph which messages of SMT are to be delivered: no code of SMT's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


def behind(graph: Sequence[Iterable[int]], message: int) -> set[int]:
    """All that it depends on, directly or not."""
    found: set[int] = set()
    left = [message]
    while left:
        more = set(graph[left.pop()]) - found
        found |= more
        left += more
    return found


@dataclass(frozen=True)
class Sent:
    """What the sender did with a message: its round, and whether it is a reset message."""

    round: int
    reset: bool


def deliverable(
    graph: Sequence[Iterable[int]], sent: Mapping[int, Sent], came: set[int]
) -> set[int]:
    """Every message that came, whose dependencies and earlier rounds are delivered, and of whose
    round and of each before it a reset message told that it began."""
    begun = {0} | {sent[it].round for it in came if sent[it].reset}
    found: set[int] = set()
    while True:
        more = {
            it
            for it in came - found
            if set(graph[it]) <= found
            and all(number in begun for number in range(sent[it].round + 1))
            and all(other in found for other in sent if sent[other].round < sent[it].round)
        }
        if not more:
            return found
        found |= more
