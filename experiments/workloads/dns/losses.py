# SPDX-License-Identifier: MIT
"""Which query paid for each packet that linkem dropped, over UDP.

A datagram is a packet. The n-th one sent is packet n of its direction, and since the server
answers in order, packet n from it answers the n-th of those that reached it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base import jsonl


@dataclass(frozen=True)
class Drop:
    way: str  # up: to the server; down
    number: int
    why: str


@dataclass(frozen=True)
class Paid:
    drop: Drop
    query: int


def read(path: Path) -> list[Drop]:
    """Linkem's file of drops; a is the client's side. A line that is not whole yet is none."""
    ways = {"ab": "up", "ba": "down"}
    return [Drop(ways[it["dir"]], it["n"], it["why"]) for it in jsonl.records(path.read_text())]


def paid(sent: Sequence[int], drops: Sequence[Drop]) -> tuple[list[Paid], list[Drop]]:
    """Each drop with its query, and drops of packets that were no datagram of these."""
    up = {it.number: it for it in drops if it.way == "up"}
    down = {it.number: it for it in drops if it.way == "down"}
    arrived = [query for number, query in enumerate(sent) if number not in up]
    found = [Paid(up[n], query) for n, query in enumerate(sent) if n in up]
    found += [Paid(down[n], query) for n, query in enumerate(arrived) if n in down]
    mine = {it.drop for it in found}
    return found, [it for it in drops if it not in mine]


def unexplained(tries: Sequence[int], took: Sequence[float | None], its: Sequence[Paid]) -> str:
    """In words the first query that was not asked again just as often as it was lost; or "".

    One that was given up lost all of its tries."""
    lost = Counter(it.query for it in its)
    for number, (tried, seconds) in enumerate(zip(tries, took, strict=True)):
        owed = tried - (seconds is not None)
        if lost[number] != owed:
            return f"query {number} was lost {lost[number]} times and asked {tried} times"
    return ""
