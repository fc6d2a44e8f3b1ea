# SPDX-License-Identifier: MIT
"""Statistics against known answers, against scipy, and against what they promise: coverage."""

import math

import numpy as np
import pytest

from experiments import statistics
from experiments.statistics import (
    LEAST,
    LEAST_P95,
    Drawn,
    Pair,
    changed,
    compared_p95,
    difference,
    estimate,
    grouped,
    p95,
    ratio,
)
from experiments.verdicts import verdict

INF = math.inf


def test_median_and_quartiles_are_numpys() -> None:
    values = np.random.default_rng(1).lognormal(size=23)
    got = estimate(list(values))
    assert got.median == pytest.approx(np.median(values))
    assert (got.q1, got.q3) == pytest.approx(tuple(np.quantile(values, [0.25, 0.75])))
    assert (got.n, got.failed) == (23, 0)
    assert got.low < got.median < got.high


def test_intervals_are_scipys() -> None:
    """All sizes in one test: each worker that runs one reads scipy, which takes it a second."""
    from scipy import stats

    for n in (5, 10, 20, 51):
        values = np.random.default_rng(n).gamma(2.0, size=n)
        theirs = stats.bootstrap(
            (values,),
            np.median,
            method="percentile",
            n_resamples=20_000,
            rng=np.random.default_rng(3),
        ).confidence_interval
        ours = estimate(list(values), resamples=20_000)
        spread = np.ptp(values)
        # Between order statistics the interval jumps: a little of the range is the precision.
        assert ours.low == pytest.approx(theirs.low, abs=0.04 * spread), n
        assert ours.high == pytest.approx(theirs.high, abs=0.04 * spread), n


@pytest.mark.parametrize(
    ("n", "draw"),
    [
        (n, draw)
        for n in (5, 10, 20)
        for draw in ("normal", "exponential", "lognormal", "standard_cauchy")
    ],
)
def test_coverage(n: int, draw: str) -> None:
    """The interval of the median holds the true median about as often as it says."""
    rng = np.random.default_rng(n)
    true = {"normal": 0.0, "exponential": math.log(2), "lognormal": 1.0, "standard_cauchy": 0.0}
    trials = 1500
    samples = getattr(rng, draw)(size=(trials, n))
    held = 0
    for sample in samples:
        got = estimate(sample, resamples=1000)
        held += got.low <= true[draw] <= got.high
    # Binomial spread of 1500 trials is 0.6 %: three of them around 91.5 % to 97.5 %.
    assert 0.90 <= held / trials <= 0.985, f"{held / trials:.3f} at n = {n}, {draw}"


def test_the_mean_would_not_cover() -> None:
    """What the bounds above are for: the same interval of the mean fails them at n = 5."""
    rng = np.random.default_rng(5)
    held = 0
    for sample in rng.lognormal(size=(800, 5)):
        means = np.sort(sample[rng.integers(0, 5, size=(1000, 5))].mean(axis=1))
        low, high = statistics.percentiles(means)
        held += low <= math.exp(0.5) <= high
    assert held / 800 < 0.90


def test_paired_ratio_sees_what_the_unpaired_does_not() -> None:
    """Runs that meet the same losses differ less in their ratio than the runs themselves."""
    rng = np.random.default_rng(2)
    luck = rng.lognormal(sigma=1.0, size=10)
    over = luck
    of = luck * 0.8 * rng.normal(1.0, 0.02, size=10)
    paired = estimate([ratio(*pair) for pair in zip(of, over, strict=True)])
    unpaired = changed(estimate(of), estimate(over), "ratio")
    assert paired.median == pytest.approx(0.8, rel=0.05)
    assert verdict(paired, "less") == "yes"
    assert verdict(unpaired, "less") == "unclear"


def test_a_change_of_medians_covers() -> None:
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(300):
        of, over = estimate(rng.exponential(2.0, 15)), estimate(rng.exponential(1.0, 15))
        got = changed(of, over, "ratio")
        held += got.low <= 2.0 <= got.high
    assert 0.90 <= held / 300 <= 0.995


def test_a_change_of_what_is_no_number_reaches_as_far_as_it_may() -> None:
    """A failure on one side, a difference that may be below 0, too few runs."""
    good, bad = estimate([1.0, 1.1, 1.2, 1.3, 1.4]), estimate([1.0, 1.0, INF, INF, INF], 3)
    got = changed(bad, good, "ratio")
    assert (got.median, got.high, got.failed) == (INF, INF, 3)
    assert got.low == pytest.approx(1.0 / 1.4)
    less = changed(estimate([-1.0] * 6), estimate([0.5] * 6), "difference")
    assert (less.low, less.median, less.high) == (-1.5, -1.5, -1.5)
    few = changed(estimate([1.0, 2.0]), good, "ratio")
    assert not few.enough and few.low == pytest.approx(1.0 / 1.4)


