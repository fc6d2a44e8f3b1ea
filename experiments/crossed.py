# SPDX-License-Identifier: MIT
"""How far a median over units and rounds may lie from the true one, both being crossed effects.

Units (pages) differ in all rounds; a round (a session, or a repetition whose losses all units
meet) is good or bad for all units. Units are resampled, as the bootstrap does. Rounds are few, and
three of them resampled with replacement have the truth between them in 75 % of all cases only. So
each resample is shifted by a normal deviate as large as the rounds' medians differ, and all are
widened as Student's t is wider than the normal distribution. Its degrees of freedom are the rounds'
where the rounds decide and grow as the units' share of the variance does (Satterthwaite).

What is neither the unit's nor the round's is in both: it is taken out of the units' differences.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()
Z = NORMAL.inv_cdf(0.975)


@dataclass(frozen=True)
class Spread:
    """`deviations` from the median, one for each resample, not widened yet."""

    deviations: np.ndarray
    df: float

    def widened(self) -> np.ndarray:
        return self.deviations * (student(Z, self.df) / Z)

    def chance(self, distance: float) -> float:
        """Two-sided: of a median so far above a border, or below it if negative, if the truth
        were on the border."""
        if distance == 0:
            return 1.0
        towards = self.deviations if distance < 0 else -self.deviations
        beyond = 1 + int(np.sum(towards >= abs(distance)))
        z = -NORMAL.inv_cdf(min(0.5, beyond / (len(towards) + 1)))
        return min(1.0, 2 * NORMAL.cdf(-normal(z, self.df)))


def student(z: float, df: float) -> float:
    """Student's deviate that is as unlikely as the normal one `z`, by Wallace's approximation:
    4 % too large for 2 degrees of freedom, 0.5 % for 4."""
    if math.isinf(df):
        return z
    return math.sqrt(df * math.expm1((z * (8 * df + 3) / (8 * df + 1)) ** 2 / df))


def normal(t: float, df: float) -> float:
    """The inverse."""
    if math.isinf(df):
        return t
    return (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t * t / df))


def resampled(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The median of each resample. `times`: a row for each value, a column for each resample, which
    takes that value so often, and as many in all as there are values."""
    order = np.argsort(values, kind="stable")
    ordered, taken = values[order], np.cumsum(times[order], axis=0, dtype=times.dtype)
    middle = (len(values) - 1) // 2, len(values) // 2
    low, high = (ordered[np.sum(taken <= it, axis=0, dtype=np.int32)] for it in middle)
    return (low + high) / 2


def _of_columns(table: np.ndarray) -> np.ndarray:
    """Their medians; numpy's that knows of gaps takes ten times as long."""
    gaps = np.isnan(table).any()
    return np.nanmedian(table, axis=0) if gaps else np.median(table, axis=0)


def spread(table: np.ndarray, medians: np.ndarray, times: np.ndarray, seed: int) -> Spread | None:
    """`table`: a row for each unit, a column for each round, NaN where there is nothing. `medians`
    are the units' own. `times`: how often each resample takes each unit. A single unit stands for
    itself alone. None where a median is infinite: that has no variance."""
    rounds = _of_columns(table)
    if not (np.isfinite(rounds).all() and np.isfinite(medians).all()):
        return None
    resamples = times.shape[1]
    of_units = np.zeros(resamples)
    if len(medians) > 1:
        units = _less_noise(table, medians)
        of_units = resampled(units, times) - np.median(units)
    variance = float(np.var(rounds, ddof=1)) / len(rounds)
    chance = np.random.default_rng(seed).standard_normal(resamples)
    df = math.inf
    if variance > 0:
        df = (len(rounds) - 1) * (1 + float(np.var(of_units)) / variance) ** 2
    return Spread(np.sort(of_units + math.sqrt(variance) * chance), df)


def _less_noise(table: np.ndarray, medians: np.ndarray) -> np.ndarray:
    """The units' medians, nearer together by what their own runs vary from round to round."""
    left = table - medians[:, None]
    left = left - _of_columns(left)
    there = np.sum(np.isfinite(left), axis=1)
    varied = there > 1
    seen = float(np.var(medians, ddof=1))
    if not varied.any() or not np.isfinite(table[~np.isnan(table)]).all() or seen == 0:
        return medians
    noise = float(np.mean(np.nanvar(left[varied], axis=1, ddof=1) / there[varied]))
    middle = np.median(medians)
    return middle + math.sqrt(max(0.0, 1 - noise / seen)) * (medians - middle)
