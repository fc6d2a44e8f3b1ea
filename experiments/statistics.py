# SPDX-License-Identifier: MIT
"""Medians, quartiles and intervals, with failed runs kept in the denominator.

An interval is the percentile bootstrap of the median, or of another quantile: resampled with
replacement, seeded, so the same runs give the same interval. A failed run is a value too: infinity
for what should be small, zero for what should be large. Over half of them make the median itself
infinite.

Values of several sessions, or of several settings in several repetitions, are no independent draws:
crossed.py says how far their median may be from the true one.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from experiments import crossed
from experiments.plan import LEAST_ROUNDS

LEVEL = 0.95
RESAMPLES = 4000
SEED = 20160
# n values have the median of what they are drawn from between them in 1 - 2^(1-n) of all cases:
# 87.5 % for 4, 93.75 % for 5, 96.875 % for 6. So an interval of five, which is their whole range,
# falls a little short of the level; one of fewer is not called an interval.
LEAST = 5
# n values have the 95th percentile of what they are drawn from below their largest in 1 - 0.95^n of
# all cases: 87 % for 40, 95 % for 59. So an interval of the percentile of forty has its upper end
# at the largest of them, and still is too low in one case of eight; with fewer it says too little.
LEAST_P95 = 40


@dataclass(frozen=True)
class Estimate:
    """A median of `n` values, or what else was asked for of them, as `median`. With fewer than
    `least`, `low` and `high` are merely their range."""

    n: int
    failed: int
    median: float
    low: float
    high: float
    q1: float
    q3: float
    unit: str = ""  # what was counted, where it is neither runs nor pairs
    least: int = LEAST  # values that an interval needs
    mean: float = math.nan  # of the same values, and their 95th percentile: what a median hides
    p95: float = math.nan
    across: str = ""  # what else the interval is for: 3 sessions, 10 repetitions

    @property
    def enough(self) -> bool:
        return self.n >= self.least

    @property
    def half_width(self) -> float:
        """Half the interval as a share of the median; infinite where that says nothing."""
        if not math.isfinite(self.high) or self.median == 0:
            return math.inf
        return (self.high - self.low) / 2 / abs(self.median)


NOTHING = Estimate(0, 0, math.nan, math.nan, math.nan, math.nan, math.nan)


@lru_cache(maxsize=16)
def draws(n: int, resamples: int = RESAMPLES, seed: int = SEED) -> np.ndarray:
    """Which values each resample takes. Shared, so it must not be written to."""
    drawn = np.random.default_rng(seed).integers(0, n, size=(resamples, n), dtype=np.int32)
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=16)
def times_drawn(n: int) -> np.ndarray:
    """How often each resample takes each value: a row for each value, a column for each resample.
    Shared, so it must not be written to."""
    drawn, number = draws(n), np.arange(RESAMPLES)
    times = np.bincount((drawn * RESAMPLES + number[:, None]).ravel(), minlength=n * RESAMPLES)
    times = times.reshape(n, RESAMPLES).astype(np.int16)
    times.flags.writeable = False
    return times


@lru_cache(maxsize=16)
def _middles(n: int, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Where in ordered values the two are that stand in the middle of each resample."""
    low, high = (n - 1) // 2, n // 2
    drawn = np.partition(draws(n, resamples, seed), (low, high), axis=1)
    return drawn[:, low].copy(), drawn[:, high].copy()


def resampled_medians(
    ordered: np.ndarray, resamples: int = RESAMPLES, seed: int = SEED
) -> np.ndarray:
    """The medians of resamples of ordered values, sorted; infinite values are allowed."""
    below, above = _middles(len(ordered), resamples, seed)
    return np.sort((ordered[below] + ordered[above]) / 2)


