# SPDX-License-Identifier: MIT
"""A 4 KB object every so often, alone or beside a bulk transfer of the same user."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.workloads import account, rates, rivals, traffic
from experiments.workloads.actors import Bulk, Objects, Way

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

OBJECT_BYTES = 4096
SETTLE_S = 2.0  # until the bulk has found its rate and filled whatever buffers there are
ALONE_S = 0.3  # until the connection is open at the other end of the pipes, too
FIRST_S = 1.0  # of the bulk, whose messages wait for other reasons than later ones
LIKE_MBPS = 10.0  # where a trace has the rate


def beside_bulk(
    run: "LiveRun",
    *,
    bulk: bool = True,
    way: Way = "down",
    count: int = 12,
    seconds: float = 6.0,
) -> dict[str, Any]:
    """Objects one after the other, at most `count` and for `seconds`; their times and the bulk's
    goodput meanwhile."""
    how = traffic.way(run)
    actors: dict[str, Any] = {
        "objects": Objects(
            size=OBJECT_BYTES,
            count=count,
            seconds=seconds,
            way=way,
            wait_s=SETTLE_S if bulk else ALONE_S,
            **how,
        )
    }
    if bulk:
        actors["bulk"] = Bulk(way=way, **how)
    found = traffic.play(run, actors)
    objects = found["objects"]
    measures = summary(objects["seconds"])
    if bulk:
        span = objects["began_s"], objects["ended_s"]
        measures["bulk_mbps"] = rates.mbps(found["bulk"]["bins"], *span)
    return measures


def alone_then_beside(run: "LiveRun", bulks: int, way: Way) -> dict[str, Any]:
    """Objects alone, then beside so many bulk transfers, some five seconds long; what it adds.

    A single bulk transfer has another before it that lasts for the first second, so that what
    messages wait for at the start can be told from what they wait for later.
    """
    how = traffic.way(run)
    mbps_of_link = float(run.params["mbps"] or LIKE_MBPS)  # type: ignore[arg-type]
    first_s = FIRST_S if bulks == 1 else 0.0
    alone = Objects(
        size=OBJECT_BYTES,
        count=8,
        way=way,
        wait_s=ALONE_S,
        pause_s=0.1,
        after_s=rivals.head_start_s(run),
        **how,
    )
    beside = Objects(
        size=OBJECT_BYTES,
        count=20,
        seconds=6.0,
        way=way,
        wait_s=first_s + SETTLE_S,
        pause_s=0.2,
        after=("alone",),
        **how,
    )
    names = [f"bulk{n}" for n in range(bulks)]
    more = {name: Bulk(way=way, after=("alone",), after_s=first_s, **how) for name in names}
    if first_s:
        size = round(mbps_of_link * 1e6 / 8 * first_s)
        more["first"] = Bulk(way=way, size=size, after=("alone",), **how)
    found = traffic.play(run, {**rivals.actors(run), "alone": alone, "beside": beside, **more})
    span = found["beside"]["began_s"], found["beside"]["ended_s"]
    told = account.account(run, connections=2 + len(more))
    since = run.went + span[0] - SETTLE_S - first_s
    return {
        **told.measures(way),
        **_added(found["alone"]["seconds"], found["beside"]["seconds"]),
        **goodputs([found[name]["bins"] for name in names], *span),
        "reorder_first_p99_s": told.by_size(way)[1]["reorder_ms"]["p99"] / 1e3 if first_s else None,
        "yielding": account.yielding(told.rp, since),
    }


def goodputs(bins: Sequence[Sequence[int]], since_s: float, until_s: float) -> dict[str, Any]:
    """Of bulks, in all, between two times; how equal they are is of what each had got by the later.

    For las serves each connection's first 64 KB ahead of the others', one connection after another.
    Of fifty that begin together at 10 Mbit/s the last has its own after three seconds, so a span
    that begins in between counts these bytes for some of them and not for others.
    """
    return {
        "bulk_mbps": sum(rates.mbps(each, since_s, until_s) or 0.0 for each in bins),
        "jain": rates.jain([rates.mbps(each, 0.0, until_s) or 0.0 for each in bins])
        if len(bins) > 1
        else None,
    }


def _added(alone: list[float], beside: list[float]) -> dict[str, Any]:
    """What objects beside bulk take longer than the median object alone."""
    idle_s = rates.median(alone)
    shares = {"": 0.5, "_p90": 0.9, "_p95": 0.95}
    added = {f"added{name}_s": rates.quantile(beside, at) - idle_s for name, at in shares.items()}
    return summary(beside) | added | {"alone_p50_s": idle_s}


def summary(taken: list[float]) -> dict[str, Any]:
    """`completion_s` is the median object's: that is what the user waits for."""
    p50 = rates.median(taken)
    return {
        "completion_s": p50,
        "object_p50_s": p50,
        "object_p95_s": rates.quantile(taken, 0.95),
        "object_mean_s": sum(taken) / len(taken),
        "objects": len(taken),
        "objects_s": [round(each, 6) for each in taken],
    }
