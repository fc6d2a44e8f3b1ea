# SPDX-License-Identifier: MIT
"""A full buffer makes whoever is in it wait for as long as it takes to drain: bytes / rate."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, explains
from experiments.causes.units import mbps, size, three
from experiments.parameters import miles
from topologies.parameter import Params


def queue_up(params: Params) -> float:
    """Bytes of the queue from the client."""
    return miles(params)[0].direction("up").queue_bytes()


@dataclass(frozen=True)
class Drains(Cause):
    """Of ms that something waits from the client. `holds`: bytes of the buffer, by the parameters
    of a run."""

    name: str
    holds: Callable[[Params], float]

    def tell(self, seen: Seen) -> str:
        rate = miles(seen.of.params)[0].up_mbps if seen.of.settings else None
        if not rate or seen.paper is None:
            return ""
        count = self.holds(seen.of.params)
        expected = count * 8 / rate / 1e3
        theirs = seen.paper * 1e3 * rate / 8
        return (
            f"{self.name} of {size(count)} drains in {three(expected)} ms at {mbps(rate)}; "
            f"{three(seen.ours)} ms were measured, {explains(expected, seen.ours)}. The published "
            f"{three(seen.paper)} ms are {size(theirs)} at that rate."
        )
