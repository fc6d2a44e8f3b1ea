# SPDX-License-Identifier: MIT
"""A 4 KB object every so often, alone or beside a bulk transfer of the same user."""

from typing import TYPE_CHECKING, Any

from experiments.workloads import rates, traffic
from experiments.workloads.actors import Bulk, Objects, Way

if TYPE_CHECKING:
    from experiments.bed import Bed

OBJECT_BYTES = 4096
SETTLE_S = 2.0  # until the bulk has found its rate and filled whatever buffers there are
ALONE_S = 0.3  # until the connection is open at the other end of the pipes, too


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
