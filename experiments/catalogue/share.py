# SPDX-License-Identifier: MIT
"""The share that a download over pipes gets beside plain connections that were there before."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.web_beside import BASE, LATE
from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import account, rates, rivals, traffic
from experiments.workloads.actors import Bulk, Pause
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

RIVALS = (1, 4)
CCS = ("cubic", "bbr")
PIPES = (4, 8, 16)
RTT_MS = 60.0
QUEUES = {0.5: 30.0, 1.0: 60.0, 5.0: 300.0}  # milliseconds of queue by bandwidth-delay products
SETTLE_S = 3.0
LEAST = 0.8  # of one connection's share


def case(beside: int, bdp: float, cc: str) -> Params:
    """All of one congestion control: pipes, rivals, and the plain connection compared with."""
    queue_ms = QUEUES[bdp]
    return {**BASE, "rivals": beside, "queue_ms": queue_ms, "cc": cc, "rival_cc": cc}


def grids_of(
    besides: tuple[int, ...],
    queues: tuple[float, ...],
    ccs: tuple[str, ...],
    pipes: tuple[int, ...],
) -> tuple[Grid, ...]:
    """Each number of pipes, and in their place one plain connection."""
    hows: list[Params] = [{**LATE, "pipes": n} for n in pipes]
    hows.append({"way": "direct"})
    return tuple(
        as_grid(how, case(beside, bdp, cc))
        for beside in besides
        for bdp in queues
        for cc in ccs
        for how in hows
    )


def claims_of(beside: int, bdp: float, cc: str, pipes: int) -> tuple[Claim, ...]:
    of: Params = {**case(beside, bdp, cc), "way": "pipes", "pipes": pipes, **LATE}
    one: Params = {**case(beside, bdp, cc), "way": "direct"}
    others = f"{beside} plain" if beside > 1 else "one plain"
    words = f"{pipes} pipes beside {others}, {cc}, queue of {bdp:g} BDP: share"

    def claim(says: str, **more: Any) -> Claim:
        return Claim("share", "not published", f"{words}{says}", of, metric="share", **more)

    most = pipes / (pipes + beside)
    return (
        claim(", against one connection's", over=one, expect="more", than=1.0),
        claim(", never below", over=one, expect="more", than=LEAST),
        claim(", at most that of so many connections", unit="share", expect="less", than=most),
    )


class Share(Experiment):
    name = "share"
    ways = ("pipes", "direct")
    title = "The share of a download beside connections that were there first"
    question = "Does a download over pipes get at least what one plain connection would get?"
    parameters = (
        *rivals.PARAMETERS,
        Parameter("seconds", 10.0, "number", "measured, once the download has its share", low=1),
    )
    metrics = (
        Metric("share", "share of the download", "", "more", matters=0.05),
        Metric("download_mbps", "goodput of the download", "Mbit/s", "more"),
        Metric("rivals_mbps", "goodput of the rivals", "Mbit/s", "neither"),
        Metric("total_mbps", "goodput in all", "Mbit/s", "more", matters=0.02),
        Metric("yielding", "share of the time in which the pipes give way", "", "neither"),
    )
    shown = ("download_mbps", "rivals_mbps", "total_mbps", "yielding")
    grids = grids_of(RIVALS, tuple(QUEUES), CCS, PIPES)
    reps = 5
    quick_grids = grids_of((1,), (1.0,), ("cubic",), (8,))
    quick_reps = 5
    run_seconds = 18.0
    claims = tuple(
        claim
        for beside in RIVALS
        for bdp in QUEUES
        for cc in CCS
        for pipes in PIPES
        for claim in claims_of(beside, bdp, cc, pipes)
    )
    figures = (
        Figure(
            name="share",
            title="Share of a download beside plain connections",
            kind="against",
            y="share",
            hue="rivals",
            facet="cc",
        ),
    )
    notes = (
        "Rivals are plain connections of the same client over the same last mile. They begin three "
        "seconds before the download. What one connection gets is measured: the same download over "
        "one plain connection in place of the pipes, beside the same rivals.",
        "10 Mbit/s, 60 ms. All connections of a run are under one congestion control. The bounds "
        "are the laboratory's own; `fairness` has them all begin at once.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        began = rivals.head_start_s(run)
        since, until = began + SETTLE_S, began + SETTLE_S + seconds
        actors = {
            **rivals.actors(run),
            "download": Bulk(after_s=began, **traffic.way(run)),
            "clock": Pause(seconds=until),
        }
        found = traffic.play(run, actors)
        mbps = {
            name: rates.mbps(found[name]["bins"], since, until) or 0.0
            for name in actors
            if name != "clock"
        }
        measures = shares(mbps.pop("download"), list(mbps.values()))
        if run.pair is not None:
            told = run.pair.statistics("rp")
            measures["yielding"] = account.yielding(told, run.went + since)
        return measures


def shares(download: float, beside: list[float]) -> dict[str, Any]:
    """Of rates in Mbit/s."""
    total = download + sum(beside)
    return {
        "share": download / total if total else None,
        "download_mbps": download,
        "rivals_mbps": sum(beside),
        "total_mbps": total,
    }
