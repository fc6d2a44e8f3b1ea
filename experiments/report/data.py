# SPDX-License-Identifier: MIT
"""A results folder as the report sees it: runs, configurations, pairs of runs."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from experiments import across, catalogue, folder, parameters, pooled, sweep
from experiments.machine import VOID, kept_by
from experiments.model import OF_SETTINGS, Claim, Experiment, Figure, Metric
from experiments.plan import LEAST_ROUNDS
from experiments.report.kinds import experiment_of
from experiments.report.matching import is_swept, matches, spelled
from experiments.report.runs import Basis, Configuration, Key, Run
from experiments.statistics import (
    Drawn,
    Estimate,
    Pair,
    chance,
    compared_p95,
    difference,
    grouped,
    p95,
    ratio,
    worst,
)
from topologies.parameter import Params, Value
from topologies.presets import PRESETS as ALL_PRESETS

PRESETS = {name: float(k) for k, name in enumerate(ALL_PRESETS)}
T = TypeVar("T")
MANY = 6  # lines that a plot of its own choosing holds
# Those of experiments, too: without pipes they do not apply.
OF_PIPES = (
    *parameters.OF_PIPES,
    *(
        it.name
        for each in catalogue.experiments()
        for it in each.parameters
        if ("way", "pipes") in it.needs
    ),
)
FIRST = ("way", "pipes", "preset", "size")  # in this order where configurations are told apart


@dataclass(frozen=True)
class Results:
    folder: Path
    meta: dict[str, Any]
    runs: tuple[Run, ...]  # interrupted ones left out
    interrupted: int
    experiment: Experiment
    known: bool  # the catalogue has this experiment; else it is what the runs themselves tell
    notes: dict[str, str] = field(default_factory=dict)
    voided: tuple[Run, ...] = ()  # attempts in which the machine did not keep up: in no figure

    @property
    def void(self) -> int:
        """How many runs have no attempt that counts."""
        return len({run.id for run in self.voided} - {run.id for run in self.runs})

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def sessions(self) -> int:
        """Apart in time, as the plan has them."""
        return len({run.session for run in self.runs})

    @property
    def failed(self) -> list[Run]:
        return [run for run in self.runs if not run.ok]

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The parameters that tell the configurations apart; not those that follow from others."""
        return varying([run.params for run in self.runs], self.axes)

    @property
    def axes(self) -> tuple[str, ...]:
        named = [axis for grid in self.experiment.grids for axis in grid]
        plan = found(self.meta, "axes")
        if isinstance(plan, dict):
            named += list(plan)
        return tuple(dict.fromkeys(named))

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """In the order of their parameters' values."""
        groups: dict[Key, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(self.key(run.params, self.varying), []).append(run)
        made = [
            Configuration(runs[0].params, tuple(sorted(runs, key=lambda run: run.rep)))
            for runs in groups.values()
        ]
        return tuple(sorted(made, key=lambda it: self.order(it.params)))

    @staticmethod
    def key(params: Params, names: Sequence[str]) -> Key:
        return tuple(params.get(name) for name in names)

    def order(self, params: Params) -> tuple[Any, ...]:
        """Settings first, then how it is carried: what is compared stands together."""
        carried = ("way", "pipes")
        names = [name for name in self.varying if name not in carried]
        plain = {"direct": 0, "pipes": 1}.get(str(params.get("way", "pipes")), 2)
        return (
            *(sortable(params.get(name)) for name in names),
            plain,
            sortable(params.get("way")),
            sortable(params.get("pipes")),
        )

    def metric(self, name: str) -> Metric:
        for metric in self.experiment.metrics:
            if metric.name == name:
                return metric
        if name == "completion_s":
            return Metric(name, "completion time", "s")
        return Metric(name, name.replace("_", " "), "", "neither")

    @property
    def main(self) -> Metric:
        """What the experiment is about: its first metric."""
        return self.experiment.metrics[0]

    @property
    def reps(self) -> tuple[int, int]:
        """The fewest and the most runs of a configuration."""
        counts = [len(it.runs) for it in self.configurations] or [0]
        return min(counts), max(counts)

    def select(self, where: Params) -> tuple[Configuration, ...]:
        """Looked for once: a plot asks for both sides of each claim at each of its points."""
        key = frozenset(where.items())
        if key not in self._selected:
            self._selected[key] = tuple(
                it for it in self.configurations if matches(it.params, where)
            )
        return self._selected[key]

    @cached_property
    def _selected(self) -> dict[frozenset[tuple[str, Value]], tuple[Configuration, ...]]:
        return {}

    def asked(self, claim: Claim) -> "Results":
        """The runs that a claim is said of: those with a value that no sweep of the experiment has
        answer it only where it names that value itself."""
        named = spelled({**claim.of, **(claim.over or {})}).keys()
        left = frozenset(it for it in self.strange if it not in named)
        if not left:
            return self
        if left not in self._views:
            runs = tuple(it for it in self.runs if not self.is_strange(it.params, left))
            self._views[left] = replace(self, runs=runs)
        return self._views[left]

    @cached_property
    def _views(self) -> dict[frozenset[str], "Results"]:
        return {}

    def is_strange(self, params: Params, names: Iterable[str]) -> bool:
        return any(not is_swept(params, name, self._swept.get(name, ())) for name in names)

    @cached_property
    def strange(self) -> tuple[str, ...]:
        """Parameters that the command gave values which no sweep of the experiment has. Which unit
        it is (a page) changes nothing, nor whose proxies, which emulator and what clients all runs
        have."""
        same = ("proxies", "link", "client")
        alike = (it for it in same if len(values(self, it) - {None}) <= 1)
        free = {*self.experiment.units, *alike}
        names = [it for it in self._told if it not in free] if self.experiment.claims else []
        return tuple(
            name
            for name in names
            if any(self.is_strange(it.params, [name]) for it in self.configurations)
        )

    @property
    def _told(self) -> list[str]:
        """Parameters that the command named. What it did not is as the experiment had it then,
        whatever it has now."""
        command = self.meta.get("command")
        words = map(str, command if isinstance(command, list) else ())
        told = (it.partition("=")[0].removeprefix("--").replace("-", "_") for it in words)
        known = {name for it in self.configurations for name in it.params}
        return [it for it in dict.fromkeys(told) if it in known]

    @cached_property
    def _swept(self) -> dict[str, set[Value]]:
        """What the experiment's own sweeps have of each parameter."""
        found: dict[str, set[Value]] = {}
        for quick in (False, True):
            for params in sweep.configurations(self.experiment, {}, quick=quick):
                for name, value in params.items():
                    found.setdefault(name, set()).add(value)
        return found

    def shown(self, where: Params) -> list[Configuration]:
        """For figures: what is said of pipes keeps no baseline out, which has none."""
        without = {name: value for name, value in where.items() if name not in OF_PIPES}
        return [
            it
            for it in self.configurations
            if matches(it.params, where if it.params.get("pipes") else without)
        ]

    def pairs(self, of: Params, over: Params, metric: Metric) -> list[Pair]:
        """The values of runs that differ only in what `of` and `over` name."""
        sides = [self.select(of), self.select(over)]
        named = spelled({**of, **over}).keys()
        rest = [
            name
            for name in self.varying
            if name not in named
            # What does not apply to one side (binding, without pipes) need not be alike.
            and all(any(it.params.get(name) is not None for it in side) for side in sides)
        ]

        def mates(side: Sequence[Configuration]) -> Iterator[tuple[Key, Run]]:
            for it in side:
                for run in it.runs:
                    yield (*self.key(run.params, rest), run.seed), run

        others: dict[Key, list[Run]] = {}
        for key, run in mates(sides[1]):
            others.setdefault(key, []).append(run)
        found = []
        for key, a in mates(sides[0]):
            for b in others.get(key, []):
                one, other = a.measured(metric), b.measured(metric)
                if one is not None and other is not None:
                    ok = a.ok and b.ok
                    found.append(Pair(key[:-1], a.rep, one, other, ok, a.session))
        return found

    def ratio(self, of: Params, over: Params, metric: Metric) -> Estimate:
        return grouped([it.drawn(ratio) for it in self.pairs(of, over, metric)])

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, what: Hashable, work: Callable[[], T]) -> T:
        """What `work` answers, which is the same each time and is not to be changed."""
        if what not in self._known:
            self._known[what] = work()
        return self._known[what]

    def pooled(self, where: Params, metric: Metric) -> Estimate:
        """The runs of all configurations that match, as one."""
        key = ("pooled", repr(sorted(where.items())), metric)
        return self.once(key, lambda: grouped(self._pool(where, metric)))

    def _pool(self, where: Params, metric: Metric) -> list[Drawn]:
        chosen = [it for it in self.select(where) if it.estimate(metric).n]
        return [value for it in chosen for value in self.drawn(it, metric)]

    def answer(self, claim: Claim) -> Estimate:
        """What the runs say to it."""
        if claim.statistic in OF_SETTINGS:
            return across.estimate(self._drawn_for(claim), claim.statistic, claim.settings)
        if claim.statistic == "pooled":
            return self._of_all(claim)
        if claim.statistic == "worst":
            return worst(self._drawn_for(claim), self.metric(claim.metric).better)
        if claim.statistic != "p95":
            return grouped(self._drawn_for(claim))
        if claim.over is None:
            return p95(self._drawn_for(claim))
        pairs = self.pairs(claim.of, claim.over, self.metric(claim.metric))
        return compared_p95(pairs, ratio if claim.compared == "ratio" else difference)

    def _of_all(self, claim: Claim) -> Estimate:
        sides = [claim.of] if claim.over is None else [claim.of, claim.over]
        runs = [[run for it in self.select(side) for run in it.runs] for side in sides]
        combined = {1: float, 2: ratio if claim.compared == "ratio" else difference}[len(sides)]
        return pooled.estimate(runs, self.metric(claim.metric), combined)

    def basis(self, claim: Claim) -> Basis:
        """Of what runs the answer is."""
        drawn = self._drawn_for(claim)
        reps = {(it.session, it.rep) for it in drawn}
        sides = [*self.select(claim.of), *self.select(claim.over or claim.of)]
        runs = [run for it in sides for run in it.runs if (run.session, run.rep) in reps]
        sessions = {it.session for it in drawn}
        seeds = {run.seed for run in runs}
        return Basis(len(sessions), len(seeds), len(reps), self._is_lossless(sides))

    def _is_lossless(self, sides: Sequence[Configuration]) -> bool:
        return all(it.lossless and not self.experiment.draws(it.params) for it in sides)

    def repeats(self, sides: Sequence[Configuration]) -> bool:
        """Whether what these runs look like an interval is of the same timers again and again."""
        return self.sessions < LEAST_ROUNDS and self._is_lossless(sides)

    def _drawn_for(self, claim: Claim) -> list[Drawn]:
        metric = self.metric(claim.metric)
        if claim.over is None:
            return self._pool(claim.of, metric)
        compared = ratio if claim.compared == "ratio" else difference
        return [it.drawn(compared) for it in self.pairs(claim.of, claim.over, metric)]

    def chance(self, claim: Claim) -> float | None:
        """Of the direction, if there were none; None of what is no median: no test says it."""
        if claim.statistic != "median":
            return None
        drawn = self._drawn_for(claim)
        if claim.expect != "same":
            return chance(drawn, claim.than, claim.expect)
        low, high = sorted(claim.than * (1 + it) for it in (-claim.within, claim.within))
        found = (chance(drawn, low, "more"), chance(drawn, high, "less"))
        return max((it for it in found if it is not None), default=None)

    def is_signed(self, metric: Metric) -> bool:
        """Whether it may be below 0, so that a ratio of two says nothing."""
        values = (run.measured(metric) for run in self.runs if run.ok)
        return self.once(
            ("signed", metric), lambda: any(value is not None and value < 0 for value in values)
        )

    def difference(self, of: Params, over: Params, metric: Metric) -> Estimate:
        return grouped([it.drawn(difference) for it in self.pairs(of, over, metric)])

    def drawn(self, it: Configuration, metric: Metric) -> list[Drawn]:
        return it.drawn(metric, self.key(it.params, self.varying))

    def figures(self) -> tuple[Figure, ...]:
        return self.experiment.figures or default_figures(self)


