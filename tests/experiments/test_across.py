# SPDX-License-Identifier: MIT
"""One number of several settings: what it is, its interval, and when there is none."""

import math
import random

import pytest

from experiments import across
from experiments.statistics import Drawn
from experiments.verdicts import verdict

RATIOS = (0.5, 1.0, 2.0, 4.0)


def drawn(reps: int = 30, spread: float = 0.1) -> list[Drawn]:
    """Of each setting values about its ratio; each repetition is good or bad for all of them."""
    chance = random.Random(3)
    luck = [chance.uniform(1 - spread, 1 + spread) for _ in range(reps)]
    return [Drawn(k, rep, it * luck[rep]) for k, it in enumerate(RATIOS) for rep in range(reps)]


@pytest.mark.parametrize(
    ("statistic", "is_about"),
    [("geomean", math.sqrt(2)), ("least", 0.5), ("second", 1.0), ("largest", 4.0)],
)
def test_what_it_is(statistic: str, is_about: float) -> None:
    got = across.estimate(drawn(), statistic, 4)
    assert got.median == pytest.approx(is_about, rel=0.05)
    assert got.low < got.median < got.high
    assert 0.9 * is_about < got.low and got.high < 1.1 * is_about
    assert (got.n, got.unit, got.failed) == (30, "repetitions", 0)


def test_an_interval_has_the_truth() -> None:
    """Of repetitions like these: nearly always, where settings are as good together."""
    inside = 0
    for seed in range(100):
        chance = random.Random(seed)
        luck = [chance.gauss(1, 0.1) for _ in range(15)]
        values = [Drawn(k, n, it * luck[n]) for k, it in enumerate(RATIOS) for n in range(15)]
        got = across.estimate(values, "geomean", 4)
        inside += got.low <= math.sqrt(2) <= got.high
    assert 88 <= inside <= 99


def of_sessions(chance: random.Random, of_session: float, of_rep: float, count: int) -> list[Drawn]:
    """Each session is good or bad for all settings, and each repetition by itself."""
    values = []
    for session in range(count):
        good = chance.gauss(0, of_session)
        for rep in range(5):
            factor = math.exp(good + chance.gauss(0, of_rep))
            values += [
                Drawn(k, 5 * session + rep, it * factor, True, session)
                for k, it in enumerate(RATIOS)
            ]
    return values


@pytest.mark.parametrize(
    ("statistic", "truth"),
    [("geomean", math.sqrt(2)), ("least", 0.5)],
)
def test_an_interval_has_the_truth_of_other_sessions(statistic: str, truth: float) -> None:
    """From three sessions on; of repetitions alone it had it in 65 to 74 %. The binomial spread of
    200 is 1.5 %."""
    inside = total = 0
    for count, of_session, of_rep in ((3, 0.2, 0.05), (5, 0.1, 0.1)):
        for seed in range(100):
            chance = random.Random(f"{count} {seed}")
            got = across.estimate(
                of_sessions(chance, of_session, of_rep, count), statistic, len(RATIOS)
            )
            assert got.across == f"{count} sessions"
            inside += got.low <= truth <= got.high
            total += 1
    assert 0.91 <= inside / total <= 0.985


def test_two_sessions_are_as_one() -> None:
    got = across.estimate(of_sessions(random.Random(1), 0.1, 0.1, 2), "geomean", 4)
    assert got.across == "" and got.low < got.median < got.high


def test_a_session_without_a_setting_counts_for_no_session() -> None:
    whole = of_sessions(random.Random(2), 0.1, 0.1, 3)
    holed = [it for it in whole if (it.setting, it.session) != (1, 2)]
    assert across.estimate(whole, "least", 4).across == "3 sessions"
    assert across.estimate(holed, "least", 4).across == ""


def test_of_fewer_settings_it_says_nothing() -> None:
    got = across.estimate(drawn(), "least", 5)
    assert verdict(got, "more") == "none"
    assert across.estimate([], "least", 1).n == 0


def test_the_setting_with_fewest_runs_counts() -> None:
    values = [it for it in drawn() if it.setting != 1 or it.rep < 4]
    got = across.estimate(values, "second", 4)
    assert got.n == 4 and verdict(got, "less") == "few"
    assert got.median == pytest.approx(1.0, rel=0.1)


def test_failures_make_it_nothing() -> None:
    """Most runs of one setting failed: of a rate that is nothing, and so is the mean."""
    values = [
        Drawn(it.setting, it.rep, 0.0, ok=False) if it.setting == 3 and it.rep % 3 else it
        for it in drawn()
    ]
    for statistic in ("geomean", "least"):
        got = across.estimate(values, statistic, 4)
        assert (got.median, got.low, got.failed) == (0.0, 0.0, 20)
    assert across.estimate(values, "largest", 4).median == pytest.approx(2.0, rel=0.05)
