# SPDX-License-Identifier: MIT
"""A batch of messages in packets over grown windows: what the fluid cannot tell of short ones.

A fluid divides whatever there is among the paths, and so each message waits for the farthest that
has a part of it. What is no longer than a packet goes over one path. Here a path takes the next
packet as soon as it has sent the last one, and holds no other, or so many bytes as may be ahead.
"""

import math
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

    def takes_at(self, ahead: float) -> float:
        """When it holds so many bytes and no more."""
        return self.free - ahead / self.path.rate


def times(
    paths: Sequence[Path],
    messages: Sequence[Message],
    connection: str = "srpt",
    path: str = "ecf",
    ahead: float = 0.0,
) -> list[float]:
    """From each message's arrival to its last byte. Packets are of any size up to a whole one.

    `ahead`: a path takes the next one while it holds so many bytes.
    """
    check(messages)
    if not 0 <= ahead < math.inf:
        raise OracleError(f"{ahead:g} bytes ahead: not 0 or more")
    for name, known in ((connection, CONNECTIONS), (path, PATHS)):
        if name not in known:
            raise OracleError(f"policy {name}: none of {', '.join(known)}")
    done = _Run(nearest_first(paths), messages, connection, path, ahead).done
    return [end - it.arrival for end, it in zip(done, messages, strict=True)]


class _Run:
    def __init__(
        self,
        paths: list[Path],
        messages: Sequence[Message],
        connection: str,
        path: str,
        ahead: float,
    ) -> None:
        self.lanes = [_Lane(it) for it in paths]
        self.messages = messages
        self.left = [it.size for it in messages]
        self.done = [0.0] * len(messages)
        self.shortest = connection == "srpt"
        self.rule = path == "ecf"
        self.ahead = ahead
        to_come = sorted((it.arrival for it in messages), reverse=True)
        now = 0.0
        while any(self.left):
            while to_come and to_come[-1] <= now:
                to_come.pop()
            while self._give(now):
                pass
            free = [it.takes_at(ahead) for it in self.lanes]
            now = min([*to_come[-1:], *(at for at in free if at > now)], default=now)

    def _waiting(self, now: float) -> list[int]:
        """What there is to send, in the order of the connection policy."""
        there = [n for n, it in enumerate(self.messages) if self.left[n] and it.arrival <= now]
        if self.shortest:
            return sorted(there, key=lambda n: (self.left[n], n))
        return sorted(there, key=lambda n: (self.messages[n].arrival, n))

    def _give(self, now: float) -> bool:
        """Each path that takes one a packet, the nearest first. Whether any did."""
        gave = False
        for place, lane in enumerate(self.lanes):
            if lane.takes_at(self.ahead) > now:
                continue
            chosen = self._choose(place, now)
            if chosen is None:
                continue
            size = min(PACKET, self.left[chosen])
            lane.free = max(lane.free, now) + size / lane.path.rate
            self.done[chosen] = max(self.done[chosen], lane.free + lane.path.delay)
            self.left[chosen] -= size
            gave = True
        return gave

    def _choose(self, place: int, now: float) -> int | None:
        """By the rule the first message whose packet it has there no later than the nearer ones,
        behind all that they hold and all that goes first."""
        able = [it.path for it in self.lanes[: place + 1]]
        remaining = sum(it.held(now) for it in self.lanes[:place])
        for n in self._waiting(now):
            remaining += self.left[n]
            behind = self.lanes[place].held(now) + min(PACKET, self.left[n])
            if not self.rule or optimum.takes(able[-1], able, remaining, behind):
                return n
        return None
