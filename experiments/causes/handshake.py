# SPDX-License-Identifier: MIT
"""A pipe is open before anybody asks; who opens a connection over the last mile waits for it."""

from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, explains_ratio
from experiments.causes.units import ms, seconds, three


@dataclass(frozen=True)
class Handshake(Cause):
    """Of a ratio of pipes to what opens a connection first."""

    def tell(self, seen: Seen) -> str:
        if seen.over is None or not seen.of.settings or seen.paper is None:
            return ""
        took = seen.over.median(seen.metric)
        rtt = link.pipe_rtt_s(seen.of.params)
        if not took or took <= rtt:
            return ""
        expected = (took - rtt) / took
        return (
            f"The other side opens a connection over the last mile first, {ms(rtt)} of its "
            f"{seconds(took)}; a pipe is open: {three(expected)} expected, {three(seen.ours)} "
            f"measured, {explains_ratio(expected, seen.ours)}. The published {three(seen.paper)} "
            f"leaves {ms((1 - seen.paper) * took)} for it."
        )
