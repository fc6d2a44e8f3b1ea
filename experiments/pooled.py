# SPDX-License-Identifier: MIT
"""One number of all that several runs list, taken together: a percentile of answers, or a mean.

A percentile far out needs more values than a run has: of 1,000 the 99.9th is the largest but one,
and a median of such says little. Values of one run are no independent draws. So for an interval
repetitions are drawn again with replacement, of two sides, that met the same losses, the same ones;
and of each its values: some eight repetitions alone would make intervals of a far percentile that
are too short in one case of five. A run that failed counts as if all its values were the worst.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from experiments.model import Metric
from experiments.statistics import (
    LEAST,
    NOTHING,
    RESAMPLES,
    SEED,
    Estimate,
    percentiles,
    quantile,
)

BEYOND = 8  # values beyond a percentile, at least
Rep = tuple[int, int]


class Run(Protocol):
    """As a report has them."""

    @property
    def session(self) -> int: ...

    @property
    def rep(self) -> int: ...

    @property
    def ok(self) -> bool: ...

    @property
    def measures(self) -> dict[str, Any]: ...


class Side:
    """What the runs of each repetition list, the largest first, with the number of each one's
    repetition."""

    def __init__(
        self, lists: dict[Rep, np.ndarray], reps: Sequence[Rep], share: float | None
    ) -> None:
        values = np.concatenate([lists[it] for it in reps])
        whose = np.concatenate([np.full(len(lists[it]), k) for k, it in enumerate(reps)])
        order = np.argsort(-values, kind="stable")
        self.values, self._whose, self._share = values[order], whose[order], share
        self._lengths = np.bincount(whose)
        self._chance = np.random.default_rng(SEED)

    def once(self) -> float:
        if self._share is None:
            return float(np.mean(self.values))
        return quantile(self.values[::-1], self._share)

    def again(self, times: np.ndarray) -> float:
        """With each repetition so many times, and each value as often as falls to it."""
        if self._share is None:
            return float(np.mean(np.repeat(self.values, times[self._whose])))
        from_top = (1 - self._share) * (int(times @ self._lengths) - 1)
        for some in (round(4 * from_top) + 32, len(self.values)):  # what is far out is soon found
            often = self._chance.poisson(1.0, len(self._whose[:some]))
            upto = np.cumsum(times[self._whose[:some]] * often)
            if upto[-1] > math.ceil(from_top):
                break
        ranks = np.array([math.floor(from_top), math.ceil(from_top)])
        places = np.searchsorted(upto, np.minimum(ranks, upto[-1] - 1), side="right")
        above, below = (float(self.values[k]) for k in places)
        if below == above:
            return below
        return above - (above - below) * (from_top - math.floor(from_top))


def estimate(
    sides: Sequence[Sequence[Run]], metric: Metric, combined: Callable[..., float]
) -> Estimate:
    """Of one side, or two that are compared."""
    assert metric.pooled is not None
    lists = [_lists(runs, metric) for runs in sides]
    reps = sorted(set.intersection(*(set(it) for it in lists)))
    if not reps:
        return NOTHING
    found = [Side(it, reps, metric.pooled.share) for it in lists]
    point = combined(*(it.once() for it in found))
    drawn = np.random.default_rng(SEED).integers(0, len(reps), size=(RESAMPLES, len(reps)))
    times = [np.bincount(row, minlength=len(reps)) for row in drawn]
    ordered = np.sort([combined(*(it.again(row) for it in found)) for row in times])
    low, high = percentiles(ordered)
    got = Estimate(
        n=len(reps),
        failed=len({(it.session, it.rep) for runs in sides for it in runs if not it.ok}),
        median=point,
        low=low,
        high=high,
        q1=quantile(ordered, 0.25),
        q3=quantile(ordered, 0.75),
        unit="repetitions",
        least=LEAST,
        mean=float(np.mean(found[0].values)) if len(found) == 1 else math.nan,
        p95=quantile(found[0].values[::-1], 0.95) if len(found) == 1 else math.nan,
    )
    fewest = min(len(it.values) for it in found)
    if metric.pooled.share is None or not got.enough:
        return got
    least = round(BEYOND / (1 - metric.pooled.share))
    return replace(got, n=fewest, unit="values", least=least) if fewest < least else got


def _lists(runs: Sequence[Run], metric: Metric) -> dict[Rep, np.ndarray]:
    """By session and repetition."""
    assert metric.pooled is not None
    told = [_listed(run, metric) for run in runs if run.ok]
    usual = max((len(it) for it in told if it is not None), default=0)
    found: dict[Rep, list[np.ndarray]] = {}
    for run in runs:
        values = _listed(run, metric) if run.ok else np.full(usual, math.inf)
        if values is not None and len(values):
            found.setdefault((run.session, run.rep), []).append(values)
    return {rep: np.concatenate(its) for rep, its in found.items()}


def _listed(run: Run, metric: Metric) -> np.ndarray | None:
    """What was given up took longer than anything."""
    assert metric.pooled is not None
    values = run.measures.get(metric.pooled.values)
    if values is None:
        return None
    given_up = run.measures.get(metric.pooled.given_up) or 0
    listed = np.atleast_1d(np.asarray(values, dtype=float)) * metric.pooled.scale
    return np.concatenate([listed, np.full(int(given_up), math.inf)])
