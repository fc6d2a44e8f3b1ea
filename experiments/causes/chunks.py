# SPDX-License-Identifier: MIT
"""Who gets chunks by the clock is silent for longer than it is without network."""

from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, explains, near
from experiments.causes.units import ms, seconds

ROUND_TRIPS = 2  # the connection is opened, and what it asks for comes


@dataclass(frozen=True)
class Chunks(Cause):
    """Between two chunks: since the last one before, without network, and until one comes again.
    What was published is `without_s` alone."""

    without_s: float
    every_s: float
    rtt_s: float

    def tell(self, seen: Seen) -> str:
        if not seen.of.settings or seen.paper is None or not near(self.without_s, seen.paper):
            return ""
        dials = ROUND_TRIPS * self.rtt_s
        expected = self.without_s + self.every_s + dials
        return (
            f"Published is for how long there was no network, {seconds(self.without_s)}; measured "
            f"is from one chunk to the next. Up to {ms(self.every_s)} before nothing is due, and "
            f"{ROUND_TRIPS} round trips after it, {ms(dials)}, the next one comes: up to "
            f"{seconds(expected)} expected, {seconds(seen.ours)} measured, "
            f"{explains(expected, seen.ours)}."
        )
