# SPDX-License-Identifier: MIT
"""A batch of messages in packets over grown windows: what the fluid cannot tell of short ones.

A fluid divides whatever there is among the paths, and so each message waits for the farthest that
has a part of it. What is no longer than a packet goes over one path. Here a path takes the next
packet as soon as it has sent the last one, and holds no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.oracle import optimum
from experiments.oracle.fluid import Message, check
from experiments.oracle.packets import PACKET
from experiments.oracle.path import OracleError, Path, nearest_first

CONNECTIONS = ("fcfs", "srpt")
PATHS = ("ecf", "minrtt")


@dataclass
class _Lane:
    path: Path
    free: float = 0.0  # when it has sent what it took

    def held(self, now: float) -> float:
        return max(0.0, self.free - now) * self.path.rate


def times(
    paths: Sequence[Path], messages: Sequence[Message], connection: str = "srpt", path: str = "ecf"
) -> list[float]:
    """From each message's arrival to its last byte. Packets are of any size up to a whole one."""
    check(messages)
    for name, known in ((connection, CONNECTIONS), (path, PATHS)):
        if name not in known:
            raise OracleError(f"policy {name}: none of {', '.join(known)}")
    done = _Run(nearest_first(paths), messages, connection, path).done
    return [end - it.arrival for end, it in zip(done, messages, strict=True)]


class _Run:
    def __init__(
        self, paths: list[Path], messages: Sequence[Message], connection: str, path: str
    ) -> None:
        self.lanes = [_Lane(it) for it in paths]
        self.messages = messages
        self.left = [it.size for it in messages]
        self.done = [0.0] * len(messages)
        self.shortest = connection == "srpt"
        self.rule = path == "ecf"
        to_come = sorted((it.arrival for it in messages), reverse=True)
        now = 0.0
        while any(self.left):
            while to_come and to_come[-1] <= now:
                to_come.pop()
            self._give(now)
            moments = [*to_come[-1:], *(it.free for it in self.lanes if it.free > now)]
            now = min(moments, default=now)

    def _waiting(self, now: float) -> list[int]:
        """What there is to send, in the order of the connection policy."""
        there = [n for n, it in enumerate(self.messages) if self.left[n] and it.arrival <= now]
        if self.shortest:
            return sorted(there, key=lambda n: (self.left[n], n))
        return sorted(there, key=lambda n: (self.messages[n].arrival, n))

    def _give(self, now: float) -> None:
        """Each path that is free a packet, the nearest first."""
        for place, lane in enumerate(self.lanes):
            if lane.free > now:
                continue
            chosen = self._choose(place, now)
            if chosen is None:
                continue
            size = min(PACKET, self.left[chosen])
            lane.free = now + size / lane.path.rate
            self.done[chosen] = max(self.done[chosen], lane.free + lane.path.delay)
            self.left[chosen] -= size

    def _choose(self, place: int, now: float) -> int | None:
        """By the rule the first message whose packet it has there no later than the nearer ones,
        behind all that they hold and all that goes first."""
        able = [it.path for it in self.lanes[: place + 1]]
        remaining = sum(it.held(now) for it in self.lanes[:place])
        for n in self._waiting(now):
            remaining += self.left[n]
            packet = min(PACKET, self.left[n])
            if not self.rule or optimum.takes(able[-1], able, remaining, packet):
                return n
        return None