def varying(all_params: Sequence[Params], axes: Sequence[str] = ()) -> tuple[str, ...]:
    values: dict[str, list[Value]] = {}
    for name in dict.fromkeys(name for params in all_params for name in params):
        if name != "seed":
            values[name] = [params.get(name) for params in all_params]
    differing = [name for name, column in values.items() if len({repr(v) for v in column}) > 1]
    rank = {name: k for k, name in enumerate(dict.fromkeys((*FIRST, *axes)))}
    differing.sort(key=lambda name: (rank.get(name, len(rank)), name))
    kept: list[str] = []
    for name in differing:
        own = {repr(value) for value in values[name] if value is not None}
        swept = name in rank and len(own) > 1  # else it differs in whether it applies
        if swept or not follows(values[name], [values[other] for other in kept]):
            kept.append(name)
    return tuple(kept)


def follows(column: Sequence[Value], others: Sequence[Sequence[Value]]) -> bool:
    """Whether the values of a column are decided by those of the others."""
    seen: dict[Key, Value] = {}
    for k, value in enumerate(column):
        key = tuple(repr(other[k]) for other in others)
        if seen.setdefault(key, value) != value:
            return False
    return True


def sortable(value: Value) -> tuple[int, float, str]:
    if isinstance(value, bool):
        return (1, float(value), "")
    if isinstance(value, int | float):
        return (1, float(value), "")
    return (0, 0.0, "") if value is None else (2, PRESETS.get(value, 0.0), value)


