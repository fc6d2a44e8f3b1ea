# SPDX-License-Identifier: MIT
"""Two results side by side: every configuration and every ratio that both have, and what differs.

Runs are paired by seed where both used the same seeds. A parameter that is one value throughout A
and another throughout B (say, the congestion control) is a difference, and keeps nothing apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from experiments.folder import FolderError
from experiments.model import Metric
from experiments.ratios import Both, of_both, share
from experiments.report import facts, words
from experiments.report.data import Results, found, load, varying
from experiments.report.runs import Configuration, Key, Run
from experiments.statistics import Drawn, changed, difference, grouped, ratio
from topologies.parameter import Value

SEEN = ("kernel", "system", "cpu", "cores", "host")  # of the machine
EN_DASH = "\N{EN DASH}"
HOLDS = {True: "yes", False: "no", None: "no interval"}


@dataclass(frozen=True)
class Pair(Both):
    """A configuration of both."""

    paired: bool  # by seeds in common


@dataclass
class Comparison:
    a: Results
    b: Results
    differs: list[tuple[str, str, str]]
    pairs: dict[Metric, list[Pair]]  # of each metric, the main one first
    only_a: list[str]
    only_b: list[str]
    ratios: list[Both]
    html: Path | None = field(default=None)

    @property
    def sentence(self) -> str:
        pairs = self.pairs.get(self.a.main, [])
        counts = [
            (sum(pair.says == says for pair in pairs), text)
            for says, text in (
                ("smaller", "smaller in B"),
                ("larger", "larger in B"),
                ("alike", "alike"),
                ("not decided", "not decided"),
                ("too few runs", "with too few runs"),
            )
        ]
        told = [f"{n} {text}" for n, text in counts if n]
        alike = words.count(len(pairs), "configuration")
        return f"{self.a.main.label} of {alike} that both have: {words.listed(told) or 'none'}."

    @property
    def held(self) -> list[str]:
        """How many of B's medians lie where A's intervals say."""
        times = share(self.pairs.get(self.a.main, []), "configurations")
        return [*times, *share(self.ratios, "ratios")]

    def __str__(self) -> str:
        out = StringIO()
        console = Console(file=out, width=100, color_system=None, highlight=False, markup=False)
        console.print(f"A: {self.a.folder}\nB: {self.b.folder}\n", soft_wrap=True)
        console.print(self._text())
        if self.ratios:
            console.print()
            console.print(self._ratios())
        console.print(f"\n{self.sentence}")
        for sentence in self.held:
            console.print(sentence)
        if not all(pair.paired for pairs in self.pairs.values() for pair in pairs):
            console.print("Without seeds in common: of medians, not of pairs.")
        for name, its in (("A", self.only_a), ("B", self.only_b)):
            if its:
                console.print(f"Only in {name}: {'; '.join(its)}.")
        for what, before, after in self.differs:
            console.print(f"{what}: {before} (A), {after} (B)", soft_wrap=True)
        if not self.differs:
            console.print("Nothing that was recorded differs but the time.")
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def _text(self) -> Table:
        metric = self.a.main
        pairs = self.pairs.get(metric, [])
        unit = f" [{metric.unit}]" if metric.unit else ""
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        made.add_column(f"{metric.label}{unit}")
        for name in ("A", "B", change_of(pairs), "95 %", "n"):
            made.add_column(name, justify="right", no_wrap=True)
        made.add_column("B is")
        for pair in pairs:
            made.add_row(
                pair.label,
                words.number(pair.a.median),
                words.number(pair.b.median),
                pair.write(pair.change.median) if pair.change.n else EN_DASH,
                pair.interval(pair.change),
                str(pair.change.n),
                pair.says,
            )
        return made

    def _ratios(self) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        made.add_column("ratio")
        for name in ("A", "95 %", "B", "95 %", "B/A", "95 %"):
            made.add_column(name, justify="right", no_wrap=True)
        made.add_column("A holds B")
        for it in self.ratios:
            cells = [
                text
                for got in (it.a, it.b, it.change)
                for text in (it.write(got.median), it.interval(got))
            ]
            made.add_row(it.label, *cells, HOLDS[it.held])
        return made


def change_of(pairs: Sequence[Pair]) -> str:
    """What stands in their column."""
    return "B less A" if any(it.signed for it in pairs) else "B/A"


def compare(a: Path, b: Path) -> Comparison:
    """Reads both and writes a page, beside B's report."""
    before, after = load(a), load(b)
    made = of(before, after)
    made.html = after.folder / f"compare-with-{before.folder.resolve().name}.html"
    made.html.write_text(page(made))
    return made


