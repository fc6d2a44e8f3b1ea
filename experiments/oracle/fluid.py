# SPDX-License-Identifier: MIT
"""A batch of messages over paths, as a fluid: when each is complete under two policies.

Every path carries bytes at its rate and delivers them its delay later; nothing is lost, windows are
grown, sizes are known, and a decision costs nothing. fcfs and srpt decide anew whenever something
changes, so that bytes move from one path to another without a remainder. Turns of rr are quanta:
what a path has begun it ends, and it no longer remains for the rule.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.oracle import optimum
from experiments.oracle.path import OracleError, Path, check_size, nearest_first
from experiments.oracle.policies import PathPolicy, connection_policy, dealt, path_policy

QUANTUM = 1460  # bytes
MOST_TURNS = 10**6  # more take minutes
_LEAST = 1e-6  # bytes: less than that is a rounding error


@dataclass(frozen=True)
class Message:
    """An object that a connection has to send, from its arrival on wholly there."""

    size: float
    arrival: float = 0.0


@dataclass(frozen=True)
class Piece:
    """Bytes of a message that a path sent without a break."""

    message: int  # its place among those given
    path: str
    start: float
    end: float
    size: float


@dataclass(frozen=True)
class Outcome:
    completions: list[float]  # when each message's last byte arrived, in the order given
    ends: dict[str, float]  # when each path's last byte arrived; 0 where it carried none
    pieces: list[Piece]
    messages: Sequence[Message]

    @property
    def times(self) -> list[float]:
        """From each message's arrival to its last byte."""
        pairs = zip(self.completions, self.messages, strict=True)
        return [done - it.arrival for done, it in pairs]

    @property
    def mean(self) -> float:
        return sum(self.times) / len(self.times)


@dataclass
class _Lane:
    """A path at work."""

    path: Path
    bound: float  # the rule: it takes bytes behind which more than that remains
    turn: int | None = None  # the message of a quantum that it has begun
    left: float = 0.0  # of that quantum
    next: int = 0  # whose turn it is, where turns are a path's own
    serves: int | None = None
    piece: int = -1  # the last that it sent, among all
    done: dict[int, float] = field(default_factory=dict)  # by message: when its last byte arrived


def check(messages: Sequence[Message]) -> None:
    for it in messages:
        check_size(it.size)
        if not (math.isfinite(it.arrival) and it.arrival >= 0):
            raise OracleError(f"an arrival at {it.arrival:g} s is not 0 or later")


def simulate(
    paths: Sequence[Path],
    messages: Sequence[Message],
    connection: str = "srpt",
    path: str = "ecf",
    quantum: float = QUANTUM,
) -> Outcome:
    """What becomes of the messages. srpt and ecf are SRPT-ECF, rr and ecf SA-ECF."""
    ordered = nearest_first(paths)
    check(messages)
    check_size(quantum)
    turns = sum(it.size for it in messages) / quantum
    if connection == "rr" and turns > MOST_TURNS:
        raise OracleError(f"{turns:.0f} turns of {quantum:g} bytes: at most {MOST_TURNS}")
    return _Run(
        ordered, messages, connection_policy(connection), path_policy(path, ordered), quantum
    ).outcome()