def found(tree: Any, name: str) -> Any:
    """The first value under this name, the shallowest first; None if there is none."""
    level = [tree]
    while level:
        below: list[Any] = []
        for it in level:
            if isinstance(it, dict):
                if it.get(name) is not None:
                    return it[name]
                below += it.values()
            elif isinstance(it, list):
                below += it
        level = below
    return None


def default_figures(results: Results) -> tuple[Figure, ...]:
    """For an experiment that names none: its main metric over what it sweeps, and its spread."""
    swept = results.varying
    metric = results.main
    plain = [name for name in swept if name not in ("way", "pipes")]
    carried = "pipes" in swept or "way" in swept
    number = next((name for name in swept if _numbers(results, name)), "")
    x = "pipes" if "pipes" in swept else number or (swept[0] if swept else "pipes")
    others = [name for name in plain if name != x and len(values(results, name)) <= MANY]
    hue = others[0] if x == "pipes" and others else ("pipes" if carried else (others or [""])[0])
    curve = "pipes" if carried else x
    return (
        Figure("main", metric.label, "against", metric.name, x=x, hue=hue),
        Figure("spread", f"{metric.label}, every run", "cdf", metric.name, "", curve),
    )


def values(results: Results, name: str) -> set[Value]:
    return {it.params.get(name) for it in results.configurations}


