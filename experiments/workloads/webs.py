# SPDX-License-Identifier: MIT
"""A web page's worth of objects alone, then beside one bulk download, all in one run."""

from typing import TYPE_CHECKING, Any

from experiments.workloads import account, rates, rivals, traffic
from experiments.workloads.actors import Actor, Bulk
from experiments.workloads.batch import Batch

if TYPE_CHECKING:
    from experiments.bed import Bed

SETTLE_S = 2.0  # until the bulk has found its rate


def alone_then_beside(bed: "Bed", rounds: int, bulk_s: float) -> dict[str, Any]:
    """Medians over the rounds. One round more comes first, so that those counted find windows
    that have grown, alone as well as beside the bulk.

    With rivals the same is asked for over one plain connection, too, while the pipes are idle.
    """
    how = traffic.way(bed)
    first = {"pause_s": 0.3, "rounds": 1 + rounds, "after_s": rivals.head_start_s(bed)}
    actors: dict[str, Actor] = {**rivals.actors(bed), "alone": Batch(**first, **how)}
    before = "alone"
    if bed.params["rivals"]:
        before, last = "plain", {**first, "after": ("alone",), "after_s": 0.3}
        actors["plain"] = Batch(port=traffic.PLAIN_PORT, kept=True, **last)
    actors["bulk"] = Bulk(after=(before,), **how)
    beside_s = SETTLE_S + bulk_s
    late = bed.params["binding"] == "late"  # early binding's page is slow, and so once is enough
    actors["beside"] = Batch(
        rounds=rounds if late else 1, pause_s=1.0, after=(before,), after_s=beside_s, **how
    )
    found = traffic.play(bed, actors)
    return _measures(bed, found, bulk_s)


def _measures(bed: "Bed", found: traffic.Found, bulk_s: float) -> dict[str, Any]:
    alone, beside = found["alone"]["took_s"][1:], found["beside"]["took_s"]
    began = found["beside"]["began_s"][0]
    span = began - bulk_s, began
    measures = {
        "completion_s": rates.median(beside),
        "web_alone_s": rates.median(alone),
        "web_beside_s": rates.median(beside),
        "web_ratio": rates.median(beside) / rates.median(alone),
        "bulk_mbps": rates.mbps(found["bulk"]["bins"], *span) or 0.0,
        "web_plain_s": None,
        "web_over_plain": None,
        "rivals_mbps": None,
        "yielding": None,
        "web_each_s": [round(each, 4) for each in (*alone, *beside)],
    }
    if "plain" in found:
        plain = rates.median(found["plain"]["took_s"][1:])
        theirs = [
            rates.mbps(found[name]["bins"], *span) or 0.0 for name in found if "rival" in name
        ]
        measures |= {
            "web_plain_s": plain,
            "web_over_plain": rates.median(beside) / plain,
            "rivals_mbps": sum(theirs),
        }
    if bed.pair is not None:
        since = bed.went + began - SETTLE_S - bulk_s
        measures["yielding"] = account.yielding(bed.pair.statistics("rp"), since)
    return measures
