# SPDX-License-Identifier: MIT
"""The experiment that a folder's runs belong to: the catalogue's, or one made up from them."""

from collections.abc import Callable, Sequence
from typing import Any

from experiments import catalogue
from experiments.model import Experiment, Metric
from experiments.report.runs import Run

Find = Callable[[str], Experiment | None]


def in_catalogue(meta: dict[str, Any]) -> Experiment | None:
    """The catalogue's experiment of a folder, also one that a file defined."""
    try:
        return catalogue.of(meta)
    except (catalogue.UnknownExperiment, KeyError):
        return None


class Unknown(Experiment):
    """An experiment that the catalogue no longer has: its metrics are what the runs measured."""

    name = "unknown"
    title = "An experiment that is not in the catalogue"
    question = "The catalogue has no experiment of this name: the runs are shown as they are."
    grids = ()

    def __init__(self, name: str, runs: Sequence[Run]) -> None:
        self.name, self.title = name, name  # type: ignore[misc]
        numbers: dict[str, None] = {}
        for run in runs:
            numbers.update(
                (key, None)
                for key, value in run.measures.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            )
        metrics = [
            Metric(key, key.replace("_", " "), "", "neither")
            for key in numbers
            if key != "completion_s"
        ]
        if not metrics or any(run.completion_s is not None for run in runs):
            metrics.insert(0, Metric("completion_s", "completion time", "s"))
        self.metrics = tuple(metrics)  # type: ignore[misc]

    def measure(self, run: Any) -> dict[str, Any]:
        raise NotImplementedError(f"{self.name} is not in the catalogue")


def experiment_of(
    meta: dict[str, Any], runs: Sequence[Run], find: Find | None = None
) -> tuple[Experiment, bool]:
    """Whether it is known, too."""
    name = str(meta.get("experiment", "unknown"))
    known = find(name) if find else in_catalogue(meta)
    return (known, True) if known else (Unknown(name, runs), False)
