# SPDX-License-Identifier: MIT
"""A thin stream alone, or beside a bulk download: over the same pipes, or by another connection."""

from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.workloads import rates, rivals, traffic
from experiments.workloads.actors import Bulk, Pause
from experiments.workloads.thin import Thin

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

BULKS = ("none", "same", "apart")
SETTLE_S = 3.0  # until the bulk has found its rate
ALONE_S = 4.0  # for which its rate is then measured without the thin stream


def ask(run: "LiveRun", bulk: str, queries: int, every_s: float) -> dict[str, Any]:
    """`bulk`: none, over the same pipes, or apart from them. Raises RunFailed."""
    if bulk == "same" and run.pair is None:
        raise RunFailed("bulk same: without pipes there are none to share")
    thin = Thin(count=queries, every_s=every_s, port=traffic.PORT)
    if bulk == "none":
        return answers(traffic.play(run, {"thin": thin})["thin"]["seconds"])
    port = traffic.PORT
    if bulk == "apart":
        port = traffic.PLAIN_PORT
        rivals.around_lp(run)
    # In a program of its own: its bytes, as they are compared, delay no answer.
    with traffic.beside(run, {"bulk": Bulk(port=port)}, "bulk") as found:
        began = run.went
        traffic.play(run, {"clock": Pause(seconds=SETTLE_S + ALONE_S)}, "clock")
        taken = traffic.play(run, {"thin": thin})["thin"]["seconds"]
        since_s = run.went - began
    measures = goodputs(found["bulk"]["bins"], since_s, since_s + queries * every_s)
    return answers(taken) | measures


def answers(taken: list[float]) -> dict[str, Any]:
    shares = {"p50": 0.5, "p97": 0.97, "p99": 0.99, "p999": 0.999}
    return {
        "completion_s": rates.median(taken),
        **{f"answer_{name}_ms": rates.quantile(taken, it) * 1e3 for name, it in shares.items()},
        "answers_s": [round(it, 5) for it in taken],
    }


def goodputs(bins: list[int], since_s: float, until_s: float) -> dict[str, Any]:
    """Of the bulk before the first query, and while there are queries. Raises RunFailed."""
    before = rates.mbps(bins, SETTLE_S, SETTLE_S + ALONE_S)
    if not before:
        raise RunFailed("the bulk carried nothing before the first query")
    beside = rates.mbps(bins, since_s, until_s) or 0.0
    return {"bulk_mbps": beside, "bulk_kept": beside / before}
