# SPDX-License-Identifier: MIT
"""What DSWA leaves of a round trip: the paper's S = lambda * RTTmin / RTT * C.

C is what the windows hold in all, which without DSWA is in flight. A round trip that a queue makes
is what is in flight / rate; so S / C is RTT / RTT without DSWA, and equals lambda * RTTmin / RTT.
"""

import math
from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, explains_ratio, number
from experiments.causes.units import ms, three

RTT = "rtt_s"  # a measure


@dataclass(frozen=True)
class Dswa(Cause):
    """Of a ratio of round trips, or of bytes in flight, to those without a bound."""

    def tell(self, seen: Seen) -> str:
        without = seen.over.median(RTT) if seen.over is not None else None
        if not without or not seen.of.settings or seen.paper is None:
            return ""
        factor = number(seen.of.params, "lambda")
        least = link.pipe_rtt_s(seen.of.params)
        expected = math.sqrt(factor * least / without)
        return (
            f"By S = λ · RTTmin / RTT · C the ratio is √(λ · RTTmin / RTT without it): of "
            f"{three(factor)}, {ms(least)} and {ms(without)} {three(expected)} is expected, "
            f"{three(seen.ours)} was measured, {explains_ratio(expected, seen.ours)}. The "
            f"published {three(seen.paper)} is that of {three(factor / seen.paper**2)} RTTmin "
            f"without it, where here are {three(without / least)}: a deeper queue, or windows that "
            f"fill it."
        )
