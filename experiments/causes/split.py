# SPDX-License-Identifier: MIT
"""What a file takes over two paths by the share of either: the later of both ends."""

from dataclasses import dataclass

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, Side, explains_ratio, number
from experiments.causes.units import percent, seconds, three
from experiments.parameters import miles
from topologies.parameter import Params


def paths(params: Params) -> list[tuple[float, float]]:
    """Of each its user's bytes a second, and when its first byte can come: the request goes by the
    nearer one."""
    its = miles(params)
    asked_s = min(it.rtt_ms for it in its) / 2e3 + number(params, "wan_rtt_ms") / 1e3
    return [(link.USERS * (it.down_mbps or 0.0) / 8e-6, asked_s + it.rtt_ms / 2e3) for it in its]


def takes_s(params: Params, size: float, far_share: float) -> float:
    """If both carry their shares at their rates, from their first bytes on."""
    shares = (1 - far_share, far_share)
    ends = [
        began + share * size / rate
        for (rate, began), share in zip(paths(params), shares, strict=True)
        if share
    ]
    return max(ends)


def best(params: Params, size: float) -> tuple[float, float]:
    """The far path's share by which both end together, or nothing of it; and what it takes."""
    (near, near_began), (far, far_began) = paths(params)
    ends = (size + near * near_began + far * far_began) / (near + far)
    share = max(0.0, far * (ends - far_began) / size)
    return share, takes_s(params, size, share)


@dataclass(frozen=True)
class Split(Cause):
    """`size`: the parameter of the file's; `share`: the measure of the second path's part of it.
    `nearest`: the published ratio that is nearest to no effect, where a range was told."""

    size: str
    share: str
    nearest: float

    def tell(self, seen: Seen) -> str:
        if seen.over is None:
            return ""
        found = [self._by(it) for it in (seen.over, seen.of)]
        (over_share, over), (of_share, of) = found
        if not over or not of:
            return ""
        expected = of / over
        share, least = best(seen.of.params, number(seen.of.params, self.size))
        text = (
            f"{percent(over_share)} and {percent(of_share)} of the bytes over the second path "
            f"should take {seconds(over)} and {seconds(of)}, a ratio of {three(expected)}; "
            f"{three(seen.ours)} was measured, {explains_ratio(expected, seen.ours)}. The best "
            f"share, {percent(share)}, is a ratio of {three(least / over)}"
        )
        if least / over > self.nearest:
            text += f", so no split has the published {three(self.nearest)}"
        return f"{text}."

    def _by(self, side: Side) -> tuple[float, float]:
        share, size = side.median(self.share), number(side.params, self.size)
        if share is None or not size or len(miles(side.params)) != 2:
            return 0.0, 0.0
        return share, takes_s(side.params, size, share)
