# SPDX-License-Identifier: MIT
"""By turns two paths carry alike, so both together are twice as fast as the slower one."""

from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, Setting, explains_ratio, number
from experiments.causes.units import mbps, ms, size, three
from experiments.parameters import miles
from experiments.workloads.smt.sizes import mean

UNIT = "distribution"
SHARE = "second_share"  # of the bytes, by the second path
FULL = 0.8  # of a path's rate: it carries what it can


@dataclass(frozen=True)
class Turns(Cause):
    """The first side chooses a path for each message, the second takes both by turns. Settings
    differ in the distribution of sizes."""

    def tell(self, seen: Seen) -> str:
        """Of the setting that answers."""
        pairs = seen.pairs(UNIT, seen.metric, "mbps", SHARE)
        if not pairs:
            return ""
        of, over = min(pairs, key=lambda both: abs(self._ratio(seen, *both) - seen.ours))
        carried = self._carried(of)
        if not self._is_full(of, carried):
            return self._limited(of)
        least = 2 * min(carried)
        if not least:
            return ""
        expected, ours = sum(carried) / least, self._ratio(seen, of, over)
        text = (
            f"Chosen for each message the paths carried {' and '.join(map(mbps, carried))}. By "
            f"turns neither carries more than the other, so {mbps(least)} are expected of both; "
            f"{mbps(over.measured['mbps'])} were measured. That is a ratio of {three(expected)}; "
            f"{three(ours)} was measured, {explains_ratio(expected, ours)}"
        )
        if seen.paper is not None and seen.paper > 1:
            text += (
                f". The published {three(seen.paper)} is that of paths of which one carries "
                f"{three(1 / (2 * seen.paper - 1))} of the other"
            )
        return f"{text}."

    def _ratio(self, seen: Seen, of: Setting, over: Setting) -> float:
        return of.measured[seen.metric] / over.measured[seen.metric]

    def _carried(self, it: Setting) -> tuple[float, float]:
        both, second = it.measured["mbps"], it.measured[SHARE]
        return both * (1 - second), both * second

    def _is_full(self, it: Setting, carried: tuple[float, float]) -> bool:
        rates = [link.USERS * (mile.down_mbps or 0.0) for mile in miles(it.params)]
        return any(got >= FULL * rate > 0 for got, rate in zip(carried, rates, strict=True))

    def _limited(self, it: Setting) -> str:
        count, rtt_s = number(it.params, "most_messages"), link.rtt_s(it.params)
        bytes_ = mean(int(number(it.params, UNIT)))
        if not rtt_s:
            return ""
        return (
            f"Neither path is full: {count:g} messages of {size(bytes_)} may be unacknowledged, in "
            f"a round trip of {ms(rtt_s)} {mbps(count * bytes_ * 8e-6 / rtt_s)} at most, so that "
            f"number is the limit, not what the paths carry."
        )