def test_same_runs_same_interval() -> None:
    values = list(np.random.default_rng(4).normal(size=20))
    assert estimate(values) == estimate(values[::-1])


def test_failures_stay_in_the_denominator() -> None:
    one_of_ten = estimate([1.0] * 9 + [INF], failed=1)
    assert (one_of_ten.n, one_of_ten.failed, one_of_ten.median) == (10, 1, 1.0)
    six_of_ten = estimate([1.0] * 4 + [INF] * 6, failed=6)
    assert six_of_ten.median == INF
    assert six_of_ten.q1 == 1.0 and six_of_ten.q3 == INF
    assert six_of_ten.low == 1.0 and six_of_ten.high == INF
    assert not any(math.isnan(x) for x in vars(six_of_ten).values() if x != "")


def test_ratios_with_failures() -> None:
    pairs = [(INF, 1.0), (1.0, INF), (INF, INF), (2.0, 1.0), (1.0, 2.0)]
    got = estimate([ratio(*pair) for pair in pairs], failed=3)
    assert got.median == 1.0 and got.failed == 3
    assert (got.low, got.high) == (0.0, INF)
    assert statistics.ratio(0.0, 0.0) == 1.0
    assert statistics.ratio(1.0, 0.0) == INF
    assert difference(3.0, 1.0) == 2.0
    assert difference(INF, INF) == 0.0


def test_few_runs_have_a_range_and_no_verdict() -> None:
    got = estimate([3.0, 1.0, 2.0])
    assert (got.low, got.median, got.high) == (1.0, 2.0, 3.0)
    assert not got.enough
    assert verdict(got, "more", 0.5) == "few"


@pytest.mark.parametrize(("n", "share"), [(4, 0.875), (LEAST, 0.9375), (6, 0.96875)])
def test_how_often_the_range_holds_the_median(n: int, share: float) -> None:
    """By counting: the comment beside LEAST has these figures, and fewer than LEAST miss 90 %."""
    below = np.random.default_rng(n).random((400_000, n)) < 0.5
    held = 1 - np.mean(below.all(axis=1) | (~below).all(axis=1))
    assert held == pytest.approx(share, abs=0.002)
    assert (held > 0.9) == (n >= LEAST)