def of(a: Results, b: Results) -> Comparison:
    if a.name != b.name:
        raise FolderError(f"{a.folder} is of {a.name}, {b.folder} of {b.name}: nothing in common")
    names, shifted = _names(a, b)
    in_a, in_b = _keyed(a, names), _keyed(b, names)
    both = [key for key in in_a if key in in_b]
    told = varying([it.params for it in (*a.configurations, *b.configurations)], a.axes)
    told = tuple(name for name in told if name in names)

    def label(it: Configuration) -> str:
        return words.label(it.params, told) or a.name

    pairs = {}
    for metric in a.experiment.metrics:
        signed = a.is_signed(metric) or b.is_signed(metric)
        its = [
            _pair(label(in_a[key]), in_a[key], in_b[key], metric, signed, a.repeats([in_a[key]]))
            for key in both
        ]
        its = [pair for pair in its if pair.a.n or pair.b.n]
        if its or metric == a.main:
            pairs[metric] = its
    return Comparison(
        a,
        b,
        [*shifted, *_meta(a, b)],
        pairs,
        [label(it) for key, it in in_a.items() if key not in in_b],
        [label(it) for key, it in in_b.items() if key not in in_a],
        of_both(a, b),
    )


def _constant(results: Results, name: str) -> tuple[bool, Value]:
    values = {it.params.get(name) for it in results.configurations} - {None}
    return len(values) <= 1, next(iter(values), None)


def _names(a: Results, b: Results) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The parameters that keep configurations apart, and those that differ between A and B."""
    every = {name for it in (*a.configurations, *b.configurations) for name in it.params}
    kept, shifted = [], []
    for name in sorted(every - {"seed"}):
        (alike_a, of_a), (alike_b, of_b) = _constant(a, name), _constant(b, name)
        if alike_a and alike_b and of_a != of_b:
            shifted.append((words.name(name), words.value(name, of_a), words.value(name, of_b)))
        else:
            kept.append(name)
    return kept, shifted


def _keyed(results: Results, names: list[str]) -> dict[Key, Configuration]:
    return {results.key(it.params, names): it for it in results.configurations}


def _pair(
    label: str, a: Configuration, b: Configuration, metric: Metric, signed: bool, repeats: bool
) -> Pair:
    def by_seed(it: Configuration) -> dict[int, tuple[Run, float]]:
        if not it.estimate(metric).n:
            return {}
        values = ((run, run.measured(metric)) for run in it.runs)
        return {run.seed: (run, value) for run, value in values if value is not None}

    of_a, of_b = by_seed(a), by_seed(b)
    common = sorted(of_a.keys() & of_b.keys())
    got_a, got_b = a.estimate(metric), b.estimate(metric)
    compared = difference if signed else ratio
    drawn = []
    for seed in common:
        (run_a, value_a), (run_b, value_b) = of_a[seed], of_b[seed]
        ok = run_a.ok and run_b.ok
        drawn.append(Drawn(label, run_b.rep, compared(value_b, value_a), ok, run_b.session))
    how: Literal["ratio", "difference"] = "difference" if signed else "ratio"
    found = grouped(drawn) if drawn else changed(got_b, got_a, how)
    matters = metric.least(got_a.median) if signed else metric.matters or 0.0
    return Pair(label, got_a, got_b, found, matters, signed, repeats, bool(drawn))


def _meta(a: Results, b: Results) -> list[tuple[str, str, str]]:
    return [(name, before, after) for name, before, after in _facts(a, b) if before != after]


def _facts(a: Results, b: Results) -> Iterator[tuple[str, str, str]]:
    def both(name: str) -> tuple[str, str, str]:
        return (name, *(str(found(it.meta, name) or facts.NOT_TOLD) for it in (a, b)))

    yield both("commit")
    yield "link", facts.links(a), facts.links(b)
    for name in SEEN:
        yield both(name)
    for name, before, after in _versions(a.meta, b.meta):
        yield name, before, after
    yield "runs of a configuration", _reps(a), _reps(b)


def _reps(results: Results) -> str:
    low, high = results.reps
    return str(low) if low == high else f"{low} to {high}"


def _versions(a: dict[str, Any], b: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    told = [found(meta, "versions") for meta in (a, b)]
    sides = [it if isinstance(it, dict) else {} for it in told]
    for name in sorted(sides[0].keys() | sides[1].keys()):
        if name != "commit":
            yield name, *(str(side.get(name) or facts.NOT_TOLD) for side in sides)  # type: ignore[misc]


def page(made: Comparison) -> str:
    from experiments.report.page import environment

    return (
        environment()
        .get_template("compare.html")
        .render(
            title=f"{made.a.experiment.title}: two results",
            made=made,
            a=str(made.a.folder.resolve().name),
            b=str(made.b.folder.resolve().name),
            name=made.a.name,
            number=words.number,
            holds=HOLDS,
            change_of=change_of,
        )
        .lstrip()
    )
