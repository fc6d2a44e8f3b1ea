# SPDX-License-Identifier: MIT
"""A message waits for the one before it as long as what their pipes hold in front differs."""

from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, number
from experiments.causes.units import seconds, size

MOST = "reorder_max_bytes"  # a measure: what waited at the receiver


@dataclass(frozen=True)
class Uneven(Cause):
    """Of seconds that a message waits; each pipe has an equal part of the rate."""

    def tell(self, seen: Seen) -> str:
        rate = link.mbps(seen.of.params) if seen.of.settings else None
        pipes, most = number(seen.of.params, "pipes"), seen.of.median(MOST)
        if seen.paper is None or rate is None or pipes < 2 or most is None:
            return ""
        whole = rate * 1e6 / 8
        mine, theirs = (it * whole / pipes for it in (seen.ours, seen.paper))
        others = seen.ours * whole * (pipes - 1) / pipes
        fits = "fits" if others <= most else "does not fit"
        text = (
            f"A message waits for the one before it while their pipes, with 1/{pipes:g} of the "
            f"rate each, hold different amounts: ours, {seconds(seen.ours)}, is a difference of "
            f"{size(mine)}. {size(others)} of the other pipes should wait at the receiver "
            f"meanwhile; at most {size(most)} did, which {fits}. The published "
            f"{seconds(seen.paper)} is a difference of {size(theirs)}"
        )
        sndbuf = number(seen.of.params, "pipe_sndbuf")
        if not sndbuf:
            return f"{text}."
        there = "there is room for it" if theirs <= sndbuf else "there is no room for it"
        return f"{text}: {there} in send buffers of {size(sndbuf)}."
