# SPDX-License-Identifier: MIT
"""iperf3's throughput: down, up, and both at once."""

from typing import TYPE_CHECKING, Any

from experiments.model import Experiment, Figure, Metric
from experiments.workloads import iperf
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun


class Throughput(Experiment):
    name = "throughput"
    ways = ("pipes", "direct")
    title = "Throughput"
    question = "What does one connection get in the long run?"
    parameters = (
        Parameter("direction", "down", "text", "which way", tuple(iperf.DIRECTIONS)),
        Parameter("seconds", 10, "whole", "for how long", low=1),
    )
    metrics = (
        Metric("down_mbps", "throughput towards the client", "Mbit/s", "more", matters=0.02),
        Metric("up_mbps", "throughput from the client", "Mbit/s", "more"),
    )
    grids = (
        {
            "pipes": (1, 2, 4, 8),
            "preset": ("wired", "lossy", "dsl"),
            "direction": tuple(iperf.DIRECTIONS),
        },
        {
            "way": ("direct",),
            "preset": ("wired", "lossy", "dsl"),
            "direction": tuple(iperf.DIRECTIONS),
        },
    )
    reps = 5
    quick_grids = (
        {"pipes": (1, 8), "preset": ("lossy",), "direction": ("both",), "seconds": (5,)},
        {"way": ("direct",), "preset": ("lossy",), "direction": ("both",), "seconds": (5,)},
    )
    quick_reps = 2
    run_seconds = 11.0
    packages = ("iperf3",)
    figures = (
        Figure(
            name="down",
            title="Throughput of one connection",
            kind="against",
            y="down_mbps",
            hue="direction",
            facet="preset",
        ),
        Figure(
            name="series",
            title="Throughput, second by second",
            kind="series",
            y="series_down_mbps",
            hue="pipes",
        ),
    )
    notes = ("iperf3 compares no bytes; the other experiments do.",)

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        seconds = int(run.params["seconds"])  # type: ignore[arg-type]
        found = iperf.throughput(run, str(run.params["direction"]), seconds)
        measures: dict[str, Any] = {"series_step_s": 1.0}
        for way, each in found.items():
            measures[f"{way}_mbps"] = each.mbps
            measures[f"series_{way}_mbps"] = list(each.series_mbps)
            measures[f"{way}_retransmits"] = each.retransmits
        return measures
