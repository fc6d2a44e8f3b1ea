# SPDX-License-Identifier: MIT
"""A 4 KB object every so often, alone or beside a bulk transfer of the same user."""

from typing import TYPE_CHECKING, Any

from experiments.model import RunFailed
from experiments.workloads import rates, traffic
from experiments.workloads.actors import Bulk, Objects, Way

if TYPE_CHECKING:
    from experiments.bed import Bed

OBJECT_BYTES = 4096
SETTLE_S = 2.0  # until the bulk has found its rate and filled whatever buffers there are
ALONE_S = 0.3  # until the connection is open at the other end of the pipes, too
BULK_AT_S = 2.0  # where objects alone come first; at 50 ms they are done after 1.2


def beside_bulk(
    bed: "Bed",
    *,
    bulk: bool = True,
    way: Way = "down",
    count: int = 12,
    seconds: float = 6.0,
) -> dict[str, Any]:
    """Objects one after the other, at most `count` and for `seconds`; their times and the bulk's
    goodput meanwhile."""
    how = traffic.way(bed)
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
    found = traffic.play(bed, actors)
    objects = found["objects"]
    measures = summary(objects["seconds"])
    if bulk:
        span = objects["began_s"], objects["ended_s"]
        measures["bulk_mbps"] = rates.mbps(found["bulk"]["bins"], *span)
    return measures


def alone_then_beside(bed: "Bed", bulks: int, way: Way) -> dict[str, Any]:
    """Objects alone, then beside so many bulk transfers, some four seconds long; what it adds."""
    how = traffic.way(bed)
    alone = Objects(size=OBJECT_BYTES, count=6, way=way, wait_s=ALONE_S, pause_s=0.1, **how)
    beside = Objects(
        size=OBJECT_BYTES,
        count=14,
        seconds=4.0,
        way=way,
        wait_s=BULK_AT_S + SETTLE_S,
        pause_s=0.25,
        **how,
    )
    names = [f"bulk{n}" for n in range(bulks)]
    more = {name: Bulk(way=way, after_s=BULK_AT_S, **how) for name in names}
    found = traffic.play(bed, {"alone": alone, "beside": beside, **more})
    if found["alone"]["ended_s"] > BULK_AT_S:
        raise RunFailed(f"the last object alone took until {found['alone']['ended_s']:.2f} s")
    span = found["beside"]["began_s"], found["beside"]["ended_s"]
    mbps = [rates.mbps(found[name]["bins"], *span) or 0.0 for name in names]
    measures = summary(found["beside"]["seconds"])
    idle_s = rates.median(found["alone"]["seconds"])
    return measures | {
        "alone_p50_s": idle_s,
        "added_s": measures["object_p50_s"] - idle_s,
        "bulk_mbps": sum(mbps),
        "jain": rates.jain(mbps) if bulks > 1 else None,
    }


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
