# SPDX-License-Identifier: MIT
"""What a connection carries that loses packets: MSS / RTT * sqrt(3 / 2p) (Mathis and others).

The law is of transfers that lose many packets, and of windows that are halved: a third more or
less is as near as it comes.
"""

import math
from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, Setting, Side, explained, number
from experiments.causes.units import mbps, ms, percent, size, three
from experiments.workloads.rates import MSS
from topologies.parameter import Params

LOSSES = 10  # fewer, and a transfer is over before the law holds
WITHIN = 1 / 3


def carried_mbps(loss: float, rtt_s: float) -> float:
    return MSS * 8e-6 / rtt_s * math.sqrt(1.5 / loss)


def loss_for(rate_mbps: float, rtt_s: float) -> float:
    return 1.5 * (MSS * 8e-6 / rtt_s / rate_mbps) ** 2


@dataclass(frozen=True)
class Lossy(Cause):
    """Both sides carry so many bytes as `bytes_name` says, a parameter or a measure. Settings
    differ in `unit`, such as the page, if they do."""

    bytes_name: str
    unit: str = ""

    def tell(self, seen: Seen) -> str:
        both = [seen.over, seen.of] if seen.over else []
        if seen.paper is None or not both or not all(map(self._holds, both)):
            return ""
        assert seen.over is not None
        told = "; ".join(self._carries(seen, it) for it in both)
        text = f"By MSS / RTT · √(3/2p) {told}.{self._by_size(seen)}"
        _, fast = self._expected(seen.of.params)
        needed = seen.paper * fast
        rtt, slow = (
            link.pipe_rtt_s(seen.over.params),
            carried_mbps(link.loss(seen.over.params), 1.0),
        )
        return (
            f"{text} The published {three(seen.paper)} leaves {mbps(needed)}: a loss of "
            f"{percent(loss_for(needed, rtt))}, or a round trip of {ms(slow / needed)}"
            f"{self._smaller(seen)}."
        )

    def _holds(self, side: Side) -> bool:
        if not side.settings or link.mbps(side.params) is None:
            return False
        most = max(self._bytes(it) for it in side.settings)
        return link.loss(side.params) * most / MSS >= LOSSES

    def _expected(self, params: Params) -> tuple[float, float]:
        """By the law alone, and as far as the link lets it."""
        most = link.mbps(params)
        assert most is not None
        pipes = number(params, "pipes") or 1.0
        law = pipes * carried_mbps(link.loss(params), link.pipe_rtt_s(params))
        return law, min(law, most)

    def _carries(self, seen: Seen, side: Side) -> str:
        """Of the largest."""
        pipes = f"{number(side.params, 'pipes'):g}" if side.params.get("pipes") else ""
        who = {"": "a connection", "1": "one pipe"}.get(pipes, f"{pipes} pipes")
        law, expected = self._expected(side.params)
        it = max(side.settings, key=self._bytes)
        took = it.measured[seen.metric] - link.rtt_s(side.params)
        got = self._bytes(it) * 8e-6 / took
        of_link = ", as much as the link," if law > expected else ""
        return (
            f"{who} at {percent(link.loss(side.params))} loss should carry {mbps(expected)}"
            f"{of_link} and carried {mbps(got)} ({size(self._bytes(it))}), "
            f"{explained(abs(got / expected - 1) <= WITHIN)}"
        )

    def _bytes(self, it: Setting) -> float:
        return it.measured.get(self.bytes_name) or number(it.params, self.bytes_name)

    def _ratios(self, seen: Seen) -> list[tuple[float, float]]:
        """Bytes and ratio of each unit that both sides have, the smallest first."""
        return sorted(
            (self._bytes(of), of.measured[seen.metric] / over.measured[seen.metric])
            for of, over in seen.pairs(self.unit)
            if self._bytes(of)
        )

    def _by_size(self, seen: Seen) -> str:
        found = self._ratios(seen)
        if len(found) < 2:
            return ""
        (least, first), (_, last) = found[0], found[-1]
        return (
            f" The smallest {self.unit}, of {size(least)}, took {three(first)} of the other "
            f"side's time, the largest {three(last)}."
        )

    def _smaller(self, seen: Seen) -> str:
        """Or what ends before a loss has told: the largest that has the published ratio here."""
        found = self._ratios(seen)
        like = [count for count, ratio in found if ratio >= (seen.paper or 0.0)]
        if len(found) < 2 or not like:
            return ""
        return f", or {self.unit}s that are as small as {size(max(like))}"
