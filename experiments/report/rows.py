# SPDX-License-Identifier: MIT
"""The published figures beside ours: a row for each claim, and what the data say of a miss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.model import OF_SETTINGS, STATISTICS, Claim, Metric
from experiments.report import words
from experiments.report.data import Results
from experiments.report.reasons import floor, not_said, noted, reasons
from experiments.report.runs import Basis, Configuration
from experiments.report.seen import causes, wants_cause
from experiments.statistics import Estimate, holm
from experiments.verdicts import Published, Size, Verdict, is_nil, verdict

SAYS: dict[Verdict, str] = {
    "yes": "yes",
    "no": "no",
    "unclear": "not decided",
    "nil": "no effect that matters",
    "few": "too few runs",
    "none": "not run",
}
MARKS: dict[Verdict, str] = {
    **{"yes": "✓", "no": "✗", "unclear": "~"},
    **{"nil": "≈", "few": "?", "none": "-"},
}
SIZES: dict[Size, str] = {
    "yes": "✓ same size",
    "weaker": "✗ weaker",
    "stronger": "✗ stronger",
    "other": "✗ the other way",
    "smaller": "✗ smaller",
    "larger": "✗ larger",
    "unclear": "~ not decided",
    "few": "? too few runs",
    "none": "- not run",
}
NAMED = 8  # claims without runs, by name; of more only the number


@dataclass(frozen=True)
class Row:
    claim: Claim
    metric: Metric
    got: Estimate
    verdict: Verdict
    why: tuple[str, ...]
    basis: Basis
    size: Size | None = None  # None: no value was published
    causes: tuple[str, ...] = ()  # that were tested, where it is another than published
    chance: float | None = None  # of the direction, by a sign test
    together: bool | None = None  # whether it holds with all others of the report, by Holm

    @property
    def is_ratio(self) -> bool:
        return self.claim.over is not None and self.claim.compared == "ratio"

    @property
    def kind(self) -> str:
        """What is told, in words."""
        compared = self.claim.compared if self.claim.over is not None else ""
        statistic = STATISTICS[self.claim.statistic]
        if not statistic:
            return f"paired {compared}" if compared else "median"
        if self.claim.statistic in OF_SETTINGS:
            return f"{statistic} of the settings' {f'paired {compared}' if compared else 'median'}s"
        return f"{compared} of the {statistic}s" if compared else statistic

    @property
    def paper(self) -> str:
        if self.claim.paper is None:
            return ""
        return words.ratio(self.claim.paper) if self.is_ratio else self._unit(self.claim.paper)

    @property
    def ours(self) -> str:
        if not self.got.n:
            return "\N{EN DASH}"
        return words.ratio(self.got.median) if self.is_ratio else self._unit(self.got.median)

    @property
    def interval(self) -> str:
        write = words.ratio if self.is_ratio else words.number
        if not self.repeats:
            return words.interval(self.got, write)
        return words.repeated(self.basis.sessions, write(self.got.low), write(self.got.high))

    @property
    def repeats(self) -> bool:
        """What would be an interval is none; one over settings, such as pages, is for others."""
        return self.got.enough and self.basis.repeats and self.got.unit != "settings"

    @property
    def expected(self) -> str:
        """Which direction was published."""
        than = words.ratio(self.claim.than) if self.is_ratio else self._unit(self.claim.than)
        if self.claim.expect == "same":
            share = f"{self.claim.within * 100:g}\N{NO-BREAK SPACE}%"
            return f"{than} ± {share}"
        return f"{'below' if self.claim.expect == 'less' else 'above'} {than}"

    @property
    def size_says(self) -> str:
        return SIZES[self.size] if self.size else ""

    @property
    def asked(self) -> str:
        """From where to where a size is the published one, in words."""
        if self.claim.paper is None:
            return ""
        write = words.ratio if self.is_ratio else words.number
        bottom, top = published(self.claim, self.metric).reach
        return f"{write(bottom)} to {write(top)}" if bottom >= 0 else f"at most {write(top)}"

    @property
    def holm(self) -> str:
        """Of a direction that holds by itself, and not together with the others."""
        return "by itself" if self.verdict == "yes" and self.together is False else ""

    @property
    def tail(self) -> str:
        """What the median hides; empty where the answer is no median."""
        if not self.got.n or math.isnan(self.got.mean):
            return ""
        write = words.ratio if self.is_ratio else words.number
        return f"mean {write(self.got.mean)}, p95 {write(self.got.p95)}"

    @property
    def mark(self) -> str:
        return MARKS[self.verdict]

    @property
    def says(self) -> str:
        return SAYS[self.verdict]

    def _unit(self, value: float) -> str:
        unit = self.claim.unit or self.metric.unit
        return f"{words.number(value)}\N{NO-BREAK SPACE}{unit}".strip()

    def as_dict(self) -> dict[str, Any]:
        claim = self.claim
        return {
            "row": claim.row,
            "where": claim.where,
            "says": claim.says,
            "of": dict(claim.of),
            "over": None if claim.over is None else dict(claim.over),
            "metric": claim.metric,
            "kind": self.kind,
            "statistic": claim.statistic,
            "unit": "" if self.is_ratio else claim.unit or self.metric.unit,
            "expect": claim.expect,
            "than": claim.than,
            "paper": claim.paper,
            **{
                claim.statistic if name == "median" else name: value
                for name, value in numbers(self.got).items()
            },
            "own": claim.is_own,
            "verdict": self.verdict,
            "size": self.size,
            "asked": self.asked or None,
            "sessions": self.basis.sessions,
            "seeds": self.basis.seeds,
            "repetitions": self.basis.repetitions,
            "repeats": self.repeats,
            "chance": None if self.chance is None else float(f"{self.chance:.3g}"),
            "holm": self.together,
            "matters": matters(claim, self.metric) or None,
            "why": list(self.why),
            "causes": list(self.causes),
        }


def numbers(got: Estimate) -> dict[str, Any]:
    """For JSON, which knows no infinity: null, and `failed` says why."""

    def finite(value: float) -> float | None:
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {
        "n": got.n,
        "counted": got.unit or "runs",
        **({"across": got.across} if got.across else {}),
        "failed": got.failed,
        "median": finite(got.median),
        "low": finite(got.low),
        "high": finite(got.high),
        "q1": finite(got.q1),
        "q3": finite(got.q3),
        **({} if math.isnan(got.mean) else {"mean": finite(got.mean), "p95": finite(got.p95)}),
    }


def rows(results: Results) -> list[Row]:
    """Holm's procedure is over all claims of a report that have enough runs, bounds included."""
    found = [row(results, claim) for claim in results.experiment.claims]
    tested = [it for it in found if it.got.enough and it.chance is not None]
    held = holm([it.chance for it in tested if it.chance is not None])
    together = {id(it): ok for it, ok in zip(tested, held, strict=True)}
    return [replace(it, together=together.get(id(it))) for it in found]


