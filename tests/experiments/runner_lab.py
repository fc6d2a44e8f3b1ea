# SPDX-License-Identifier: MIT
"""Runs in a small lab, for tests: experiments whose measure() is a function, without catalogue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.folder import Results
from experiments.labs import Labs
from experiments.live_run import LiveRun
from experiments.model import Experiment
from experiments.plan import Plan
from experiments.runner import Keep, Runner
from experiments.workloads import traffic
from experiments.workloads.actors import Transfer
from topologies.parameter import Params

# A small one, for the command.
SWEEP = ("--preset", "wired", "--size", "50KB", "--pipes", "1,2", "--way", "pipes", "--warm", "no")
SWEEP += ("--keep-late", "--uncalibrated")  # tests run beside others
Measure = Callable[[LiveRun], dict[str, Any]]


def configuration(**chosen: Any) -> Params:
    return parameters.complete((), {"pipes": 2, "rtt_ms": 10, "link": "linkem", **chosen})


def download(run: LiveRun, size: int = 200_000) -> dict[str, Any]:
    return traffic.play(run, {"file": Transfer(port=traffic.PORT, down=size)})["file"]


def experiment(measure: Measure) -> Experiment:
    def method(_self: Experiment, run: LiveRun) -> dict[str, Any]:
        return measure(run)

    words = {"name": "tried", "title": "Tried", "question": "Does it run?", "grids": ()}
    return type("Tried", (Experiment,), {**words, "measure": method})()


@contextmanager
def runner(
    tmp_path: Path, measure: Measure, *, limit_s: float = 20.0, keep: Keep | None = None
) -> Iterator[Runner]:
    results = Results.create(tmp_path, "tried", None, {"plan": {}})
    with Labs() as labs:
        yield Runner(
            experiment(measure),
            results,
            labs,
            limit_s=limit_s,
            keep=keep or Keep(late=True),
        )


def records(made: Runner, *configurations: Params, reps: int = 1) -> list[dict[str, Any]]:
    plan = Plan("tried", configurations, reps, seed=1, limit_s=made.limit_s)
    return [made.run(run) for run in plan.runs()]
