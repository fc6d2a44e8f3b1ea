# SPDX-License-Identifier: MIT
"""One number of several settings: of each its median, of these the mean or one of the outermost.

The settings are all that there are, as the fifteen distributions of a table: they are not drawn
from more. So the interval is for other repetitions, which are resampled together in all settings,
as the same losses meet them; or, from LEAST_ROUNDS sessions on, for other sessions, by how
much the number differs between these (crossed.py: what their repetitions vary is part of that).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from experiments import crossed
from experiments.plan import LEAST_ROUNDS
from experiments.statistics import (
    NOTHING,
    SEED,
    Drawn,
    Estimate,
    draws,
    percentiles,
    quantile,
    times_drawn,
)


def _geometric_mean(medians: np.ndarray) -> np.ndarray:
    """One median of nothing makes it nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.exp(np.mean(np.log(medians), axis=0))
    return np.where((medians == 0).any(axis=0), 0.0, found)


def _place(number: int) -> Callable[[np.ndarray], np.ndarray]:
    def found(medians: np.ndarray) -> np.ndarray:
        return np.sort(medians, axis=0)[number]

    return found


OF: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "geomean": _geometric_mean,
    "least": _place(0),
    "second": _place(1),
    "largest": _place(-1),
}


def estimate(values: Sequence[Drawn], statistic: str, settings: int) -> Estimate:
    """`settings`: how many there must be; of fewer there is no answer."""
    table, sessions, failed = _table(values)
    if len(table) < settings:
        return NOTHING
    combined = OF[statistic]
    least = int(np.min(np.sum(~np.isnan(table), axis=1)))
    point = float(combined(np.nanmedian(table, axis=1)[:, None])[0])
    resampled = np.sort(_resampled(table, combined))
    low, high = percentiles(resampled)
    quartiles = quantile(resampled, 0.25), quantile(resampled, 0.75)
    got = Estimate(least, failed, point, low, high, *quartiles, unit="repetitions")
    return _over_sessions(got, table, sessions, combined)


def _over_sessions(
    got: Estimate,
    table: np.ndarray,
    sessions: np.ndarray,
    combined: Callable[[np.ndarray], np.ndarray],
) -> Estimate:
    """With an interval for other sessions, where there are enough that have all settings."""
    of_each = [table[:, sessions == number] for number in np.unique(sessions)]
    whole = [it for it in of_each if not np.isnan(it).all(axis=1).any()]
    if len(whole) < LEAST_ROUNDS:
        return got
    found = [float(combined(np.nanmedian(it, axis=1)[:, None])[0]) for it in whole]
    across = f"{len(found)} sessions"
    spread = crossed.spread(np.asarray([found]), np.asarray([got.median]), times_drawn(1), SEED)
    if spread is None:  # a session failed: all that was seen may be again
        low, high = min(got.low, *found), max(got.high, *found)
    else:
        low, high = percentiles(got.median + spread.widened())
    return replace(got, low=low, high=high, across=across)


def _table(values: Sequence[Drawn]) -> tuple[np.ndarray, np.ndarray, int]:
    """A row for each setting, a column for each repetition, the session of each column, and how
    many of these had a failure; what is not there is no number."""
    cells: dict[Hashable, dict[tuple[int, int], float]] = {}
    for it in values:
        cells.setdefault(it.setting, {})[it.session, it.rep] = it.value
    reps = sorted({rep for row in cells.values() for rep in row})
    table = [[row.get(rep, np.nan) for rep in reps] for row in cells.values()]
    failed = len({(it.session, it.rep) for it in values if not it.ok})
    return np.asarray(table), np.asarray([session for session, _ in reps]), failed


def _resampled(table: np.ndarray, combined: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    medians = [_medians(row, table.shape[1]) for row in table]
    return combined(np.asarray(medians))


def _medians(row: np.ndarray, reps: int) -> np.ndarray:
    """Where a setting lacks a repetition, of those that were drawn and are there."""
    if not np.isnan(row).any():
        return crossed.resampled(row, times_drawn(reps))
    there = row[draws(reps)]
    there[np.isnan(there).all(axis=1)] = np.nanmedian(row)
    return np.nanmedian(there, axis=1)
