# SPDX-License-Identifier: MIT
"""Intervals of synthetic runs whose truth is known: pages and sessions differ, and seeds."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from experiments import crossed, statistics
from experiments.statistics import Drawn, Estimate, grouped

INF = math.inf
TRUE = 0.75  # the median of what all runs are drawn from
TRIALS = 300


@dataclass(frozen=True)
class Sweep:
    """How many there are of each, and how far the values of each are from the truth."""

    pages: int
    sessions: int
    reps: int  # in a session
    of_page: float = 0.0
    of_session: float = 0.0
    of_run: float = 0.0
    of_seed: float = 0.0  # that all pages have in common
    skewed: bool = False  # pages: few are far above the rest

    def drawn(self, chance: np.random.Generator) -> list[Drawn]:
        page = chance.normal(0, 1, self.pages)
        if self.skewed:
            page = chance.exponential(1, self.pages) - math.log(2)
        shape = (self.sessions, self.reps)
        value = TRUE + self.of_page * page[:, None, None]
        value = value + self.of_session * chance.normal(0, 1, self.sessions)[None, :, None]
        value = value + self.of_seed * chance.normal(0, 1, shape)[None]
        value = value + self.of_run * chance.normal(0, 1, (self.pages, *shape))
        return [
            Drawn(p, s * self.reps + r, float(value[p, s, r]), True, s)
            for p in range(self.pages)
            for s in range(self.sessions)
            for r in range(self.reps)
        ]

    def trials(self, count: int = TRIALS) -> Iterator[list[Drawn]]:
        chance = np.random.default_rng(self.pages * 100 + self.sessions * 10 + self.reps)
        return (self.drawn(chance) for _ in range(count))


def held(sweep: Sweep, interval: Callable[[list[Drawn]], Estimate], count: int = TRIALS) -> float:
    found = (interval(it) for it in sweep.trials(count))
    return sum(it.low <= TRUE <= it.high for it in found) / count


PAGES_AND_SESSIONS = [
    Sweep(10, 3, 2, of_page=0.3, of_session=0.1, of_run=0.05),
    Sweep(10, 3, 2, of_page=0.1, of_session=0.1, of_run=0.05),
    Sweep(10, 3, 2, of_page=0.05, of_session=0.2, of_run=0.05),
    Sweep(30, 3, 1, of_page=0.3, of_session=0.1, of_run=0.05),
    Sweep(12, 5, 1, of_page=0.1, of_session=0.1, of_run=0.05, of_seed=0.05),
    Sweep(12, 3, 2, of_page=0.2, of_session=0.1, of_run=0.05, skewed=True),
    Sweep(1, 3, 6, of_session=0.1, of_run=0.1),
    Sweep(3, 4, 3, of_session=0.1, of_run=0.1),
]


def test_intervals_cover_where_pages_and_sessions_differ() -> None:
    """Each design for itself within what so many trials can tell, all of them together within
    93 to 97 %. Bounded in processor time, too: a report has hundreds of these."""
    began = time.process_time()
    shares = {sweep: held(sweep, grouped) for sweep in PAGES_AND_SESSIONS}
    took = time.process_time() - began
    # Binomial spread of 300 trials is 1.3 %, of all of them 0.45 %.
    for sweep, share in shares.items():
        assert 0.915 <= share <= 0.985, f"{share:.3f}: {sweep}"
    together = sum(shares.values()) / len(shares)
    assert 0.93 <= together <= 0.97, f"{together:.3f}"
    assert took < 10, f"{took:.1f} s"


def test_without_sessions_they_would_not() -> None:
    """What the sessions are for: the same runs, had nobody written down which is of which."""

    def naive(drawn: list[Drawn]) -> Estimate:
        return grouped([Drawn(it.setting, 0, it.value) for it in drawn])

    sweep = Sweep(10, 3, 2, of_page=0.05, of_session=0.2, of_run=0.05)
    assert held(sweep, naive, 200) < 0.5


@pytest.mark.parametrize("of_page", [0.0, 0.1])
def test_seeds_that_all_pages_meet_are_an_effect_of_their_own(of_page: float) -> None:
    """Ten pages that met the same losses are not ten draws of losses. And where neither pages nor
    seeds differ, only runs do, the interval does not count these twice."""
    seeds = Sweep(10, 1, 5, of_page=of_page, of_run=0.03, of_seed=0.1)
    alike = Sweep(10, 1, 5, of_page=of_page, of_run=0.1)
    assert 0.92 <= held(seeds, grouped, 300) <= 0.98
    assert 0.92 <= held(alike, grouped, 300) <= 0.98


def test_an_interval_says_what_it_is_for() -> None:
    def across(**size: int) -> str:
        chance = np.random.default_rng(1)
        return grouped(Sweep(**size, of_page=0.1, of_run=0.1).drawn(chance)).across

    assert across(pages=10, sessions=3, reps=2) == "3 sessions"
    assert across(pages=1, sessions=4, reps=5) == "4 sessions"
    assert across(pages=10, sessions=1, reps=5) == "5 repetitions"
    assert across(pages=10, sessions=2, reps=2) == "4 repetitions", "two sessions are too few"
    assert across(pages=10, sessions=1, reps=2) == ""
    assert across(pages=1, sessions=1, reps=9) == ""


def test_few_runs_of_three_sessions_have_a_range() -> None:
    got = grouped([Drawn("one", k, 1.0 + k, True, k) for k in range(3)])
    assert (got.low, got.high, got.enough, got.across) == (1.0, 3.0, False, "")


def test_sessions_that_are_all_alike_widen_nothing() -> None:
    got = grouped([Drawn("one", k, 2.0, True, k // 3) for k in range(9)])
    assert (got.low, got.median, got.high) == (2.0, 2.0, 2.0)


def test_a_run_that_is_missing_leaves_the_others() -> None:
    whole = Sweep(8, 3, 2, of_page=0.1, of_session=0.1, of_run=0.02)
    drawn = whole.drawn(np.random.default_rng(2))
    full, holed = (
        grouped(drawn),
        grouped([it for it in drawn if (it.setting, it.session) != (3, 1)]),
    )
    assert (holed.n, holed.across) == (8, "3 sessions")
    assert holed.low == pytest.approx(full.low, abs=0.1)
    assert holed.high == pytest.approx(full.high, abs=0.1)


def test_a_session_that_failed_is_in_the_interval() -> None:
    """An infinite median has no variance; the interval then reaches as far as was seen."""
    drawn = [Drawn("one", k, INF if k < 3 else 1.0 + k / 100, k >= 3, k // 3) for k in range(9)]
    got = grouped(drawn)
    assert (got.high, got.across, got.failed) == (INF, "3 sessions", 3)
    assert math.isfinite(got.low) and math.isfinite(got.median)


def test_one_failed_run_does_not_undo_the_sessions() -> None:
    drawn = [Drawn("one", k, INF if k == 4 else 1 + k / 100, k != 4, k // 5) for k in range(15)]
    got = grouped(drawn)
    assert math.isfinite(got.low) and math.isfinite(got.high) and got.failed == 1


@pytest.mark.parametrize(("df", "true"), [(2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262)])
def test_students_deviates(df: int, true: float) -> None:
    """Of tables; too large rather than too small."""
    found = crossed.student(crossed.Z, df)
    assert true <= found <= 1.045 * true
    assert crossed.normal(found, df) == pytest.approx(crossed.Z)
    assert crossed.student(crossed.Z, INF) == crossed.Z


def test_a_chance_by_sessions_agrees_with_the_interval() -> None:
    """The interval excludes a border where the chance is below 5 %, and hardly elsewhere."""
    sweep = Sweep(10, 3, 2, of_page=0.1, of_session=0.05, of_run=0.02)
    borders = [TRUE + k / 50 for k in range(1, 16)]
    seen = set()
    for drawn in sweep.trials(10):
        got = grouped(drawn)
        for border in borders:
            found = statistics.chance(drawn, border, "less")
            assert found is not None
            seen.add(got.high < border)
            if abs(got.high - border) > 0.02:
                assert (found < 0.05) == (got.high < border), (found, got, border)
    assert seen == {False, True}


def test_three_sessions_alone_never_hold_among_many_claims() -> None:
    """However near together: Student's t of two degrees of freedom has long tails."""
    drawn = [Drawn("one", k, 0.5 + k / 1e4, True, k // 5) for k in range(15)]
    alone = statistics.chance(drawn, 1.0, "less")
    assert alone is not None and 0.01 < alone < 0.1
    assert statistics.chance(drawn, 1.0, "more") == 1.0
    assert statistics.chance([], 1.0, "less") is None
