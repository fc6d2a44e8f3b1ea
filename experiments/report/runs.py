# SPDX-License-Identifier: MIT
"""Runs as the report sees them, and the configurations that they are of."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from experiments import pooled
from experiments.model import Metric
from experiments.plan import LEAST_ROUNDS
from experiments.statistics import NOTHING, Drawn, Estimate, grouped
from topologies.parameter import Params, Value


@dataclass(frozen=True)
class Run:
    """One line of runs.jsonl."""

    id: str
    params: Params
    seed: int
    rep: int
    outcome: str
    measures: dict[str, Any]
    completion_s: float | None = None
    error: str | None = None
    logs: str | None = None
    started: float | None = None
    went: float | None = None  # when its client did, of whose time its series are
    took_s: float | None = None
    link: str | None = None
    links: dict[str, dict[str, int]] | None = None  # what each direction of a last mile counted
    machine: dict[str, Any] | None = None  # how it kept up, see experiments/machine.py
    session: int = 0  # of those that a plan has apart in time

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    def measured(self, metric: Metric) -> float | None:
        """A failed run has the worst value there is; None: not measured in this configuration."""
        if not self.ok:
            return {"less": math.inf, "more": 0.0}.get(metric.better)
        value = self.measures.get(metric.name)
        if value is None and metric.name == "completion_s":
            value = self.completion_s
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return None if math.isnan(value) else float(value)


@dataclass(frozen=True)
class Basis:
    """How many sessions, seeds and repetitions an answer is from."""

    sessions: int
    seeds: int
    repetitions: int
    lossless: bool = False  # nothing of these runs was drawn at random, by links or by the seed

    @property
    def repeats(self) -> bool:
        """Such runs have the same timers each time: their spread is none of another day's."""
        return self.lossless and self.sessions < LEAST_ROUNDS

    @property
    def told(self) -> str:
        counts = {"session": self.sessions, "seed": self.seeds, "repetition": self.repetitions}
        return ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())


Key = tuple[Value, ...]


@dataclass(frozen=True)
class Configuration:
    """The runs that differ in nothing but seed and repetition."""

    params: Params
    runs: tuple[Run, ...]

    @property
    def failed(self) -> int:
        return sum(1 for run in self.runs if not run.ok)

    def counted(self, name: str) -> list[float]:
        """Of each successful run, what its last miles counted in all."""
        told = [run.links for run in self.runs if run.ok and run.links]
        return [float(sum(each.get(name) or 0 for each in links.values())) for links in told]

    @property
    def lossless(self) -> bool:
        """Nothing was lost by chance, and no packet's delay was drawn; False where nobody knows."""
        lost = self.counted("lost_packets")
        drawn = (value for name, value in self.params.items() if name.startswith("jitter"))
        return bool(lost) and not any(lost) and not any(drawn)

    def values(self, metric: Metric) -> list[float]:
        return [v for v in (run.measured(metric) for run in self.runs) if v is not None]

    def drawn(self, metric: Metric, setting: Key = ()) -> list[Drawn]:
        values = [(run, run.measured(metric)) for run in self.runs]
        return [
            Drawn(setting, run.rep, v, run.ok, run.session) for run, v in values if v is not None
        ]

    @cached_property
    def _estimates(self) -> dict[Metric, Estimate]:
        return {}

    def estimate(self, metric: Metric) -> Estimate:
        """Where no successful run has this metric there is nothing to say, failures or not."""
        if metric not in self._estimates:
            self._estimates[metric] = self._estimated(metric)
        return self._estimates[metric]

    def _estimated(self, metric: Metric) -> Estimate:
        if metric.pooled:
            return replace(pooled.estimate([self.runs], metric, float), failed=self.failed)
        measured = [run.measured(metric) for run in self.runs if run.ok]
        if self.failed < len(self.runs) and all(value is None for value in measured):
            return NOTHING
        return replace(grouped(self.drawn(metric)), failed=self.failed)
