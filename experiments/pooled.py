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

AT_ONCE = 1 << 20  # draws that are in memory at a time
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

    def again(self, times: np.ndarray) -> np.ndarray:
        """A number for each row of `times`: with each repetition so many times, and each value as
        often as falls to it."""
        if self._share is None:
            return self._means(times)
        from_top = (1 - self._share) * (times @ self._lengths - 1)
        some = round(4 * from_top.max()) + 32  # what is far out is soon found
        rows = max(1, AT_ONCE // min(some, len(self.values)))
        return np.concatenate(
            [
                self._far_out(times[k : k + rows], from_top[k : k + rows], some)
                for k in range(0, len(times), rows)
            ]
        )

    def _means(self, times: np.ndarray) -> np.ndarray:
        """A run that failed has no finite mean, and counts where it is drawn."""
        finite = np.isfinite(self.values)
        sums = np.bincount(self._whose[finite], self.values[finite], len(self._lengths))
        failed = np.bincount(self._whose[~finite], minlength=len(self._lengths))
        return np.where(times @ failed, math.inf, times @ sums / (times @ self._lengths))

    def _far_out(self, times: np.ndarray, from_top: np.ndarray, some: int) -> np.ndarray:
        """The percentiles, looked for among the `some` largest values, and if need be among all."""
        whose = self._whose[:some]
        often = self._chance.poisson(1.0, (len(times), len(whose)))
        upto = np.cumsum(times[:, whose] * often, axis=1)
        last = upto[:, -1]

        def ranked(rank: np.ndarray) -> np.ndarray:
            return self.values[(upto <= np.minimum(rank, last - 1)[:, None]).sum(axis=1)]

        upper, lower = ranked(np.floor(from_top)), ranked(np.ceil(from_top))
        gap = np.subtract(upper, lower, where=np.isfinite(upper), out=np.zeros(len(upper)))
        found = upper - gap * (from_top - np.floor(from_top))
        short = last <= np.ceil(from_top)
        if short.any() and some < len(self.values):
            found[short] = self._far_out(times[short], from_top[short], len(self.values))
        return found


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
    times = np.array([np.bincount(row, minlength=len(reps)) for row in drawn])
    draws = [it.again(times) for it in found]
    ordered = np.sort([combined(*each) for each in zip(*draws, strict=True)])
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
