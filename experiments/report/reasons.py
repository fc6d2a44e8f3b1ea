# SPDX-License-Identifier: MIT
"""What the runs themselves say of a direction that does not hold, and of a gain that cannot be."""

import math
from dataclasses import dataclass
from statistics import median

from experiments.model import Claim
from experiments.report import words
from experiments.report.data import Results
from experiments.statistics import Estimate
from experiments.verdicts import Size, Verdict

COUNTED = (
    ("dropped_queue_packets", "dropped at a full queue"),
    ("lost_packets", "lost on the way"),
)


def reasons(
    results: Results, claim: Claim, got: Estimate, holds: Verdict, matters: float, bound: str
) -> list[str]:
    """What is known of why the direction does not hold: from the runs, not by guess. `bound`: how
    far a floor is, in words."""
    if holds == "none":
        return [_missing(results, claim)]
    found = []
    if holds == "few":
        counted = words.count(got.n, _counted(claim, got)[:-1])
        found.append(f"{counted}: an interval needs {got.least}.")
    if holds == "nil":
        share = words.share(matters)
        found.append(f"The whole interval is within {share}, the smallest effect of interest.")
    if holds == "unclear":
        found.append("The interval includes the border: these runs do not decide it.")
    if got.failed:
        found.append(f"{got.failed} of {got.n} {_counted(claim, got)} had a failure.")
    found += [bound] if bound else []
    if claim.over is not None and holds in ("no", "unclear", "nil"):
        found += _others(results, claim)
    return found


def noted(results: Results, claim: Claim) -> str:
    """By hand: from captures of these runs, or what was found out before."""
    told = results.notes.get(f"{claim.where}: {claim.says}", "")
    if told or not claim.note:
        return told
    return f"Measured before, not in these runs: {claim.note}.".replace("..", ".")


def _counted(claim: Claim, got: Estimate) -> str:
    return got.unit or ("runs" if claim.over is None else "pairs")


def not_said(results: Results, claim: Claim) -> str:
    """Of runs that a claim could be answered by, if it were said of such."""
    sides = [*results.select(claim.of), *results.select(claim.over or claim.of)]
    names = [it for it in results.strange if it not in claim.of]
    told = dict.fromkeys(
        words.label(it.params, [name])
        for name in names
        for it in sides
        if results.is_strange(it.params, [name])
    )
    return f"Not said of runs with {words.listed(list(told))}."


def _missing(results: Results, claim: Claim) -> str:
    for side in (claim.of, claim.over or claim.of):
        if not results.select(side):
            return f"No runs with {words.label(side, [*side])}."
    return f"{results.metric(claim.metric).label} was not measured in pairs of runs."


@dataclass(frozen=True)
class Floor:
    """How near to the least possible the runs that are to be undercut are already."""

    least: float  # as a share of what they take
    carried: str  # how, in words

    def excludes(self, claim: Claim, holds: Verdict, size: Size | None, matters: float) -> bool:
        """Whether it is why ours is another than published."""
        weaker = size == "weaker" and claim.paper is not None and self.least > claim.paper
        return weaker or (holds in ("no", "nil") and self.least > 1 - matters)

    def tell(self, claim: Claim) -> str:
        where = f" ({self.carried})" if self.carried else ""
        gain = f"{max(0, 1 - self.least) * 100:.0f}\N{NO-BREAK SPACE}%"
        text = (
            f"The floor, RTT + size/rate, is at {words.ratio(self.least)} of the other side's time"
            f"{where}: at most {gain} can be gained"
        )
        if claim.paper is not None and self.least > claim.paper:
            text += ", so the published value cannot be reached"
        return f"{text}."


def floor(results: Results, claim: Claim) -> Floor | None:
    plain = claim.statistic == "median" and claim.compared == "ratio"
    of_times = claim.expect == "less" and claim.metric == "completion_s"
    if claim.over is None or not plain or not of_times:
        return None
    metric = results.metric(claim.metric)
    shares = []
    for it in results.select(claim.over):
        least, got = results.experiment.floor_s(it.params), it.estimate(metric)
        if least and got.n and math.isfinite(got.median):
            shares.append(least / got.median)
    if not shares:
        return None
    carried = words.label(claim.over, [it for it in claim.over if it in ("way", "pipes")])
    return Floor(median(shares), carried)


def _others(results: Results, claim: Claim) -> list[str]:
    """What else was measured on both sides, where it differs."""
    assert claim.over is not None
    told = []
    for metric in results.experiment.metrics:
        if metric.name in (claim.metric, "completion_s"):
            continue
        both = [results.pooled(side, metric) for side in (claim.over, claim.of)]
        if not all(got.n and math.isfinite(got.median) for got in both):
            continue
        before, after = (words.brief(got.median) for got in both)
        if before != after:
            unit = f"\N{NO-BREAK SPACE}{metric.unit}" if metric.unit else ""
            told.append(f"{metric.label} {before} \N{RIGHTWARDS ARROW} {after}{unit}")
    for name, text in COUNTED:
        both = [
            [n for it in results.select(side) for n in it.counted(name)]
            for side in (claim.over, claim.of)
        ]
        if all(both) and median(both[0]) != median(both[1]):
            before, after = (words.brief(median(side)) for side in both)
            told.append(f"{text} {before} \N{RIGHTWARDS ARROW} {after} packets")
    return [f"Also measured, medians: {'; '.join(told)}."] if told else []
