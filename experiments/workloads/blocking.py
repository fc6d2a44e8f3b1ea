# SPDX-License-Identifier: MIT
"""Whose loss made a connection wait: an account from what RP sent and what LP got of it.

Both ends of the last mile are captured, by one clock. Each message has

    due        when it arrived or, if a packet of it was lost, would have: when it was sent first,
               and the path's median delay
    arrived    all its bytes are there
    readable   and all that are before them in its pipe
    delivered  and all messages of its connection with lower numbers are

A connection is late while a message of it is due and not delivered. What it waits for is the first
of its messages that is not delivered: `own` loss from when that one was due until it arrived;
`others` while it is there but behind a hole in its pipe that belongs to a message of another
connection; `order` while it is on its way without a loss, on a pipe that takes longer.
"""

import bisect
import math
import statistics
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from experiments.workloads.pcap import Segment

HEADER, SYN, FIN = 8, 0xFFFF, 0xFFFE
CONTROL = 0  # not a connection: messages of the extension
SIZES = {SYN: 14, FIN: 9}
CAUSES = ("own", "others", "order")


class Message(NamedTuple):
    connection: int
    number: int
    start: int  # in its pipe's stream
    end: int


def messages(stream: bytes) -> Iterator[Message]:
    """The whole ones; docs/wire-format.md."""
    at = 0
    while at + HEADER <= len(stream):
        connection, number, length = struct.unpack_from("<HIH", stream, at)
        end = at + SIZES.get(length, length)
        if end <= at + HEADER:
            raise ValueError(f"no message begins at byte {at} of a pipe")
        if end > len(stream):
            return
        yield Message(connection, number, at, end)
        at = end


@dataclass
class Pipe:
    """One direction of a pipe: what was sent first when, what came when."""

    stream: bytearray = field(default_factory=bytearray)
    before: int = 0  # of it, what was sent before the account begins
    sent: list[tuple[int, float]] = field(default_factory=list)  # end of each first sending; when
    lost: list[tuple[int, int]] = field(default_factory=list)  # of the first sendings
    delays: list[float] = field(default_factory=list)
    fronts: list[tuple[float, int]] = field(default_factory=list)  # when; all before it is there
    pieces: list[tuple[int, int, float]] = field(default_factory=list)  # start, end; when it came
    messages: list[Message] = field(default_factory=list)

    def sent_at(self, end: int) -> float:
        return self.sent[bisect.bisect_left(self.sent, (end, 0.0))][1]

    def was_lost(self, it: Message) -> bool:
        return any(start < it.end and it.start < end for start, end in self.lost)

    def arrived_at(self, it: Message) -> float:
        """When the last of its bytes came."""
        first = bisect.bisect_right(self.pieces, it.start, key=lambda piece: piece[1])
        last = bisect.bisect_left(self.pieces, it.end, key=lambda piece: piece[0])
        return max(when for _, _, when in self.pieces[first:last])

    def readable_at(self, it: Message) -> float:
        return self.fronts[bisect.bisect_left(self.fronts, it.end, key=lambda at: at[1])][0]

    def owner(self, at: int) -> int:
        """The connection whose message has that byte."""
        found = bisect.bisect_right(self.messages, at, key=lambda it: it.start) - 1
        return self.messages[found].connection