def apart(found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Published figures, and bounds of the laboratory's own."""
    return [it for it in found if not it.claim.is_own], [it for it in found if it.claim.is_own]


def row(results: Results, claim: Claim) -> Row:
    every, results = results, results.asked(claim)
    metric = results.metric(claim.metric)
    got = results.answer(claim)
    holds = verdict(got, claim.expect, claim.than, claim.within)
    effect = claim.over is not None and claim.than == 1 and not claim.is_difference
    if effect and claim.expect != "same" and is_nil(got, 1.0, matters(claim, metric)):
        holds = "nil"
    size = None if claim.paper is None else published(claim, metric).size(got)
    basis, by_chance = results.basis(claim), results.chance(claim)
    made = Row(claim, metric, got, holds, (), basis, size, (), by_chance)
    why, tested = _known(results, made)
    if holds == "none" and every.answer(claim).n:
        why = [not_said(every, claim)]
    return replace(made, why=tuple(why), causes=tuple(tested))


def _known(results: Results, it: Row) -> tuple[list[str], list[str]]:
    """Why it is not as published: what the runs say, and what was tested."""
    claim, least = it.claim, matters(it.claim, it.metric)
    if it.verdict == "yes" and it.size in (None, "yes"):
        return [], []
    bound = floor(results, claim)
    told = bound.tell(claim) if bound else ""
    is_cause = bool(bound and bound.excludes(claim, it.verdict, it.size, least))
    if it.verdict != "yes":
        why = reasons(results, claim, it.got, it.verdict, least, "" if is_cause else told)
    else:
        why = [told] if told and it.size == "weaker" and not is_cause else []
    if it.verdict in ("none", "few"):
        return why, []
    tested = [told] if is_cause else []
    tested += [by_hand] if (by_hand := noted(results, claim)) else []
    tested += [f"Reckoned, not measured: {claim.reckoned}"] if claim.reckoned else []
    if wants_cause(it.verdict, it.size):
        tested += causes(results, claim, it.got)
    return why, tested


def published(claim: Claim, metric: Metric) -> Published:
    """What no effect is follows from what is compared, not from the border of the direction."""
    assert claim.paper is not None
    least = matters(claim, metric)
    none: float | None = 1.0
    if claim.is_difference:
        none, least = 0.0, metric.least(claim.paper)
    elif claim.over is None and not metric.is_ratio:
        none = None
    return Published(claim.paper, none, claim.margin, least, claim.read_to)


def matters(claim: Claim, metric: Metric) -> float:
    return next((it for it in (claim.matters, metric.matters) if it is not None), 0.0)


def not_run(found: Sequence[Row]) -> str:
    """What was claimed and is not in these runs, in one sentence."""
    missing = [f"{it.claim.says} ({it.claim.where})" for it in found if it.verdict == "none"]
    more = len(missing) - NAMED
    if more > 1:
        missing[NAMED:] = [f"{more} more"]
    return f"Not among these runs: {'; '.join(missing)}." if missing else ""


def tally(found: Sequence[Row]) -> dict[Verdict, int]:
    return {name: sum(1 for it in found if it.verdict == name) for name in SAYS}


def sizes(found: Sequence[Row]) -> dict[Size, int]:
    return {name: sum(1 for it in found if it.size == name) for name in SIZES}


def estimates(results: Results, it: Configuration) -> list[tuple[Metric, Estimate]]:
    return [(metric, it.estimate(metric)) for metric in results.experiment.metrics]
