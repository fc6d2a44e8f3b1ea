# SPDX-License-Identifier: MIT
"""Ratios that two results have both, A's beside B's: what was concluded, and what was published.

Times of another processor or another day differ; what pipes gain should not. So each contrast of
the reports (8 pipes to 1, by setting) and each claim about two sides stands beside the other's, and
A's interval is asked whether it holds B's median.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.report import words
from experiments.report.conclusions import contrasts
from experiments.report.data import Results
from experiments.statistics import Estimate, changed

ASKED = 0.9  # of A's intervals should hold B's medians, if B is the same once more


@dataclass(frozen=True)
class Both:
    """One comparison, of both folders; `change` is B's over A's, or B's less A's."""

    label: str
    a: Estimate
    b: Estimate
    change: Estimate
    matters: float  # of the change
    signed: bool  # differences, of what may be below 0
    repeats: bool  # A's are of one session and nothing was drawn at random: it has no interval

    @property
    def held(self) -> bool | None:
        """Whether A's interval holds B's median; None where there is none."""
        return None if self.repeats else holds(self.a, self.b)

    @property
    def says(self) -> str:
        return moved(self.change, 0.0 if self.signed else 1.0, self.matters)

    def write(self, value: float) -> str:
        return words.number(value) if self.signed else words.ratio(value)

    def interval(self, got: Estimate) -> str:
        return words.interval(got, self.write)


def holds(a: Estimate, b: Estimate) -> bool | None:
    return a.low <= b.median <= a.high if a.enough and b.enough else None


def moved(got: Estimate, none: float, matters: float) -> str:
    if not got.enough:
        return "too few runs"
    if none - matters < got.low and got.high < none + matters:
        return "alike"
    return "smaller" if got.high < none else "larger" if got.low > none else "not decided"


def share(its: Sequence[Both], what: str) -> list[str]:
    """A's intervals hold 11 of 12 of B's ratios: 92 %. And where there is no interval?"""
    told = [it.held for it in its if it.held is not None]
    repeats = [it for it in its if it.repeats]
    sentences = []
    if told:
        part = f"{100 * sum(told) / len(told):.0f}\N{NO-BREAK SPACE}%"
        asked = f"{100 * ASKED:.0f}\N{NO-BREAK SPACE}%"
        sentences.append(
            f"A's intervals hold {sum(told)} of B's {len(told)} medians of {what}: {part} "
            f"({asked} is asked)."
        )
    if repeats:
        alike = sum(it.says == "alike" for it in repeats)
        sentences.append(
            f"For {words.count(len(repeats), 'median')} of {what} A has no interval, but "
            f"repeats of the same timers: {alike} alike in B."
        )
    return sentences


def of_both(a: Results, b: Results) -> list[Both]:
    return [*_concluded(a, b), *_claimed(a, b)]


def _concluded(a: Results, b: Results) -> Iterator[Both]:
    metric = a.main
    theirs = {(it.of, it.over, it.setting): it for it in contrasts(b, metric)}
    for it in contrasts(a, metric):
        other = theirs.get((it.of, it.over, it.setting))
        if other is None or other.compared != it.compared:
            continue
        signed = it.compared == "difference"
        change = changed(other.got, it.got, "difference" if signed else "ratio")
        label = f"{it.of} / {it.over} {it.setting}".strip()
        matters = max(it.matters, other.matters)
        yield Both(label, it.got, other.got, change, matters, signed, it.repeats)


def _claimed(a: Results, b: Results) -> Iterator[Both]:
    """Claims about two sides; what one side took stands among the configurations."""
    for claim in a.experiment.claims:
        if claim.over is None:
            continue
        of_a, of_b = (it.asked(claim).answer(claim) for it in (a, b))
        if not of_a.n or not of_b.n:
            continue
        signed = claim.is_difference
        change = changed(of_b, of_a, "difference" if signed else "ratio")
        metric = a.metric(claim.metric)
        matters = metric.least(of_a.median) if signed else metric.matters or 0.0
        label = claim.says if claim.is_own else f"{claim.where}: {claim.says}"
        repeats = a.asked(claim).basis(claim).repeats and of_a.unit != "settings"
        yield Both(label, of_a, of_b, change, matters, signed, repeats)