def _numbers(results: Results, name: str) -> bool:
    return all(
        isinstance(it.params.get(name), int | float) and it.params.get(name) is not True
        for it in results.configurations
    )


def load(path: Path, find: Callable[[str], Experiment | None] | None = None) -> Results:
    """Reads a results folder; `find` looks an experiment up by name (else: the catalogue)."""
    there = folder.Results.open(Path(path))
    records = there.runs()
    void = [record for record in records if record["outcome"] == VOID]
    latest = {str(it["id"]): it for it in records if it["outcome"] != VOID}
    runs = [_run(there, it) for it in latest.values() if it["outcome"] != "interrupted"]
    _check_summary(there.path / "summary.json", len(runs))
    experiment, known = experiment_of(there.meta, runs, find)
    return Results(
        folder=there.path,
        meta=there.meta,
        runs=tuple(runs),
        interrupted=len(latest) - len(runs),
        experiment=experiment,
        known=known,
        notes=_notes(there.path / "notes.json"),
        voided=tuple(_run(there, it) for it in void),
    )


def _check_summary(path: Path, runs: int) -> None:
    """A summary of more runs than there are would be lost with the next report."""
    if not path.is_file():
        return
    try:
        told = int(json.loads(path.read_text())["runs"])
    except (ValueError, KeyError, TypeError) as why:
        raise folder.FolderError(f"{path}: no summary: {why!r}") from None
    if told > runs:
        raise folder.FolderError(
            f"{path} is of {told} runs, {folder.RUNS} has {runs}: some are lost, or it is another's"
        )


def _run(there: folder.Results, line: dict[str, Any]) -> Run:
    """Raises FolderError, of what lacks something or has it in another form."""
    where = f"{there.path / folder.RUNS}: {line['id']}"
    lacks = [name for name in ("params", "seed", "rep", "outcome") if name not in line]
    if lacks or not isinstance(line["params"], dict):
        raise folder.FolderError(f"{where}: no run: it has no {', '.join(lacks) or 'params'}")
    if not kept_by(line.get("machine")):
        raise folder.FolderError(f"{where}: its `machine` does not say how late linkem was")
    names = ("completion_s", "error", "logs", "started", "went", "took_s", "link", "links")
    return Run(
        id=str(line["id"]),
        params=line["params"],
        seed=line["seed"],
        rep=line["rep"],
        session=line.get("session", 0),
        outcome=line["outcome"],
        measures=line.get("measures") or {},
        machine=line.get("machine"),
        **{name: line.get(name) for name in names},
    )


def _notes(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        notes = json.loads(path.read_text())
        return {str(name): str(text) for name, text in notes.items()}
    except (ValueError, AttributeError) as error:
        raise folder.FolderError(f"{path}: no object of texts: {error}") from error
