# SPDX-License-Identifier: MIT
"""How far a sweep is: its plan once, then each run as its line is written."""

import json
import statistics
from pathlib import Path
from typing import Any

from experiments import catalogue
from experiments.catalogue import UnknownExperiment
from experiments.definition import DefinitionError
from experiments.folder import RUNS, FolderError, Results
from experiments.machine import ATTEMPTS, VOID
from experiments.model import Experiment, Metric
from experiments.plan import digest
from experiments.watch.tail import Tail

Told = dict[str, Any]
COMPLETION = Metric("completion_s", "completion time", "s")


def _experiment(results: Results) -> Experiment | None:
    """None where this version does not know it: its folder can be looked at all the same."""
    try:
        return catalogue.of(results.meta)
    except (KeyError, TypeError, UnknownExperiment, DefinitionError):
        return None


class Sweep:
    """Of one folder, for one who looks."""

    def __init__(self, folder: Path) -> None:
        results = Results.open(folder)
        self.plan, experiment = results.plan, _experiment(results)
        self.metric = experiment.metrics[0] if experiment else COMPLETION
        self.title = experiment.title if experiment else self.plan.experiment
        self.question = experiment.question if experiment else ""
        self.total = len(self.plan)
        self._guess_s = experiment.run_seconds if experiment else None
        self._taken: list[float] = []
        self._done: set[str] = set()
        self._void: dict[str, int] = {}
        self._tail = Tail(folder / RUNS)

    def told(self) -> Told:
        """What does not change."""
        labels = {digest(it): self._label(it) for it in self.plan.configurations}
        return {
            "experiment": self.plan.experiment,
            "title": self.title,
            "question": self.question,
            "total": self.total,
            "metric": {"label": self.metric.label, "unit": self.metric.unit},
            "configurations": labels,
        }

    def _label(self, params: Any) -> str:
        told = [
            f"{name} {params[name]}" for name in self.plan.varying if params.get(name) is not None
        ]
        return ", ".join(told) or "as it is defined"

    def new(self) -> list[Told]:
        """The runs that ended since the last look. Raises FolderError."""
        try:
            return [self._ended(json.loads(line)) for line in self._tail.new()]
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            raise FolderError(f"{self._tail.path}: a line that is no run: {why}") from None

    def _ended(self, record: Told) -> Told:
        ident, outcome = record["id"], record["outcome"]
        self._taken.append(record["took_s"])
        if outcome == VOID:
            self._void[ident] = self._void.get(ident, 0) + 1
        if outcome != VOID or self._void[ident] >= ATTEMPTS:
            self._done.add(ident)
        value = record.get("measures", {}).get(self.metric.name, record.get("completion_s"))
        return {
            "id": ident,
            "configuration": digest(record["params"]),
            "outcome": outcome,
            "error": record.get("error"),
            "value": value if isinstance(value, int | float) else None,
            "took_s": record["took_s"],
        }

    @property
    def left(self) -> int:
        return max(0, self.total - len(self._done))

    def left_s(self) -> float | None:
        """How long the rest may take, by what runs took so far."""
        each = statistics.fmean(self._taken) if self._taken else self._guess_s
        return None if each is None else each * self.left

    def close(self) -> None:
        self._tail.close()