def percentiles(ordered: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The outer values of the middle `level` of an ordered sample: no interpolation, so
    infinities stay what they are."""
    tail = (1 - level) / 2
    low = ordered[math.floor(tail * len(ordered))]
    high = ordered[math.ceil((1 - tail) * len(ordered)) - 1]
    return float(low), float(high)


def quantile(ordered: np.ndarray | Sequence[float], share: float) -> float:
    """As numpy's default, but infinity beside a finite value is infinity, not NaN."""
    at = share * (len(ordered) - 1)
    below, above = ordered[math.floor(at)], ordered[math.ceil(at)]
    if below == above or at == math.floor(at):
        return float(below)
    return float(below + (above - below) * (at - math.floor(at)))


def estimate(
    values: Sequence[float], failed: int = 0, resamples: int = RESAMPLES, seed: int = SEED
) -> Estimate:
    """The median of `values` with its quartiles and interval; `failed` of them are failures."""
    got = _described(values, failed)
    if not got.enough:
        return got
    ordered = np.sort(np.asarray(values, dtype=float))
    low, high = percentiles(resampled_medians(ordered, resamples, seed))
    return replace(got, low=low, high=high)


def _described(values: Sequence[float], failed: int) -> Estimate:
    """With their range where an interval belongs."""
    if len(values) == 0:
        return NOTHING
    array = np.sort(np.asarray(values, dtype=float))
    ordered = array.tolist()  # of a few values, numpy takes five times as long
    count = len(ordered)
    if math.isnan(ordered[-1]):  # numpy sorts them to the end
        raise ValueError("a value is not a number: leave out what was not measured")
    return Estimate(
        n=count,
        failed=failed,
        median=(ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
        low=ordered[0],
        high=ordered[-1],
        q1=quantile(ordered, 0.25),
        q3=quantile(ordered, 0.75),
        mean=float(np.add.reduce(array)) / count,
        p95=quantile(ordered, 0.95),
    )


def ratio(of: float, over: float) -> float:
    """of/over where both may be failures: two alike are a tie."""
    if of == over:
        return 1.0
    if over == 0:
        return math.inf
    if math.isinf(over):
        return 0.0
    return of / over


def difference(of: float, over: float) -> float:
    """of-over where both may be failures: two alike are a tie."""
    return 0.0 if of == over else of - over


@dataclass(frozen=True)
class Drawn:
    """A value and where it is from: a setting (a page, say), a repetition, a run without failure,
    a session. Repetitions are numbered through all sessions."""

    setting: Hashable
    rep: int
    value: float
    ok: bool = True
    session: int = 0


@dataclass(frozen=True)
class Pair:
    """The values of two runs that differ in what is compared, and where they are from."""

    setting: Hashable
    rep: int
    of: float
    over: float
    ok: bool = True
    session: int = 0

    def drawn(self, compared: Callable[[float, float], float]) -> Drawn:
        return Drawn(self.setting, self.rep, compared(self.of, self.over), self.ok, self.session)


def p95(values: Sequence[Drawn]) -> Estimate:
    """The 95th percentile of values; of several settings each repetition counts once, by its
    median. Sessions are taken together: their repetitions are too few for a percentile of each."""
    columns, failed, unit = _by_rep([(it.setting, it.rep, it.ok, it.value) for it in values])
    return replace(_of_p95s(columns, lambda value: value, failed), unit=unit)


def worst(values: Sequence[Drawn], better: Literal["less", "more", "neither"]) -> Estimate:
    """Of these very runs: there is no interval to it. A failure is the worst that there is."""
    if not values:
        return NOTHING
    found = (min if better == "more" else max)(it.value for it in values)
    failed = sum(not it.ok for it in values)
    return Estimate(len(values), failed, *([found] * 5))


def compared_p95(pairs: Sequence[Pair], compared: Callable[[float, float], float]) -> Estimate:
    """The 95th percentile of one side, compared with that of the other. Both are resampled by the
    same draws: what one seed's losses did to both stays together."""
    columns, failed, unit = _by_rep([(it.setting, it.rep, it.ok, it.of, it.over) for it in pairs])
    return replace(_of_p95s(columns, compared, failed), unit=unit)


def _by_rep(rows: Sequence[tuple[Any, ...]]) -> tuple[np.ndarray, int, str]:
    """Columns of values, how many rows had a failure, what a row is of. One setting: as it is."""
    if len({setting for setting, *_ in rows}) <= 1:
        columns = np.asarray([values for _, _, _, *values in rows], dtype=float).T
        return columns, sum(not ok for _, _, ok, *_ in rows), ""
    reps: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        reps.setdefault(row[1], []).append(row)
    medians = [
        [quantile(np.sort(column), 0.5) for column in np.asarray([it[3:] for it in its]).T]
        for its in reps.values()
    ]
    failed = sum(any(not it[2] for it in its) for its in reps.values())
    return np.asarray(medians, dtype=float).T, failed, "repetitions"


def _of_rows(ordered: np.ndarray, share: float) -> np.ndarray:
    """The quantile of each row, as quantile() has it."""
    at = share * (ordered.shape[1] - 1)
    below, above = ordered[:, math.floor(at)], ordered[:, math.ceil(at)]
    with np.errstate(invalid="ignore"):  # of two infinities, which are alike
        between = below + (above - below) * (at - math.floor(at))
    return np.where(below == above, below, between)


def _of_p95s(columns: np.ndarray, combined: Callable[..., float], failed: int) -> Estimate:
    if not columns.size:
        return replace(NOTHING, least=LEAST_P95)
    n = columns.shape[1]
    point = combined(*(quantile(np.sort(column), 0.95) for column in columns))
    rows = [np.sort(column[draws(n)], axis=1) for column in columns]
    resampled = zip(*(_of_rows(it, 0.95) for it in rows), strict=True)
    drawn = [combined(*map(float, each)) for each in resampled]
    return replace(_resampled(n, failed, point, drawn), least=LEAST_P95)


def _resampled(n: int, failed: int, point: float, drawn: Sequence[float]) -> Estimate:
    """An estimate by what came of resampled values."""
    ordered = np.sort(drawn)
    low, high = percentiles(ordered)
    return Estimate(
        n=n,
        failed=failed,
        median=point,
        low=low,
        high=high,
        q1=quantile(ordered, 0.25),
        q3=quantile(ordered, 0.75),
    )


def grouped(values: Sequence[Drawn]) -> Estimate:
    """The median over several settings, by what was drawn independently of each other.

    Runs of one page are more alike than those of two, so they are no independent draws of pages:
    with LEAST settings or more each counts once, by its median, and the interval is for settings
    like these. Of fewer, the interval is for these very settings: each repetition counts once.
    It is for other sessions, too, where there are LEAST_ROUNDS; in one session for other
    repetitions, where several settings had them.
    """
    counted, failed, unit = independent(values)
    rounds = _rounds(values)
    got = replace(_described(counted, failed), unit=unit)
    if not got.enough:
        return got
    if not rounds:
        return replace(estimate(counted, failed), unit=unit)
    table, medians = _table(values, rounds)
    across = f"{table.shape[1]} {'sessions' if rounds == 'session' else 'repetitions'}"
    found = _spread(table, medians)
    if found is None:  # a whole round failed, or a whole setting: all that was seen may be again
        seen = [_median(column) for column in table.T]
        return replace(got, low=min(got.low, *seen), high=max(got.high, *seen), across=across)
    low, high = percentiles(got.median + found.widened())
    return replace(got, low=low, high=high, across=across)


def _median(values: Iterable[float]) -> float:
    """Of few values, for which arrays take longer than lists."""
    return quantile(sorted(float(it) for it in values if not math.isnan(it)), 0.5)


Rounds = Literal["session", "rep", ""]


def _rounds(values: Sequence[Drawn]) -> Rounds:
    """What the interval is for besides the settings; "": there are too few of either."""
    if len({it.session for it in values}) >= LEAST_ROUNDS:
        return "session"
    several = len({it.setting for it in values}) >= LEAST
    return "rep" if several and len({it.rep for it in values}) >= LEAST_ROUNDS else ""


def _table(values: Sequence[Drawn], rounds: Rounds) -> tuple[np.ndarray, np.ndarray]:
    """A median for each setting and round, and for each setting; of few settings, which stand for
    themselves, one row in which each repetition counts once."""
    if len({it.setting for it in values}) < LEAST:
        reps: dict[tuple[int, int], list[float]] = {}
        for it in values:
            reps.setdefault((it.rep, it.session), []).append(it.value)
        values = [Drawn(None, rep, _median(its), True, k) for (rep, k), its in reps.items()]
    cells: dict[Hashable, dict[int, list[float]]] = {}
    for it in values:
        cells.setdefault(it.setting, {}).setdefault(getattr(it, rounds), []).append(it.value)
    numbers = sorted({number for row in cells.values() for number in row})
    table = [[_median(row[k]) if k in row else math.nan for k in numbers] for row in cells.values()]
    medians = [_median([it for its in row.values() for it in its]) for row in cells.values()]
    return np.asarray(table), np.asarray(medians)


def _spread(table: np.ndarray, medians: np.ndarray) -> crossed.Spread | None:
    return crossed.spread(table, medians, times_drawn(len(medians)), SEED)


def independent(values: Sequence[Drawn]) -> tuple[list[float], int, str]:
    """The values that count, how many of them had a failure, what they are of."""
    settings = {it.setting for it in values}
    if len(settings) <= 1:
        return [it.value for it in values], sum(not it.ok for it in values), ""
    by_setting = len(settings) >= LEAST
    units: dict[Hashable, list[Drawn]] = {}
    for it in values:
        units.setdefault(it.setting if by_setting else it.rep, []).append(it)
    medians = [_median([it.value for it in its]) for its in units.values()]
    failed = sum(any(not it.ok for it in its) for its in units.values())
    return medians, failed, "settings" if by_setting else "repetitions"


def chance(values: Sequence[Drawn], than: float, expect: Literal["less", "more"]) -> float | None:
    """How likely such values are where the median is `than`: by a sign test of what counts, or
    by what the interval is made from where that is for other rounds, too."""
    counted, _, _ = independent(values)
    if not counted:
        return None
    rounds = _rounds(values)
    found = _spread(*_table(values, rounds)) if rounds else None
    if found is None:
        return sign_test(counted, than, expect)
    distance = _median(counted) - than
    there = distance < 0 if expect == "less" else distance > 0
    return found.chance(distance) if there else 1.0


def changed(of: Estimate, over: Estimate, compared: Literal["ratio", "difference"]) -> Estimate:
    """What two medians say of each other whose runs have nothing in common, by their own intervals,
    and so for other sessions where these are: MOVER, of logarithms for a ratio."""
    n, failed = min(of.n, over.n), of.failed + over.failed
    if n == 0:
        return NOTHING
    combined = ratio if compared == "ratio" else difference
    point = combined(of.median, over.median)
    low, high = combined(of.low, over.high), combined(of.high, over.low)
    sides = [_scaled(it, compared) for it in (of, over)]
    if sides[0] and sides[1] and of.enough and over.enough:
        (a, below_a, above_a), (b, below_b, above_b) = sides
        low, high = a - b - math.hypot(below_a, above_b), a - b + math.hypot(above_a, below_b)
        if compared == "ratio":
            low, high = math.exp(low), math.exp(high)
    across = of.across if of.across == over.across else ""
    least = max(of.least, over.least)
    return Estimate(n, failed, point, low, high, math.nan, math.nan, least=least, across=across)


def _scaled(it: Estimate, compared: str) -> tuple[float, float, float] | None:
    """The median and how far its interval reaches to both sides; None where that is no number."""
    told = (it.median, it.low, it.high)
    if not all(map(math.isfinite, told)) or (compared == "ratio" and min(told) <= 0):
        return None
    median, low, high = map(math.log, told) if compared == "ratio" else told
    return median, median - low, high - median


def sign_test(values: Sequence[float], than: float, expect: Literal["less", "more"]) -> float:
    """How likely so many of the values lie where they were expected, if their median is `than`:
    two-sided, as the intervals are. Exact, and of no distribution but that runs are independent.
    Ties count against."""
    n = len(values)
    there = sum(it < than if expect == "less" else it > than for it in values)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(there, n + 1)) / 2**n)


def holm(chances: Sequence[float], level: float = 1 - LEVEL) -> list[bool]:
    """Which of several findings hold together: in all of them no more than one false in twenty
    reports. Holm's procedure, which needs no independence."""
    held = [False] * len(chances)
    ordered = sorted(range(len(chances)), key=lambda k: chances[k])
    for rank, k in enumerate(ordered):
        if chances[k] > level / (len(chances) - rank):
            break
        held[k] = True
    return held
