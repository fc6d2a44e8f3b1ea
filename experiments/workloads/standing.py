# SPDX-License-Identifier: MIT
"""What stands on the way of a bulk transfer: round trips and bytes in flight of who sends it.

With pipes RP sends it, and samples its pipes ten times a second by itself. Without, the server does
and the kernel is asked.
"""

import re
import statistics
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from experiments.workloads import traffic
from experiments.workloads.rates import quantile

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

EACH_S = 0.1
Sample = tuple[float, float]  # round trip in seconds, bytes in flight of all together


def of_sockets(listing: str) -> Sample | None:
    """Of what `ss -i` says: the sockets that have something in flight."""
    found = []
    for line in listing.splitlines():
        values = dict(re.findall(r"\b(rtt|mss|unacked):(\d+(?:\.\d+)?)", line))
        if {"rtt", "mss", "unacked"} <= values.keys():
            found.append((float(values["rtt"]) / 1e3, int(values["unacked"]) * int(values["mss"])))
    if not found:
        return None
    return statistics.fmean(rtt for rtt, _ in found), float(sum(size for _, size in found))


def of_pipes(records: Iterable[dict[str, Any]], since: float, until: float) -> list[Sample]:
    """Of what RP wrote between two times (UNIX): all its pipes, one sample after the other."""
    moments: list[dict[Any, dict[str, Any]]] = [{}]
    for record in records:
        if record["type"] == "pipe" and since <= record["time"] <= until:
            which = record["session"], record["pipe"]
            if which in moments[-1]:
                moments.append({})
            moments[-1][which] = record
    found = []
    for pipes in moments:
        busy = [pipe["rtt_ms"] / 1e3 for pipe in pipes.values() if pipe["in_flight"]]
        if busy:
            together = sum(pipe["in_flight"] for pipe in pipes.values())
            found.append((statistics.fmean(busy), float(together)))
    return found


def watch(run: "LiveRun", seconds: float) -> dict[str, Any]:
    """For so long; medians, and the round trip's 95th percentile."""
    since, end = time.time(), time.monotonic() + seconds
    samples: list[Sample] = []
    words = ("ss", "-Htin", "state", "established", f"( sport = :{traffic.PORT} )")
    while time.monotonic() < end:
        if run.pair is None:
            sample = of_sockets(run.lab.server.inside(*words))
            samples += [sample] if sample else []
        time.sleep(EACH_S)
    if run.pair is not None:
        samples = of_pipes(run.pair.statistics("rp"), since, time.time())
    return summary(samples)


def summary(samples: list[Sample]) -> dict[str, Any]:
    if not samples:
        return {"rtt_s": None, "rtt_p95_s": None, "in_flight_bytes": None, "samples": 0}
    rtts = [rtt for rtt, _ in samples]
    return {
        "rtt_s": statistics.median(rtts),
        "rtt_p95_s": quantile(rtts, 0.95),
        "in_flight_bytes": statistics.median(size for _, size in samples),
        "samples": len(samples),
    }
