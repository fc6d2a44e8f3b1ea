# SPDX-License-Identifier: MIT
"""A last mile whose uplink is slower than its downlink, up to twenty times."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments import parameters
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import account, rates, traffic
from experiments.workloads.actors import Actor, Bulk, Transfer
from topologies.mile import MILE
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

DOWN_MBPS = 20.0
RATIOS = (1, 2, 5, 10, 20)
UP_MBPS = tuple(DOWN_MBPS / ratio for ratio in RATIOS)
WAYS = ("down", "up", "down-beside-up")
LINK = {"preset": ("dsl",), "down_mbps": (DOWN_MBPS,)}


def runs(up_mbps: float, transfer: str, pipes: int) -> Params:
    return {"up_mbps": up_mbps, "transfer": transfer, "pipes": pipes, "way": "pipes"}


class Asymmetric(Experiment):
    name = "asymmetric"
    title = "An uplink slower than the downlink"
    question = "Do several pipes help, or hurt, where acknowledgements have little room?"
    parameters = (
        Parameter("size", 300_000, "size", "of the transfer that is timed", low=1),
        Parameter(
            "transfer",
            "down",
            "text",
            "which way it goes; down-beside-up: while an upload without end fills the uplink",
            WAYS,
        ),
        replace(MILE["down_mbps"], default=DOWN_MBPS),
    )
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("ratio", "downlink rate over uplink rate", "", "neither"),
        Metric("over_floor", "completion time over RTT + size/rate", ""),
        Metric("upload_mbps", "goodput of the upload beside it", "Mbit/s", "more"),
    )
    grids = (
        {**LINK, "up_mbps": UP_MBPS, "transfer": WAYS, "pipes": (1, 2, 4, 8)},
        {**LINK, "up_mbps": UP_MBPS, "transfer": WAYS, "way": ("direct",)},
    )
    reps = 10
    quick_grids = (
        {**LINK, "up_mbps": (20.0, 4.0, 1.0), "transfer": WAYS[:2], "pipes": (1, 8)},
        {**LINK, "up_mbps": (20.0, 1.0), "transfer": WAYS[2:], "pipes": (1, 8)},
        {**LINK, "up_mbps": (20.0, 4.0, 1.0), "transfer": WAYS[:2], "way": ("direct",)},
    )
    quick_reps = 5
    run_seconds = 2.0
    claims = tuple(
        Claim(
            row="asymmetric",
            where="not published",
            says=f"{transfer}, uplink {20 / up:g} times slower: 8 pipes instead of 1",
            of=runs(up, transfer, 8),
            over=runs(up, transfer, 1),
        )
        for transfer in WAYS
        for up in (20.0, 4.0, 1.0)
        if up != 4.0 or transfer in WAYS[:2]
    )
    figures = (
        Figure(
            name="by-ratio",
            title="Completion time by the ratio of the rates",
            kind="against",
            x="ratio",
            hue="pipes",
            facet="transfer",
            floor="floor_s",
            log=True,
        ),
        Figure(
            name="map",
            title="Download by uplink rate and pipes",
            kind="heat",
            x="pipes",
            hue="up_mbps",
            where={"transfer": "down"},
        ),
    )
    notes = (
        "Queues are those of the preset dsl: 100 ms towards the client, 500 ms from it. "
        "No figure is published for this.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        size, transfer = int(run.params["size"]), str(run.params["transfer"])  # type: ignore[arg-type]
        how = traffic.way(run)
        up = transfer == "up"
        beside = transfer == "down-beside-up"
        actors: dict[str, Actor] = {
            "timed": Transfer(
                up=size if up else 0,
                down=0 if up else size,
                after_s=2.0 if beside else 0.0,
                **how,
            )
        }
        if beside:
            actors["upload"] = Bulk(way="up", **how)
        found = traffic.play(run, actors)
        mile = parameters.miles(run.params)[0]
        seconds, floor = found["timed"]["completion_s"], self.floor_s(run.params)
        assert mile.down_mbps and mile.up_mbps
        measures = {
            "completion_s": seconds,
            "ratio": mile.down_mbps / mile.up_mbps,
            "floor_s": floor,
            "over_floor": seconds / floor,
        }
        if beside:
            until = found["timed"]["began_s"] + seconds
            measures["upload_mbps"] = rates.mbps(found["upload"]["bins"], 1.0, until)
        if run.pair is not None:
            measures |= account.account(run, len(actors)).measures("up" if up else "down")
        return measures

    def floor_s(self, params: Params) -> float:
        way = "up" if params["transfer"] == "up" else "down"
        return rates.floor_s(params, int(params["size"]), way)  # type: ignore[arg-type]
