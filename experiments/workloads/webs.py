# SPDX-License-Identifier: MIT
"""A page's worth of objects alone, then beside one bulk download, all in one run."""

from typing import TYPE_CHECKING, Any

from experiments.workloads import account, rates, rivals, traffic
from experiments.workloads.actors import Actor, Bulk, Pause
from experiments.workloads.batch import Batch

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

SETTLE_S = 2.0  # until the bulk has found its rate
PAUSE_S = 0.5  # between two pages


def alone_then_beside(run: "LiveRun", rounds: int, bulk_s: float) -> dict[str, Any]:
    """Medians over the rounds. One page more comes first, so that those counted find windows that
    have grown, alone as well as beside the bulk.

    With rivals the same is asked for over one plain connection, too, while the pipes are idle.
    """
    how = traffic.way(run)
    first = {"rounds": 1 + rounds, "pause_s": PAUSE_S}
    alone = Batch(after_s=rivals.head_start_s(run), **first, **how)
    actors: dict[str, Actor] = {**rivals.actors(run), "alone": alone}
    before = "alone"
    if run.params["rivals"]:
        before = "plain"
        actors["plain"] = Batch(port=traffic.PLAIN_PORT, kept=True, after=("alone",), **first)
    actors["bulk"] = Bulk(after=(before,), **how)
    actors["beside"] = Batch(
        rounds=rounds, pause_s=PAUSE_S, after=(before,), after_s=SETTLE_S + bulk_s, **how
    )
    found = traffic.play(run, actors)
    each = {name: found[name]["took_s"] for name in ("alone", "beside")}
    alone_s, beside_s = (rates.median(took[-rounds:]) for took in each.values())
    began = found["beside"]["began_s"][0]
    return {
        "completion_s": beside_s,
        "web_alone_s": alone_s,
        "web_beside_s": beside_s,
        "web_ratio": beside_s / alone_s,
        "web_each_s": [
            round(it, 4) for name in ("alone", "beside") for it in found[name]["took_s"]
        ],
        **_over_plain(found, beside_s, rounds),
        **_goodputs(run, found, began - bulk_s, began),
    }


def bulk_alone(run: "LiveRun", bulk_s: float) -> dict[str, Any]:
    """The goodputs only, as `alone_then_beside` measures them."""
    began = rivals.head_start_s(run)
    ended = began + SETTLE_S + bulk_s
    actors: dict[str, Actor] = {
        **rivals.actors(run),
        "bulk": Bulk(after_s=began, **traffic.way(run)),
        "clock": Pause(seconds=ended),
    }
    return _goodputs(run, traffic.play(run, actors), ended - bulk_s, ended)


def _over_plain(found: traffic.Found, beside_s: float, rounds: int) -> dict[str, Any]:
    if "plain" not in found:
        return {"web_plain_s": None, "web_over_plain": None}
    plain_s = rates.median(found["plain"]["took_s"][-rounds:])
    return {"web_plain_s": plain_s, "web_over_plain": beside_s / plain_s}


def _goodputs(run: "LiveRun", found: traffic.Found, since: float, until: float) -> dict[str, Any]:
    """Between two times at which the bulk has no page beside it; and how long the pipes gave way
    since it began."""
    bins = [told["bins"] for name, told in found.items() if name.startswith("rival")]
    theirs = [rates.mbps(each, since, until) or 0.0 for each in bins]
    yielding = None
    if run.pair is not None:
        began = run.went + since - SETTLE_S
        yielding = account.yielding(run.pair.statistics("rp"), began)
    return {
        "bulk_mbps": rates.mbps(found["bulk"]["bins"], since, until) or 0.0,
        "rivals_mbps": sum(theirs) if theirs else None,
        "yielding": yielding,
    }
