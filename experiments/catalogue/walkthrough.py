# SPDX-License-Identifier: MIT
"""The course's walk-through: ten small responses, one after the other, over one connection."""

from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.model import Experiment, Figure, Metric
from experiments.workloads import account, course
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun


class Walkthrough(Experiment):
    name = "walkthrough"
    ways = ("pipes", "direct")
    title = "The course's walk-through"
    question = "Do the responses of the course's server arrive, and how soon?"
    parameters = (
        Parameter("count", 10, "whole", "responses", low=1),
        Parameter("size_up", 4096, "size", "of each request", low=0),
        Parameter("size", 4096, "size", "of each response", low=0),
    )
    metrics = (
        Metric("completion_s", "time of all responses", "s", matters=0.05),
        Metric("response_s", "time of a response, median", "s"),
    )
    grids = (
        {"pipes": (1, 2, 4, 8), "preset": ("wired", "lossy")},
        {"way": ("direct",), "preset": ("wired", "lossy")},
    )
    quick_grids = ({"pipes": (1, 4)}, {"way": ("direct",)})
    quick_reps = 5
    run_seconds = 2.0
    figures = (Figure(name="time", title="Ten responses", kind="against", facet="preset"),)

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        count, up, down = (int(run.params[name]) for name in ("count", "size_up", "size"))  # type: ignore[arg-type]
        done = course.walk_through(run, count, up, down)
        if len(done) != count:
            raise RunFailed(f"{len(done)} responses of {count}")
        each = sorted(b - a for a, b in zip([0.0, *done], done, strict=False))
        measures: dict[str, Any] = {"completion_s": done[-1], "response_s": each[count // 2]}
        if run.pair is not None:
            measures |= account.account(run, connections=1).measures()
        return measures
