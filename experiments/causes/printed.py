# SPDX-License-Identifier: MIT
"""What a published time may have been before it was printed, and what is the round trip's of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen
from experiments.causes.units import ms, seconds, three


@dataclass(frozen=True)
class Printed(Cause):
    """Both sides of a published ratio were printed to `step`, so it may be anything between."""

    step: float

    def tell(self, seen: Seen) -> str:
        of, over = seen.paper_sides
        half = self.step / 2
        if of is None or over is None or over <= half:
            return ""
        low, high = (of - half) / (over + half), (of + half) / (over - half)
        if not low <= seen.ours <= high:
            return ""  # then it is not by the printing that they differ
        return (
            f"Printed to {seconds(self.step)}, {seconds(over)} and {seconds(of)} may be a ratio of "
            f"{three(low)} to {three(high)}, in which ours, {three(seen.ours)}, lies."
        )


@dataclass(frozen=True)
class RoundTrip(Cause):
    """A time alone is mostly round trip: how long the published one can have been."""

    step: float

    def tell(self, seen: Seen) -> str:
        if not seen.of.settings or seen.paper is None:
            return ""
        rtt = link.rtt_s(seen.of.params)
        rest = seen.ours - rtt
        most = seen.paper + self.step / 2
        if rest < 0:
            return ""
        return " ".join(self._sentences(rtt, rest, seen.ours, most))

    def _sentences(self, rtt: float, rest: float, ours: float, most: float) -> Iterator[str]:
        yield f"Of {ms(ours)} the round trip of the lab is {ms(rtt)}, and {ms(rest)} the object."
        yield (
            f"Printed to {ms(self.step)}, the published time was below {ms(most)}, so its round "
            f"trip was below {ms(most - rest)} if its object took as long."
        )
