# SPDX-License-Identifier: MIT
"""A published figure beside what results/curated has of it, and what is known of why they differ.

What runs say of a claim comes from the summary.json of the newest folder that answers it; the
claims are the catalogue's, so that one without runs is there, too.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import catalogue, paper
from experiments.model import STATISTICS, Claim, Experiment
from experiments.report import words
from experiments.report.rows import MARKS, SAYS, SIZES
from experiments.summaries import Summary, answers
from experiments.verdicts import is_another

COUNTED = ("sessions", "seeds", "repetitions")  # that a row is from
NOT_YET = "No cause was tested yet."


@dataclass(frozen=True)
class Line:
    """A published figure, or a bound of the laboratory's own, and what our runs say of it."""

    experiment: Experiment
    claim: Claim
    summary: Summary | None  # of the folder that answers it; None: no runs that are kept have it
    told: dict[str, Any] | None  # of that summary's comparison

    @property
    def verdict(self) -> str:
        return self.told["verdict"] if self.told else "none"

    @property
    def size(self) -> str | None:
        if self.claim.paper is None:
            return None
        return self.told["size"] if self.told else "none"

    @property
    def misses(self) -> bool:
        """Where a reader asks why."""
        return self.verdict not in ("yes", "none") or self.size not in (None, "yes", "none")

    @property
    def is_another(self) -> bool:
        """Where a cause is asked for."""
        return is_another(self.verdict, self.size)

    @property
    def causes(self) -> list[str]:
        """That were tested: by these runs, or before."""
        return list(self.told.get("causes", ())) if self.told else []

    @property
    def is_ratio(self) -> bool:
        return self.claim.over is not None and self.claim.compared == "ratio"

    def number(self, value: float | None) -> str:
        """None: over half of the runs failed."""
        value = math.inf if value is None else value
        return words.ratio(value) if self.is_ratio else words.number(value)

    @property
    def unit(self) -> str:
        unit = self.told["unit"] if self.told else self.claim.unit
        return f" {unit}" if unit else ""

    @property
    def published(self) -> str:
        if self.claim.paper is not None:
            return self.number(self.claim.paper) + self.unit
        than = self.number(self.claim.than) + self.unit
        if self.claim.expect == "same":
            return f"{than} ± {self.claim.within * 100:g} %"
        return f"{'below' if self.claim.expect == 'less' else 'above'} {than}"

    @property
    def ours(self) -> str:
        if self.told is None or self.verdict == "none":
            return "not run"
        value = self.told.get(self.claim.statistic)
        low, high = self.number(self.told["low"]), self.number(self.told["high"])
        inside = f"{low} to {high}"
        if self.verdict == "few":
            inside = f"range {inside}"
        if self.told["repeats"]:
            inside = words.repeated(self.told["sessions"], low, high)
        return f"{self.number(value)}{self.unit} ({inside})"

    @property
    def measured(self) -> str:
        """Of what its numbers are."""
        named = {it.name: it.label for it in self.experiment.metrics}
        compared = self.claim.compared if self.claim.over is not None else ""
        parts = (compared, STATISTICS[self.claim.statistic], named[self.claim.metric])
        return " of ".join(filter(None, parts))

    @property
    def runs(self) -> str:
        assert self.told is not None
        told = " / ".join(str(self.told[name]) for name in COUNTED)
        settings = self.told["counted"] == "settings"
        return f"{told}, of {self.told['n']} settings" if settings else told

    @property
    def direction(self) -> str:
        more = ", by itself" if self.is_by_itself else ""
        return f"{MARKS[self.verdict]} {SAYS[self.verdict]}{more}"  # type: ignore[index]

    @property
    def is_by_itself(self) -> bool:
        """It holds, but among all claims of its report it may be chance."""
        return bool(self.verdict == "yes" and self.told and self.told["holm"] is False)

    @property
    def same_size(self) -> str:
        if self.size is None:
            return ""
        asked = f" ({self.told['asked']})" if self.told else ""
        return f"{SIZES[self.size]}{asked}"  # type: ignore[index]


def lines(root: Path, experiment: Experiment) -> list[Line]:
    """Of all its claims: those that were published, and the laboratory's own bounds."""
    found = answers(root, experiment.name)
    return [
        Line(experiment, it, *found.get((it.where, it.says, it.metric), (None, None)))
        for it in experiment.claims
    ]


def by_row(root: Path) -> dict[str, list[Line]]:
    """In the paper's order; what is no row of it comes after."""
    found: dict[str, list[Line]] = {it.row: [] for it in paper.ROWS}
    for experiment in catalogue.experiments():
        for it in lines(root, experiment):
            if not it.claim.is_own:
                found.setdefault(it.claim.row, []).append(it)
    return found


def why(line: Line) -> str:
    """What is known: from the runs, and from what was tested."""
    assert line.told is not None
    told = [*line.told["why"], *line.causes]
    if line.size == "unclear":
        told.append(
            "Of the size: the interval lies within the margin in part, which decides nothing."
        )
    if not told or (line.is_another and not line.causes):
        told.append(NOT_YET)
    return " ".join([*told, *_sides(line)])


def _configurations(line: Line, side: Any) -> list[dict[str, Any]]:
    """Of the summary, by the parameters that vary there."""
    assert line.summary is not None
    return [
        it
        for it in line.summary["configurations"]
        if all(value == side[name] for name, value in it["params"].items() if name in side)
    ]


def _medians(line: Line, side: Any, metric: str) -> list[float]:
    found = [it["metrics"].get(metric) for it in _configurations(line, side)]
    return [it["median"] for it in found if it and it["median"] is not None]


def _sides(line: Line) -> Iterator[str]:
    """Of a ratio what was compared, where it is one configuration each."""
    claim = line.claim
    if not line.is_ratio:
        return
    both = [_medians(line, side, claim.metric) for side in (claim.over, claim.of)]
    if any(len(it) != 1 for it in both):
        return
    (over,), (of,) = both
    unit = _unit_of(line)
    text = f"Ours: {words.brief(over)} → {words.brief(of)}{unit}"
    first, second = claim.paper_sides
    if first is not None and second is not None:
        text += f"; published: {words.brief(second)} → {words.brief(first)}{unit}"
    yield f"{text}."


def _unit_of(line: Line) -> str:
    for it in _configurations(line, line.claim.of):
        unit = it["metrics"].get(line.claim.metric, {}).get("unit")
        return f" {unit}" if unit else ""
    return ""
