# SPDX-License-Identifier: MIT
"""How long a message would take over a connection: algorithms 1 and 2 of the thesis.

    rtt / 2 + size / mean(rate, throughput) + queued / rate

`rate` is what the connection sends. `throughput` is what the loss would allow, mss / (rtt √loss),
at least the rate, at most the bandwidth. The thesis prints mss / √(loss · rtt), whose unit is no
rate; `printed` takes that.

The thesis has the bandwidth from UDT, which measures it by pairs of packets. TCP knows none: ours
is the largest rate that was ever read. In its first slow start a connection has a small rate, since
it is new, and one that is not chosen for that stays new. So until that ends its bandwidth is
presumed to be the largest of all connections'.

Half of a round trip has half of what stands in a queue of the network, which is all on the way
there. `one_way` counts the whole: the round trip, less half of the least one that was ever read.

UDT sends at its rate, packet by packet. TCP sends at once what its window has room for: that much
of what is queued takes as long as `throughput` allows, and the rest goes by the rate.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

NEW = 1 / 8  # the weight of what is read, in each average
QUERY_S = 0.020  # what was read before is read again


@dataclass(frozen=True)
class Reading:
    """What a transport tells of its connection. `queued`: bytes that it did not send yet.
    `opening`: it is in its first slow start. `room`: bytes that its window would take."""

    rtt_s: float
    rate: float  # bytes a second
    loss: float  # of packets sent since the last reading, the share that was sent again
    mss: int
    queued: int
    opening: bool = False
    room: int = 0


class Estimate:
    """Round trip, rate and loss are averaged; the queue is as it was read last."""

    def __init__(self, printed: bool = False) -> None:
        self.rtt_s = self.rate = self.loss = 0.0
        self.largest = self.presumed = 0.0  # rates
        self.least_s = math.inf  # round trip
        self.read_at = -math.inf
        self.printed = printed
        self._mss = self._room = 0
        self._opening = False
        self._queued = 0
        self._sent = 0

    def read(self, told: Reading, now: float) -> None:
        weight = NEW if self.read_at > -math.inf else 1.0
        self.rtt_s += weight * (told.rtt_s - self.rtt_s)
        self.least_s = min(self.least_s, told.rtt_s)
        self.rate += weight * (told.rate - self.rate)
        self.loss += weight * (told.loss - self.loss)
        self.largest = max(self.largest, told.rate)
        self._mss, self._opening = told.mss, told.opening
        self._queued, self._sent, self.read_at = told.queued, 0, now
        self._room = told.room

    @property
    def throughput(self) -> float:
        bandwidth = max(self.largest, self.presumed) if self._opening else self.largest
        return min(max(self.rate, self._by_loss()), bandwidth)

    def _by_loss(self) -> float:
        if self.loss <= 0:
            return math.inf
        if self.printed:
            return self._mss / math.sqrt(self.loss * self.rtt_s)
        return self._mss / (self.rtt_s * math.sqrt(self.loss))

    def sent(self, size: int) -> None:
        self._sent += size

    def queued(self, now: float) -> float:
        """What was read, less what left since then by the rate, plus what was handed over."""
        return max(0.0, self._queued - self.rate * (now - self.read_at) + self._sent)

    def way_s(self, one_way: bool) -> float:
        return self.rtt_s - self.least_s / 2 if one_way else self.rtt_s / 2

    def seconds(self, size: int, now: float, bulk: bool = False, *, one_way: bool = False) -> float:
        """`bulk`: only how fast it is counts, not how near."""
        throughput, queued = self.throughput, self.queued(now)
        inside = min(queued, self._room)
        before = inside / throughput + (queued - inside) / self.rate
        transfer = size / ((self.rate + throughput) / 2) + before
        return transfer if bulk else self.way_s(one_way) + transfer


def presume(all_of_them: Iterable[Estimate]) -> None:
    """Of one association's connections, after one of them was read."""
    them = list(all_of_them)
    largest = max(it.largest for it in them)
    for it in them:
        it.presumed = largest