def _offset(segment: Segment, base: int) -> int:
    """Of its first byte; below 0 if that was sent before the stream begins here."""
    return ((segment.seq - base + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def pipe_of(sent: Sequence[Segment], came: Sequence[Segment], since: float) -> Pipe:
    """Of one pipe's segments at the two ends; the first sent begins the stream.

    What was sent before `since` counts as there: the capture at the other end may have begun when
    some of it had gone by, and would miss it for ever."""
    it, base = Pipe(), sent[0].seq
    there = {(segment.seq, segment.sent_at): segment.time for segment in came}
    for segment in sent:
        start = _offset(segment, base)
        end = start + len(segment.data)
        if end <= len(it.stream):
            continue  # sent again
        if start > len(it.stream):
            raise ValueError(f"what a pipe sent from byte {len(it.stream)} on was not captured")
        if segment.time < since:
            it.before = end
        it.stream += segment.data[len(it.stream) - start :]
        it.sent.append((end, segment.time))
        arrived = there.get((segment.seq, segment.sent_at))
        if arrived is None:
            it.lost.append((start, end))
        else:
            it.delays.append(arrived - segment.time)
    it.messages = list(messages(bytes(it.stream)))
    _arrivals(it, came, base)
    return it


def _arrivals(it: Pipe, came: Sequence[Segment], base: int) -> None:
    ahead: list[tuple[int, int]] = []  # what is there behind a hole
    front = it.before
    for segment in came:
        start = _offset(segment, base)
        end = start + len(segment.data)
        fresh = _without(max(start, 0), end, [(0, front), *ahead])
        it.pieces += [(*piece, segment.time) for piece in fresh]
        ahead = sorted([*ahead, *fresh])
        while ahead and ahead[0][0] <= front:
            front = max(front, ahead.pop(0)[1])
        if fresh and (not it.fronts or it.fronts[-1][1] < front):
            it.fronts.append((segment.time, front))
    it.pieces.sort()


def _without(start: int, end: int, there: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of a range that are not there yet; what is there is in order."""
    left = []
    for since, until in there:
        if since > start:
            left.append((start, min(since, end)))
        start = max(start, until)
        if start >= end:
            break
    return [*(piece for piece in left if piece[0] < piece[1]), *([(start, end)] * (start < end))]


class Passage(NamedTuple):
    """A message's way; see above."""

    number: int
    sent: float
    due: float
    arrived: float
    readable: float
    pipe: Pipe
    lost: bool


def pipes_of(
    sent: Iterable[Segment], came: Iterable[Segment], since: float = -math.inf
) -> list[Pipe]:
    ways: tuple[dict[int, list[Segment]], ...] = (defaultdict(list), defaultdict(list))
    for way, captured in zip(ways, (sent, came), strict=True):
        for segment in captured:
            way[segment.to].append(segment)
    return [pipe_of(some, ways[1].get(port, []), since) for port, some in ways[0].items()]


def passages(pipes: Sequence[Pipe]) -> dict[int, list[Passage]]:
    """Of each connection that is wholly in the account, those that arrived, by number without a
    gap."""
    older = {it.connection for pipe in pipes for it in pipe.messages if it.start < pipe.before}
    delays = [delay for pipe in pipes for delay in pipe.delays]
    usual = statistics.median(delays) if delays else 0.0
    found: dict[int, list[Passage]] = defaultdict(list)
    for pipe in pipes:
        whole = pipe.fronts[-1][1] if pipe.fronts else 0
        for it in pipe.messages:
            if it.end > whole:
                break
            if it.connection == CONTROL or it.connection in older:
                continue
            sent, arrived, lost = pipe.sent_at(it.end), pipe.arrived_at(it), pipe.was_lost(it)
            due = min(arrived, sent + usual) if lost else arrived
            found[it.connection].append(
                Passage(it.number, sent, due, arrived, pipe.readable_at(it), pipe, lost)
            )
    for some in found.values():
        some[:] = _first_of_copies(some)
        last = some[0].number
        whole_run = [n for n, it in enumerate(some) if it.number == last + n]
        del some[len(whole_run) :]
    return found


def _first_of_copies(some: Iterable[Passage]) -> list[Passage]:
    """By number. The extension may send a message again on another pipe: the first to be readable
    is the one that counts."""
    first: dict[int, Passage] = {}
    for it in some:
        known = first.get(it.number)
        if known is None or it.readable < known.readable:
            first[it.number] = it
    return [first[number] for number in sorted(first)]


def late(some: Sequence[Passage], connection: int) -> dict[str, float]:
    """Seconds in which a connection was late, by cause; and those it lived."""
    found = dict.fromkeys(CAUSES, 0.0)
    earliest = [passage.due for passage in some]  # of this and all later ones
    for n in range(len(some) - 2, -1, -1):
        earliest[n] = min(earliest[n], earliest[n + 1])
    delivered = 0.0
    for it, due in zip(some, earliest, strict=True):
        since, until = max(delivered, due), max(delivered, it.readable)
        if since < until:
            _divide(found, it, connection, since, until)
        delivered = until
    return {**found, "lived": delivered - some[0].sent}


def _divide(
    found: dict[str, float], it: Passage, connection: int, since: float, until: float
) -> None:
    """The seconds between two times in which this message is what the connection waits for."""
    found["order"] += max(0.0, min(until, it.due) - since)
    found["own" if it.lost else "order"] += max(0.0, min(until, it.arrived) - max(since, it.due))
    at = max(since, it.arrived)
    before = 0
    for when, front in (*it.pipe.fronts, (until, 0)):
        end = min(when, until)
        if end > at:  # up to then the pipe was there up to `before`
            cause = "own" if it.pipe.owner(before) == connection else "others"
            found[cause] += end - at
            at = end
        before = front
        if at >= until:
            return


def account(
    sent: Iterable[Segment], came: Iterable[Segment], since: float = -math.inf
) -> dict[int, dict[str, float]]:
    """By connection, of those that RP began to send after that time."""
    some = passages(pipes_of(sent, came, since))
    return {connection: late(its, connection) for connection, its in some.items()}
