# SPDX-License-Identifier: MIT
"""What is computed from what was measured: rates, quantiles, swings, shares, stalls, floors."""

import math
from collections.abc import Sequence

from experiments.parameters import miles
from experiments.workloads.actors import BIN_S, Way
from topologies.parameter import Params

MSS = 1448  # of 1500 bytes of IP, with time stamps
FRAME = 1514  # what they are to the link's rate
HEADER = 8  # of a message of the pipes


def quantile(values: Sequence[float], share: float) -> float:
    """With straight lines between the values; of at least one."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low, high = math.floor(at), math.ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def mbps(bins: Sequence[int], since_s: float = 0.0, until_s: float = math.inf) -> float | None:
    """Of the whole bins between the two times; None where there are none."""
    first = math.ceil(round(since_s / BIN_S, 6))
    last = len(bins) if math.isinf(until_s) else math.floor(round(until_s / BIN_S, 6))
    if last <= first:
        return None
    return sum(bins[first:last]) * 8 / 1e6 / ((last - first) * BIN_S)


def series_mbps(bins: Sequence[int], width: int = 5) -> list[float]:
    """Each half second, so that a figure can show it."""
    whole = len(bins) // width * width
    return [sum(bins[n : n + width]) * 8 / 1e6 / (width * BIN_S) for n in range(0, whole, width)]


def swing(values: Sequence[float]) -> float | None:
    """Standard deviation over mean: 0 is a steady rate."""
    if not values or not sum(values):
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((each - mean) ** 2 for each in values) / len(values)) / mean


def jain(values: Sequence[float]) -> float | None:
    """Jain's index: 1 where all have the same, 1/n where one has everything."""
    squares = sum(each * each for each in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def stalls(late_s: Sequence[float], ahead_s: float) -> tuple[int, float]:
    """How often and how long a player stands still that begins `ahead_s` after the first frame.

    `late_s`: of each frame, how long after it was due it came. A stall moves all later frames.
    """
    count, behind = 0, 0.0
    for late in late_s:
        missing = (late - late_s[0]) - ahead_s - behind
        if missing > 0:
            count, behind = count + 1, behind + missing
    return count, behind


def floor_s(params: Params, size: int, way: Way = "down") -> float:
    """RTT + size/rate: no proxy is faster while nothing is sent before it is asked for."""
    sides = miles(params)
    rates = [it.direction(way).mbps for it in sides]
    rtt_s = (min(it.rtt_ms for it in sides) + float(params["wan_rtt_ms"])) / 1e3  # type: ignore[arg-type]
    if None in rates:
        return rtt_s
    rate = sum(it for it in rates if it)
    on_the_wire = size + math.ceil(size / MSS) * (FRAME - MSS)
    return rtt_s + on_the_wire * 8 / 1e6 / rate
