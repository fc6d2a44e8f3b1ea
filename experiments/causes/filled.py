# SPDX-License-Identifier: MIT
"""A path is full as long as rate times round trip is in flight; less is what lowers its rate."""

from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen
from experiments.causes.units import ms, percent, size, three

IN_FLIGHT = "in_flight_bytes"


@dataclass(frozen=True)
class Filled(Cause):
    """Of a ratio of rates, below 1 where less than that was in flight."""

    def tell(self, seen: Seen) -> str:
        flies = seen.of.median(IN_FLIGHT)
        rate = link.mbps(seen.of.params) if seen.of.settings else None
        if flies is None or rate is None or seen.paper is None:
            return ""
        rtt = link.pipe_rtt_s(seen.of.params)
        needed = rate * 1e6 / 8 * rtt
        times = flies / needed
        text = (
            f"{size(needed)} fill this path of {ms(rtt)}, and {size(flies)} were in flight, "
            f"{three(times)} times that: "
        )
        if times < 1:
            return f"{text}the rate is below the link's for want of them."
        return (
            f"{text}nothing is lost of the rate. The published {percent(1 - seen.paper)} less "
            f"take a path that needs more than that at times, by a rate or a round trip that "
            f"varies."
        )
