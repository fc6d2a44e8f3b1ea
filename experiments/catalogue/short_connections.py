# SPDX-License-Identifier: MIT
"""Many short connections: how many a second, and how long each takes."""

from typing import TYPE_CHECKING, Any

from experiments.model import Experiment, Figure, Metric
from experiments.workloads import rates, traffic
from experiments.workloads.actors import Churn
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun


class ShortConnections(Experiment):
    name = "short-connections"
    clients = ("namespace", "vm")
    ways = ("pipes", "direct")
    title = "Many short connections"
    question = "How soon is a small response there when each has a connection of its own?"
    parameters = (
        Parameter("count", 400, "whole", "connections", low=1),
        Parameter("parallel", 8, "whole", "at a time", low=1, high=512),
        Parameter("size_up", 200, "size", "of a request", low=0),
        Parameter("size", 2_000, "size", "of a response", low=0),
    )
    metrics = (
        Metric("completion_s", "time of a connection, median", "s", matters=0.05),
        Metric("connection_p95_s", "time of a connection, 95th percentile", "s"),
        Metric("connections_per_s", "connections a second", "1/s", "more"),
    )
    grids = (
        {"pipes": (1, 2, 4, 8), "preset": ("wired", "lossy"), "parallel": (8, 64)},
        {"way": ("direct",), "preset": ("wired", "lossy"), "parallel": (8, 64)},
    )
    reps = 5
    quick_grids = (
        {"pipes": (1, 8), "preset": ("lossy",), "count": (200,)},
        {"way": ("direct",), "preset": ("lossy",), "count": (200,)},
    )
    quick_reps = 3
    run_seconds = 4.0
    figures = (
        Figure(
            name="time",
            title="A short connection",
            kind="against",
            hue="parallel",
            facet="preset",
        ),
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        count, parallel, up, down = (
            int(run.params[name])  # type: ignore[arg-type]
            for name in ("count", "parallel", "size_up", "size")
        )
        port = traffic.way(run)["port"]
        churn = Churn(port=port, count=count, parallel=parallel, up=up, down=down)
        found = traffic.play(run, {"churn": churn})["churn"]
        return {
            "completion_s": rates.median(found["seconds"]),
            "connection_p95_s": rates.quantile(found["seconds"], 0.95),
            "connections_per_s": count / found["took_s"],
        }