class _Run:
    def __init__(
        self,
        paths: list[Path],
        messages: Sequence[Message],
        connection: str,
        policy: PathPolicy,
        quantum: float,
    ) -> None:
        bounds = optimum.thresholds(paths)
        self.paths = paths
        self.messages = messages
        self.connection = connection
        self.policy = policy
        self.quantum = quantum
        ruled = policy.kind == "ecf"
        self.lanes = [_Lane(it, bounds[it.name] if ruled else 0.0) for it in paths]
        # Bytes not yet begun: of a message for all lanes, or of each lane where they were dealt.
        self.pools: dict[tuple[int, int], float] = {}
        self.order: list[int] = []
        self.turn = 0
        self.now = 0.0
        self.pieces: list[Piece] = []

    def outcome(self) -> Outcome:
        coming = sorted(range(len(self.messages)), key=lambda i: (self.messages[i].arrival, i))
        while coming or self._busy():
            if not self._busy():
                self.now = max(self.now, self.messages[coming[0]].arrival)
            came = [i for i in coming if self.messages[i].arrival <= self.now]
            for i in came:
                coming.remove(i)
                self._admit(i)
            if came and self.connection == "srpt":
                self.order.sort(key=lambda i: (self._isolated(i), self.messages[i].arrival, i))
            for lane in range(len(self.lanes)):
                self._decide(lane)
            self._advance(self.messages[coming[0]].arrival if coming else math.inf)
        return Outcome(
            [self._completion(i) for i in range(len(self.messages))],
            {lane.path.name: max(lane.done.values(), default=0.0) for lane in self.lanes},
            self.pieces,
            self.messages,
        )

    def _busy(self) -> bool:
        return bool(self.pools) or any(lane.turn is not None for lane in self.lanes)

    def _key(self, message: int, lane: int) -> tuple[int, int]:
        return message, lane if self.policy.deals else -1

    def _admit(self, message: int) -> None:
        size = self.messages[message].size
        self.order.append(message)
        if not self.policy.deals:
            self.pools[message, -1] = size
            return
        waiting = [
            lane.left + sum(bytes_ for (_, where), bytes_ in self.pools.items() if where == i)
            for i, lane in enumerate(self.lanes)
        ]
        for i, bytes_ in enumerate(dealt(self.policy, self.paths, size, waiting)):
            if bytes_ > 0:
                self.pools[message, i] = bytes_

    def _isolated(self, message: int) -> float:
        """When it would be complete at the earliest if it were alone from now on."""
        left = [bytes_ for (which, _), bytes_ in self.pools.items() if which == message]
        remaining = max(left, default=0.0) if self.policy.kind == "copies" else sum(left)
        flying = max((lane.done.get(message, 0.0) for lane in self.lanes), default=0.0)
        return max(optimum.completion(self.paths, remaining), flying - self.now)

    def _decide(self, i: int) -> None:
        lane = self.lanes[i]
        if self.connection == "rr":
            if lane.turn is None:
                self._begin_turn(i)
            lane.serves = lane.turn
            return
        lane.serves = None
        ahead = 0.0
        for message in self.order:
            here = self.pools.get(self._key(message, i), 0.0)
            ahead += here
            if here > 0 and (lane.bound == 0 or ahead > lane.bound + _LEAST):
                lane.serves = message
                return

    def _begin_turn(self, i: int) -> None:
        lane = self.lanes[i]
        known = len(self.order)
        first = lane.next if self.policy.deals else self.turn
        for step in range(known):
            place = (first + step) % known
            key = self._key(self.order[place], i)
            here = self.pools.get(key, 0.0)
            if not here or not self._worth(lane, here):
                continue
            lane.turn, lane.left = self.order[place], min(self.quantum, here)
            self._take(key, lane.left)
            lane.next = self.turn = place + 1
            return

    def _worth(self, lane: _Lane, here: float) -> bool:
        """Whether a message with so many bytes has enough ahead of its last: others take turns."""
        if lane.bound == 0:
            return True
        return sum(min(here, bytes_) for bytes_ in self.pools.values()) >= lane.bound - _LEAST

    def _take(self, key: tuple[int, int], bytes_: float) -> None:
        self.pools[key] -= bytes_
        if self.pools[key] <= _LEAST:
            del self.pools[key]

    def _advance(self, arrival: float) -> None:
        step = max(0.0, min(arrival - self.now, self._until_change()))
        for i, lane in enumerate(self.lanes):
            if lane.serves is None or step == 0:
                continue
            bytes_ = lane.path.rate * step
            self._note(lane, lane.serves, step, bytes_)
            if lane.turn is not None:
                lane.left -= bytes_
                if lane.left <= _LEAST:
                    lane.turn, lane.left = None, 0.0
            elif self._key(lane.serves, i) in self.pools:
                self._take(self._key(lane.serves, i), bytes_)
        self.now = arrival if step == arrival - self.now else self.now + step

    def _until_change(self) -> float:
        """Seconds until a quantum, a pool or the use of a path ends."""
        if self.connection == "rr":
            return min(
                (it.left / it.path.rate for it in self.lanes if it.turn is not None),
                default=math.inf,
            )
        steps = [math.inf]
        draining: dict[tuple[int, int], float] = {}
        for i, lane in enumerate(self.lanes):
            if lane.serves is not None:
                key = self._key(lane.serves, i)
                draining[key] = draining.get(key, 0.0) + lane.path.rate
        steps += [self.pools[key] / rate for key, rate in draining.items()]
        for lane in self.lanes:
            if lane.serves is None or lane.bound == 0:
                continue
            ahead = rate = 0.0
            for message in self.order[: self.order.index(lane.serves) + 1]:
                ahead += self.pools.get((message, -1), 0.0)
                rate += draining.get((message, -1), 0.0)
            steps.append((ahead - lane.bound) / rate)
        return min(steps)

    def _note(self, lane: _Lane, message: int, step: float, bytes_: float) -> None:
        end = self.now + step
        lane.done[message] = end + lane.path.delay
        last = self.pieces[lane.piece] if lane.piece >= 0 else None
        if last and last.message == message and last.end == self.now:
            self.pieces[lane.piece] = Piece(message, last.path, last.start, end, last.size + bytes_)
            return
        lane.piece = len(self.pieces)
        self.pieces.append(Piece(message, lane.path.name, self.now, end, bytes_))

    def _completion(self, message: int) -> float:
        """Of copies the first whole one counts: each path sends a message from its front."""
        arrived = [lane.done[message] for lane in self.lanes if message in lane.done]
        return min(arrived) if self.policy.kind == "copies" else max(arrived)