def test_an_interval_of_five_is_their_whole_range() -> None:
    got = estimate([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (got.low, got.high) == (1.0, 5.0)


def pages(count: int, reps: int, spread: float = 0.5) -> list[Drawn]:
    """Ratios of pages that differ by `spread`, of runs that differ by a hundredth."""
    chance = np.random.default_rng(count * 100 + reps)
    found = []
    for page in range(count):
        own = chance.normal(1.0, spread)
        found += [Drawn(page, seed, own + chance.normal(0, 0.01)) for seed in range(reps)]
    return found


def test_runs_of_one_page_are_no_independent_pages() -> None:
    """Ten times the runs of each page make the interval no narrower: the pages are the same."""
    once, often = grouped(pages(12, 1)), grouped(pages(12, 10))
    assert (often.n, often.unit) == (12, "settings")
    alike = estimate([it.value for it in pages(12, 10)])
    assert alike.n == 120
    assert often.high - often.low > 0.5 * (once.high - once.low)
    assert often.high - often.low > 1.5 * (alike.high - alike.low)


def test_the_interval_over_pages_covers() -> None:
    """Of the median page, 10 runs each; were all runs independent, it would not."""
    held = naive = 0
    chance = np.random.default_rng(5)
    for _ in range(400):
        own = chance.normal(1.0, 0.5, 15)
        runs = own[:, None] + chance.normal(0, 0.02, (15, 10))
        drawn = [Drawn(p, s, runs[p, s]) for p in range(15) for s in range(10)]
        got = grouped(drawn)
        held += got.low <= 1.0 <= got.high
        wrong = estimate(list(runs.flat), resamples=400)
        naive += wrong.low <= 1.0 <= wrong.high
    assert 0.90 <= held / 400 <= 0.985
    assert naive / 400 < 0.7


def test_of_few_settings_each_repetition_counts_once() -> None:
    """Two last miles are not drawn from many: the interval is for these two."""
    values = [Drawn(mile, seed, mile + seed / 100) for mile in (0, 1) for seed in range(7)]
    got = grouped(values)
    assert (got.n, got.unit) == (7, "repetitions")
    assert got.median == pytest.approx(0.53)
    assert grouped(values[:7]).unit == ""
    assert grouped([]).n == 0


def test_failures_in_a_group_are_counted_once() -> None:
    values = [Drawn(page, seed, 1.0) for page in range(5) for seed in range(3)]
    values += [Drawn(page, 9, INF, ok=False) for page in (0, 1)]
    got = grouped(values)
    assert (got.n, got.failed, got.median) == (5, 2, 1.0)


def tails(seed: int, n: int = 40, factor: float = 1.0) -> list[Pair]:
    """Times of two sides that met the same losses, the first `factor` of the second's tail."""
    rng = np.random.default_rng(seed)
    lost = rng.exponential(0.3, n)
    noise = rng.uniform(1.0, 1.05, (2, n))
    return [
        Pair("one", k, float(a), float(b))
        for k, (a, b) in enumerate(
            zip((0.5 + factor * lost) * noise[0], (0.5 + lost) * noise[1], strict=True)
        )
    ]


def test_a_percentile_is_numpys_and_its_interval_scipys() -> None:
    from scipy import stats

    pairs = tails(1)
    of, over = ([getattr(it, side) for it in pairs] for side in ("of", "over"))
    alone = p95([Drawn("one", it.rep, it.of) for it in pairs])
    assert alone.median == pytest.approx(np.quantile(of, 0.95))
    got = compared_p95(pairs, ratio)
    assert got.median == pytest.approx(np.quantile(of, 0.95) / np.quantile(over, 0.95))
    theirs = stats.bootstrap(
        (of, over),
        lambda a, b, axis: np.quantile(a, 0.95, axis=axis) / np.quantile(b, 0.95, axis=axis),
        method="percentile",
        paired=True,
        n_resamples=20_000,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert (got.low, got.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert (got.n, got.failed, got.enough) == (40, 0, True)


def test_a_smaller_tail_is_seen_and_an_equal_one_is_not() -> None:
    """Also where the medians hardly differ."""
    small, equal = (compared_p95(tails(2, factor=factor), ratio) for factor in (0.4, 1.0))
    assert verdict(small, "less", 0.75) == "yes"
    assert verdict(equal, "less", 0.75) == "no"
    assert compared_p95(tails(2, factor=0.4), difference).high < 0


def test_the_interval_of_compared_percentiles_covers() -> None:
    true = 1.0
    held = sum(
        it.low <= true <= it.high for it in (compared_p95(tails(k), ratio) for k in range(300))
    )
    assert held / 300 > 0.9


def test_a_percentile_of_few_has_no_verdict() -> None:
    few = compared_p95(tails(3, LEAST_P95 - 1, 0.1), ratio)
    assert not few.enough and verdict(few, "less", 0.75) == "few"
    assert verdict(compared_p95([], ratio), "less") == "none" == verdict(p95([]), "less")


def test_failures_are_the_tail() -> None:
    """Two of forty reach the percentile; of both sides they are alike."""
    good = tails(4)[:38]
    bad = [Pair("one", 90 + k, INF, 0.6, ok=False) for k in range(2)]
    got = compared_p95([*good, *bad], ratio)
    assert (got.median, got.failed, got.high) == (INF, 2, INF)
    both = [Pair("one", 90 + k, INF, INF, ok=False) for k in range(2)]
    assert compared_p95([*good, *both], ratio).median == 1.0


def test_of_several_settings_each_repetition_is_one_value_of_the_percentile() -> None:
    pairs = tails(5)
    doubled = [*pairs, *(Pair("other", it.rep, it.of, it.over) for it in pairs)]
    one, two = compared_p95(pairs, ratio), compared_p95(doubled, ratio)
    assert (two.n, two.unit) == (40, "repetitions")
    assert (two.median, two.low, two.high) == pytest.approx((one.median, one.low, one.high))


def test_no_runs() -> None:
    assert estimate([]).n == 0
    assert verdict(estimate([]), "less") == "none"
    assert changed(estimate([]), estimate([1.0]), "ratio").n == 0


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        estimate([1.0, math.nan])


@pytest.mark.parametrize(
    ("low", "high", "expect", "than", "says"),
    [
        (0.2, 0.4, "less", 1.0, "yes"),
        (0.9, 1.1, "less", 1.0, "unclear"),
        (1.1, 1.3, "less", 1.0, "no"),
        (1.1, 1.3, "more", 1.0, "yes"),
        (0.2, 0.4, "more", 1.0, "no"),
        (0.95, 1.05, "same", 1.0, "yes"),
        (0.95, 1.15, "same", 1.0, "unclear"),
        (0.2, 0.4, "same", 1.0, "no"),
        (1.2, 1.4, "same", 1.0, "no"),
        (0.93, 1.0, "less", 1.0, "unclear"),  # an interval that touches does not exclude
    ],
)
def test_verdicts(low: float, high: float, expect: str, than: float, says: str) -> None:
    got = statistics.Estimate(10, 0, (low + high) / 2, low, high, low, high)
    assert verdict(got, expect, than) == says


def test_two_failures_are_no_proof_that_two_are_alike() -> None:
    failed = estimate([ratio(math.inf, math.inf)] * 5, 5)
    assert verdict(failed, "same") == "unclear"
