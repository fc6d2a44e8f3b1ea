# SPDX-License-Identifier: MIT
"""One object in packets over paths with windows: what the fluid cannot tell of minrtt.

A path holds as many packets as its window has room for, sends them one after another at its rate,
and has room again when one is acknowledged, the delay after it arrived. Grown windows are what
fills the path, so that it never waits. Fresh ones begin with ten packets; each acknowledgement adds
one until it is grown. The object is there at once, and is handed over as soon as a window takes it.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.oracle import optimum
from experiments.oracle.path import FRESH_WINDOW, OracleError, Path, check_size, nearest_first

PACKET = 1460  # bytes
MOST_PACKETS = 10**6  # more take minutes
POLICIES = ("minrtt", "soonest", "rr", "ecf", "txdelay")
# By how many: when so many of the nearest paths are through with all that is left, if they have to
# send it alone. It is so until another one takes a packet, for they do as was foreseen.
Alone = dict[int, float]


@dataclass
class _Lane:
    path: Path
    window: int
    grown: int
    flying: int = 0
    free: float = 0.0  # when it has sent what it holds
    end: float = 0.0  # when its last byte arrives

    def held(self, now: float) -> float:
        return max(0.0, self.free - now) * self.path.rate

    def arrival(self, now: float) -> float:
        return max(self.free, now) + self.path.delay

    def send(self, now: float, size: float) -> float:
        """When it is acknowledged."""
        self.free = max(self.free, now) + size / self.path.rate
        self.end = self.free + self.path.delay
        self.flying += 1
        return self.free + self.path.rtt


def completion(
    paths: Sequence[Path], size: float, policy: str, fresh: bool = False
) -> tuple[float, dict[str, float]]:
    """Seconds until the last byte arrives, and when each path's last one does (0: it had none)."""
    check_size(size)
    if policy not in POLICIES:
        raise OracleError(f"policy {policy}: none of {', '.join(POLICIES)}")
    if size / PACKET > MOST_PACKETS:
        raise OracleError(f"{size:g} bytes: at most {MOST_PACKETS} packets")
    lanes = [_lane(path, fresh) for path in nearest_first(paths)]
    last = _play(lanes, [], size, 0.0, policy)
    return last, {it.path.name: it.end for it in lanes}


def _play(
    lanes: list[_Lane], acknowledged: list[tuple[float, int]], left: float, now: float, policy: str
) -> float:
    """Hands over what is left, and tells when the last byte of all arrives."""
    turn = 0
    alone: Alone = {}
    while left > 0:
        chosen = _choose(lanes, acknowledged, left, now, policy, turn, alone)
        if chosen is None:
            now, back = heapq.heappop(acknowledged)
            lanes[back].flying -= 1
            lanes[back].window = min(lanes[back].grown, lanes[back].window + 1)
            continue
        alone = {n: through for n, through in alone.items() if chosen < n}
        bytes_ = min(PACKET, left)
        heapq.heappush(acknowledged, (lanes[chosen].send(now, bytes_), chosen))
        left -= bytes_
        turn = chosen + 1
    return max(it.end for it in lanes)


def _lane(path: Path, fresh: bool) -> _Lane:
    grown = math.ceil(path.rate * path.rtt / PACKET) + 1  # and the one that is being sent
    return _Lane(path, min(grown, FRESH_WINDOW // PACKET) if fresh else grown, grown)


def _choose(
    lanes: list[_Lane],
    acknowledged: list[tuple[float, int]],
    left: float,
    now: float,
    policy: str,
    turn: int,
    alone: Alone,
) -> int | None:
    able = [i for i, lane in enumerate(lanes) if lane.flying < lane.window]
    if policy in ("ecf", "txdelay"):
        judged = lanes if policy == "ecf" else [_by_round_trip(it) for it in lanes]
        able = [i for i in able if _takes(judged, acknowledged, i, left, now, alone)]
    if not able:
        return None
    if policy == "rr":
        return min(able, key=lambda i: (i - turn) % len(lanes))
    if policy == "soonest":
        return min(able, key=lambda i: lanes[i].arrival(now))
    return able[0]


def _by_round_trip(lane: _Lane) -> _Lane:
    """As the rule sees it for which a byte is late by a whole round trip."""
    return replace(lane, path=replace(lane.path, delay=lane.path.rtt, own_rtt=lane.path.rtt))


def _takes(
    lanes: list[_Lane],
    acknowledged: list[tuple[float, int]],
    i: int,
    left: float,
    now: float,
    alone: Alone,
) -> bool:
    """The rule for a packet. The nearer paths have to send what they hold besides."""
    lane = lanes[i]
    nearer = [it for it in lanes if it.path.delay < lane.path.delay]
    remaining = left + sum(it.held(now) for it in nearer)
    behind = lane.held(now) + min(PACKET, left)
    if optimum.takes(lane.path, [it.path for it in (*nearer, lane)], remaining, behind):
        return True  # also if their windows were grown
    if all(it.window == it.grown for it in nearer):
        return False
    n = len(nearer)
    if n not in alone:
        theirs = [it for it in acknowledged if it[1] < n]
        heapq.heapify(theirs)
        alone[n] = _play([replace(it) for it in nearer], theirs, left, now, "ecf")
    return lane.arrival(now) + min(PACKET, left) / lane.path.rate <= alone[n]
