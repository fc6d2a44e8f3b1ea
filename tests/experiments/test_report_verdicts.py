# SPDX-License-Identifier: MIT
"""Two verdicts for each published value, direction and size; what matters; what holds together."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import catalogue
from experiments.model import OWN, Claim, Experiment, Metric
from experiments.report import conclusions, overview, page, rows, summary, text, words
from experiments.report.data import Results
from experiments.report.matching import matches
from experiments.report.runs import Basis, Run
from experiments.statistics import Estimate, estimate, holm, sign_test
from experiments.verdicts import Published, is_nil
from topologies.parameter import Params
from topologies.presets import PRESETS

EIGHT: Params = {"way": "pipes", "pipes": 8}
ONE: Params = {"way": "pipes", "pipes": 1}


def got(low: float, median: float, high: float, n: int = 10) -> Estimate:
    return Estimate(n, 0, median, low, high, low, high)


HALF = Published(0.5, margin=0.1, least=0.05)  # 0.467 to 0.536
MORE = Published(1.78, margin=0.1, least=0.05)  # 1.68 to 1.89
ALONE = Published(0.05, none=None, margin=0.1, least=0.05)  # a time: 0.0455 to 0.055


@pytest.mark.parametrize(
    ("published", "interval", "says"),
    [
        (HALF, (0.468, 0.5, 0.535), "yes"),
        (HALF, (0.466, 0.5, 0.535), "unclear"),  # a part of it lies outside
        (HALF, (0.468, 0.5, 0.537), "unclear"),
        (HALF, (0.23, 0.5, 1.11), "unclear"),  # too wide to tell
        (HALF, (0.4, 0.5, math.inf), "unclear"),
        (HALF, (0.535, 0.6, 0.65), "unclear"),
        (HALF, (0.537, 0.6, 0.65), "weaker"),
        (HALF, (0.4, 0.45, 0.466), "stronger"),
        (HALF, (0.9, 0.97, 1.05), "weaker"),
        (HALF, (1.01, 1.02, 1.03), "weaker"),  # no effect that matters
        (HALF, (0.99, 1.2, 1.3), "weaker"),  # perhaps none
        (HALF, (1.1, 1.2, 1.3), "other"),
        (Published(0.175), (0.8, 0.83, 0.86), "weaker"),  # Fig. 13 wired
        (MORE, (1.04, 1.05, 1.06), "weaker"),  # radio-apps: it was called the other way
        (MORE, (0.8, 0.85, 0.9), "other"),
        (MORE, (1.7, 1.75, 1.8), "yes"),
        (MORE, (1.95, 2.0, 2.1), "stronger"),
        (Published(0.15), (0.58, 0.6, 0.62), "weaker"),  # handover
        # Small ratios are told apart: 0.005 was a quarter of 0.02.
        (Published(0.02), (0.0245, 0.0246, 0.0249), "weaker"),
        (Published(0.02), (0.0185, 0.02, 0.0215), "yes"),
        (Published(0.02), (0.016, 0.017, 0.0175), "stronger"),
        # And small effects: a share of the ratio held a gain and a loss at once.
        (Published(0.95, least=0.02), (1.0, 1.0, 1.01), "weaker"),
        (Published(0.95, least=0.02), (1.0, 1.05, 1.15), "weaker"),  # it was called the same
        (Published(0.95, least=0.02), (0.94, 0.95, 0.96), "yes"),
        (Published(0.85, least=0.05), (0.23, 0.89, 1.11), "unclear"),
        (Published(1.0, least=0.05), (0.96, 1.0, 1.04), "yes"),
        (Published(1.0, least=0.05), (0.8, 0.85, 0.9), "stronger"),
        (Published(134.0), (117.0, 119.0, 121.0), "weaker"),
        # A published 0.00 s over 0.81 s.
        (Published(0.0, read_to=0.006), (0.0, 0.002, 0.006), "yes"),
        (Published(0.0, read_to=0.006), (0.0, 0.002, 0.007), "unclear"),
        (Published(0.0, read_to=0.006), (0.0065, 0.007, 0.008), "weaker"),
        # What stands alone is no effect.
        (ALONE, (0.046, 0.05, 0.054), "yes"),
        (ALONE, (0.056, 0.0565, 0.057), "larger"),
        (ALONE, (0.02, 0.03, 0.04), "smaller"),
        # Of differences the margin is of the difference.
        (Published(2.0, none=0.0, least=0.5), (1.6, 2.0, 2.4), "yes"),
        (Published(2.0, none=0.0, least=0.5), (0.5, 0.6, 0.7), "weaker"),
        (Published(2.0, none=0.0, least=0.5), (-2.0, -1.9, -1.8), "other"),
        (Published(2.0, none=0.0, least=0.5), (-0.3, -0.2, -0.1), "weaker"),
    ],
)
def test_the_size(published: Published, interval: tuple[float, float, float], says: str) -> None:
    assert published.size(got(*interval)) == says
    assert published.size(got(*interval, n=4)) == "few"
    assert published.size(estimate([])) == "none"


def test_wider_data_are_no_better() -> None:
    """An interval that grows may leave what was asked; it never comes to say yes."""
    for middle in (0.3, 0.5, 0.6, 1.1):
        seen = [HALF.size(got(middle / by, middle, middle * by)) for by in (1.0, 1.05, 1.3, 3.0)]
        assert "yes" not in seen[1:] or seen[0] == "yes"
        assert seen[-1] == "unclear"


def test_a_margin_is_of_the_effect_and_at_most_of_the_ratio() -> None:
    def share(value: float, **more: float) -> float:
        return Published(value, margin=0.1, **more).reach[1] / value - 1

    assert share(0.8) == pytest.approx(0.0226, abs=1e-4), "a tenth of the effect"
    assert share(0.01) == share(100.0) == pytest.approx(0.1)
    assert share(0.99, least=0.05) == share(1.0, least=0.05) == pytest.approx(0.05)
    assert share(1.0) == 0.0
    low, high = Published(0.42).reach
    assert low * high == pytest.approx(0.42**2), "as far to both sides"


def test_no_effect_is_within_what_matters_on_both_sides() -> None:
    assert is_nil(got(1.0, 1.0, 1.01), 1.0, 0.05)
    assert is_nil(got(0.951, 1.0, 1.049), 1.0, 0.05)
    assert not is_nil(got(0.95, 1.0, 1.04), 1.0, 0.05)
    assert not is_nil(got(0.96, 1.0, 1.05), 1.0, 0.05)
    assert not is_nil(got(1.0, 1.0, 1.01, n=4), 1.0, 0.05), "few runs show nothing"


def test_the_sign_test_is_exact() -> None:
    assert sign_test([0.5] * 5, 1.0, "less") == pytest.approx(2 / 32)
    assert sign_test([0.5] * 6, 1.0, "less") == pytest.approx(2 / 64)
    assert sign_test([0.5] * 9 + [2.0], 1.0, "less") == pytest.approx(22 / 1024)
    assert sign_test([2.0] * 6, 1.0, "less") == 1.0
    assert sign_test([1.0] * 6, 1.0, "less") == 1.0, "ties are no evidence"
    assert sign_test([math.inf] * 6, 1.0, "more") == pytest.approx(2 / 64)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.01, 0.02, 0.04]) == [True, True, True]
    assert holm([0.02, 0.02, 0.02]) == [False, False, False]
    assert holm([]) == []


def test_holm_keeps_false_findings_to_one_report_in_twenty() -> None:
    """Of ten claims without any effect; alone, every third report has one."""
    rng = np.random.default_rng(7)
    reports = rng.normal(1.0, 0.2, (600, 10, 12))
    alone = together = 0
    for each in reports:
        chances = [sign_test(list(values), 1.0, "less") for values in each]
        alone += any(chance <= 0.05 for chance in chances)
        together += any(holm(chances))
    assert together / 600 < 0.05 < alone / 600


# --- in a report ---


class Pipes(Experiment):
    name = "synthetic-verdicts"
    title = "Made up"
    question = "Is it as large as published?"
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("other_s", "another time", "s", matters=0.05),
        Metric("swing", "swing beyond the link's", "", matters=0.2),
    )
    grids = ({"pipes": (1, 8)},)
    claims = (
        Claim("x", "Fig. 1", "as published", EIGHT, ONE, paper=0.5),
        Claim("x", "Fig. 1", "weaker than published", EIGHT, ONE, paper=0.2),
        Claim("x", "Fig. 1", "nearly nothing", EIGHT, ONE, metric="other_s", paper=0.5),
        Claim("x", OWN, "a bound", EIGHT, than=3.0),
        Claim("x", "§2", "no value", EIGHT, ONE),
    )

    def measure(self, run: Any) -> dict[str, Any]:
        raise NotImplementedError


def made_up(n: int = 20, folder: Path = Path("nowhere")) -> Results:
    """8 pipes take half as long; the other time is 1 % longer."""
    chance = random.Random(4)
    runs = []
    for seed in range(n):
        base = chance.uniform(3.0, 5.0)
        for params, share, more in ((EIGHT, 0.5, 1.01), (ONE, 1.0, 1.0)):
            took = base * share * chance.uniform(0.99, 1.01)
            other = base * more * chance.uniform(0.999, 1.001)
            swing = chance.uniform(-0.01, 0.01)
            measures = {"completion_s": took, "other_s": other, "swing": swing}
            name = f"{params['pipes']}-{seed}"
            runs.append(Run(name, params, seed, seed, "ok", measures, took))
    meta = {"format": 1, "experiment": Pipes.name}
    return Results(folder, meta, tuple(runs), 0, Pipes(), True)


def test_direction_and_size_are_two_verdicts() -> None:
    alike, weaker, nil, own, plain = rows.rows(made_up())
    assert (alike.verdict, alike.size) == ("yes", "yes")
    assert (weaker.verdict, weaker.size) == ("yes", "weaker"), "a direction says no size"
    assert (nil.verdict, nil.size) == ("nil", "weaker")
    assert "smallest effect of interest" in nil.why[0]
    assert (own.verdict, own.size, own.size_says) == ("yes", None, "")
    assert plain.size is None


def test_own_bounds_stand_apart(tmp_path: Path) -> None:
    results = made_up(folder=tmp_path)
    found = rows.rows(results)
    published, own = rows.apart(found)
    assert [it.claim.says for it in own] == ["a bound"] and len(published) == 4
    told = summary.of(results, found)
    assert sum(told["tally"].values()) == 4 and sum(told["own_tally"].values()) == 1
    assert told["sizes"]["yes"] == 1 and told["sizes"]["weaker"] == 2
    assert [it["own"] for it in told["comparison"]] == [False, False, False, True, False]
    html = page.render(results, found)
    first, second = html.split('<h2 id="own">')
    assert "a bound" in second and "a bound" not in first
    assert "✗ weaker" in first and "same size?" in first
    shown = text.of(results, 160)
    assert shown.index("Beside the published") < shown.index("own bounds") < shown.index("a bound")


def test_own_bounds_stand_apart_in_the_index(tmp_path: Path) -> None:
    html = overview.render([made_up(folder=tmp_path / "x" / "A")], tmp_path)
    first, second = html.split("<details><summary>The laboratory's own bounds (1)")
    assert "a bound" in second and "as published" in first
    assert "4 rows of published figures" in html


def with_links(results: Results, *, lost: int, sessions: int) -> Results:
    def run(it: Run) -> Run:
        links = {"down": {"lost_packets": lost}}
        return replace(it, links=links, session=it.rep % sessions)

    return replace(results, runs=tuple(run(it) for it in results.runs))


@pytest.mark.parametrize(
    ("lost", "sessions", "repeats"), [(0, 1, True), (0, 2, True), (0, 3, False), (3, 1, False)]
)
def test_what_repeats_the_same_timers_has_no_interval(
    lost: int, sessions: int, repeats: bool, tmp_path: Path
) -> None:
    """ "0.74 (0.74 to 0.74)" of one session without a loss says nothing of another day."""
    results = with_links(made_up(folder=tmp_path), lost=lost, sessions=sessions)
    (first, *_) = found = rows.rows(results)
    assert (first.repeats, first.basis.sessions, first.basis.seeds) == (repeats, sessions, 20)
    assert first.interval.startswith("no interval; repeats of") == repeats
    told = summary.of(results, found)["comparison"][0]
    assert [told[it] for it in ("sessions", "seeds", "repetitions")] == [sessions, 20, 20]
    assert told["repeats"] == repeats
    html = page.render(results, found)
    assert f"{words.count(sessions, 'session')}, 20 seeds, 20 repetitions" in html


def test_where_nobody_counted_losses_an_interval_is_one() -> None:
    assert not rows.rows(made_up())[0].repeats


def test_an_interval_over_pages_is_one_for_other_pages() -> None:
    """Though each page was loaded once, and nothing was lost."""
    results = with_links(made_up(), lost=0, sessions=1)
    runs = (replace(it, params={**it.params, "page": it.seed}) for it in results.runs)
    (first, *_) = rows.rows(replace(results, runs=tuple(runs)))
    assert first.got.unit == "settings" and not first.repeats


def test_jitter_is_drawn_at_random() -> None:
    results = with_links(made_up(), lost=0, sessions=1)
    runs = (replace(it, params={**it.params, "jitter_ms": 5.0}) for it in results.runs)
    assert not rows.rows(replace(results, runs=tuple(runs)))[0].repeats


@pytest.mark.parametrize(
    ("value", "says"),
    [
        *((0.026, "0.026"), (0.034, "0.034"), (0.0994, "0.099"), (0.0997, "0.10"), (0.31, "0.31")),
        *((0.0062, "0.0062"), (0.0, "0.00"), (1.0, "1.00"), (9.994, "9.99"), (44.4, "44.4")),
        *((-0.026, "-0.026"), (-9.3, "-9.30"), (math.inf, words.INFINITE)),
    ],
)
def test_small_ratios_are_told_apart(value: float, says: str) -> None:
    """ "0.03 | 0.03 (0.03 to 0.03) | ✗ weaker" was 0.026 beside 0.034."""
    assert words.ratio(value) == says


def test_with_few_runs_nothing_holds_together(tmp_path: Path) -> None:
    """Five runs on one side are 1 in 16, and one of five claims."""
    five, twenty = rows.rows(made_up(5)), rows.rows(made_up(20))
    assert five[0].verdict == twenty[0].verdict == "yes"
    assert (five[0].together, twenty[0].together) == (False, True)
    assert five[0].holm and not twenty[0].holm
    results = made_up(5, tmp_path)
    assert "; by itself)" in page.render(results, five)
    (first, *_) = summary.of(results, five)["comparison"]
    assert first["holm"] is False and first["chance"] == pytest.approx(2 / 32)


def test_a_percentile_is_in_no_sign_test() -> None:
    claim = Claim("x", OWN, "p95", EIGHT, statistic="p95", than=3.0)
    assert made_up().chance(claim) is None


def test_mean_and_p95_stand_beside_every_median(tmp_path: Path) -> None:
    results = made_up(folder=tmp_path)
    told = summary.of(results, rows.rows(results))
    for it in told["configurations"]:
        for metric in it["metrics"].values():
            assert {"median", "mean", "p95"} <= metric.keys()
    (eight,) = results.select(EIGHT)
    values = [run.measures["completion_s"] for run in eight.runs]
    first = told["configurations"][1]["metrics"]["completion_s"]
    assert first["mean"] == pytest.approx(np.mean(values), 1e-5)
    assert first["p95"] == pytest.approx(np.quantile(values, 0.95), 1e-5)
    html = page.render(results, rows.rows(results))
    assert '<th class="n">mean</th><th class="n">p95</th>' in html
    assert "mean\N{NO-BREAK SPACE}0.50, p95" in html


def test_a_failed_run_is_in_the_mean() -> None:
    got = estimate([1.0, 2.0, math.inf], 1)
    assert math.isinf(got.mean) and got.median == 2.0
    assert json.dumps(rows.numbers(got), allow_nan=False)


# --- in sentences ---


def contrasted(metric: str, results: Results) -> list[conclusions.Contrast]:
    return conclusions.contrasts(results, results.metric(metric))


def test_a_hundredth_is_not_called_slower() -> None:
    """ "8 pipes are slower than 1: 1.00 (1.00 to 1.01)" says nothing that matters to anybody."""
    results = made_up()
    (found,) = contrasted("other_s", results)
    assert found.got.low > 1 and found.says == "alike"
    (other,) = contrasted("completion_s", results)
    assert other.says == "less"


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        ((0.8, 0.9, 0.99), "less"),
        ((0.9, 0.96, 0.99), "unclear"),  # some effect, and perhaps none that matters
        ((0.96, 0.98, 0.99), "alike"),
        ((0.96, 1.0, 1.04), "alike"),
        ((0.9, 1.0, 1.1), "unclear"),
        ((1.01, 1.06, 1.2), "more"),
    ],
)
def test_what_is_said_of_an_interval(interval: tuple[float, float, float], says: str) -> None:
    assert conclusions.Contrast("a", "b", "", got(*interval), 0.05).says == says


def test_sessions_are_in_no_interval_of_a_percentile() -> None:
    """It said that the intervals are for other sessions, of percentiles, too."""

    class WithTail(Pipes):
        claims = (Claim("x", OWN, "p95", EIGHT, statistic="p95", than=3.0),)

    results = with_links(made_up(), lost=1, sessions=3)
    plain = " ".join(conclusions.sentences(results))
    assert "The intervals are for other sessions, too" in plain and "percentiles" not in plain
    tail = " ".join(conclusions.sentences(replace(results, experiment=WithTail())))
    assert "Those of 95th percentiles are for other runs of these sessions alone." in tail


def test_the_sentence_says_what_does_not_matter() -> None:
    class Other(Pipes):
        metrics = Pipes.metrics[1:]

    results = made_up()
    swapped = Results(results.folder, results.meta, results.runs, 0, Other(), True)
    told = " ".join(conclusions.sentences(swapped))
    assert "8 pipes and 1 pipe differ by less than 5\N{NO-BREAK SPACE}%" in told
    assert "slower" not in told and "larger" not in told


def test_what_may_be_below_zero_has_no_ratio(tmp_path: Path) -> None:
    """A ratio of -9.3 to 6.87 was told of two differences."""
    results = made_up(folder=tmp_path)
    swing = results.metric("swing")
    assert results.is_signed(swing) and not results.is_signed(results.main)
    (found,) = contrasted("swing", results)
    assert found.compared == "difference" and abs(found.got.median) < 0.02
    html = page.render(results, rows.rows(results))
    table = html[html.index("<summary>swing beyond") :]
    table = table[: table.index("</table>")]
    line = next(it for it in table.splitlines() if it.startswith("<tr><td>8 pipes"))
    assert line.endswith('<td class="n"></td><td class="n"></td></tr>'), "no ratio to 1 pipe"


def test_the_fullest_folder_counts_in_an_index(tmp_path: Path) -> None:
    few, many = made_up(4, tmp_path / "x" / "Z"), made_up(20, tmp_path / "x" / "A")
    assert sorted([few, many], key=overview._fullness)[-1] is many


def test_a_parameter_that_came_later_was_not_there() -> None:
    """250 runs of blocking answered no claim: they are older than its rivals."""
    old: Params = {"pipes": 8, "loss_up": 0.0, "loss_down": 0.0}
    assert matches(old, {"pipes": 8, "rivals": 0, "trace_down": None, "loss": 0.0})
    assert not matches(old, {"rivals": 1})
    assert not matches(old, {"rival_cc": "cubic"}), "nobody knows which"
    assert not matches(old, {"pipes": 0})


def test_what_is_left_to_the_preset_has_its_value() -> None:
    old: Params = {"preset": "wired", "loss": None, "jitter_ms": None, "loss_down": None}
    assert matches(old, {"loss": 0.0, "jitter_ms": 0.0, "loss_down": 0.0})
    assert not matches(old, {"loss": 0.01})
    assert matches({**old, "preset": "lossy"}, {"loss": PRESETS["lossy"][0].loss_down})
    assert not matches({**old, "preset": "lossy"}, {"loss": 0.0})
    assert not matches({**old, "preset": "nowhere"}, {"loss": 0.0})
    assert not matches({**old, "loss": 0.02}, {"loss": 0.0})
    assert not matches({**old, "loss_down": 0.02}, {"loss": 0.0})
    assert not matches({**old, "mbps": None, "trace_down": "lte"}, {"mbps": 10.0})


@pytest.mark.parametrize(
    ("name", "says", "interval", "size"),
    [
        (
            "radio-apps",
            "(8 Mbit/s): pages beside an upload, untreated",
            (1.04, 1.05, 1.06),
            "weaker",
        ),
        ("radio-apps", "(8 Mbit/s): a download's rate", (0.93, 0.95, 0.96), "weaker"),
        ("handover", "when the signal is weak, instead", (0.58, 0.6, 0.62), "weaker"),
        ("radio-qcut", "8 Mbit/s: CoDel above", (0.6, 0.7, 0.75), "stronger"),
        ("radio-error", "8 Mbit/s: error of TCP to that of the host", (1.1, 1.2, 1.3), "weaker"),
        ("overhead", "file", (2.0, 2.1, 2.2), "larger"),
    ],
)
def test_no_effect_is_not_the_border_of_the_direction(
    name: str, says: str, interval: tuple[float, float, float], size: str
) -> None:
    """A ratio of 1.05 beside 1.78 was called the other way, since the direction's border is 1.1."""
    experiment = catalogue.find(name)
    metrics = {metric.name: metric for metric in experiment.metrics}
    claim = next(it for it in experiment.claims if says in it.says and it.paper is not None)
    assert rows.published(claim, metrics[claim.metric]).size(got(*interval)) == size


def test_bounds_that_nobody_published_are_own() -> None:
    """A share or a swing that the laboratory asks for is no published figure, and no 0 is one that
    was read off a steady line."""
    own = {
        "object": ("8 pipes with late binding, beside bulk over alone, at 5 Mbit/s",),
        "reordering": ("late binding: swing", "early binding: swing"),
        "loss-blocking": ("8 pipes, 1 % lost, time lost to others' losses",),
    }
    for name, all_says in own.items():
        for says in all_says:
            found = [it for it in catalogue.find(name).claims if says in it.says]
            assert found and all(it.is_own for it in found), says
    (alone,) = [
        it for it in catalogue.find("object").claims if it.where == "§6.4" and it.paper is not None
    ]
    assert alone.within == 0.1, "half as much again is not as if alone"


@pytest.mark.parametrize("name", catalogue.names())
def test_margins_and_what_matters_are_declared(name: str) -> None:
    experiment = catalogue.find(name)
    metrics = {metric.name: metric for metric in experiment.metrics}
    drawn = {figure.y for figure in experiment.figures if figure.kind != "series"}
    compared = {claim.metric for claim in experiment.claims if claim.over is not None}
    for metric in {experiment.metrics[0].name, *drawn, *compared}:
        share = metrics[metric].matters
        assert share is not None and 0 < share < 1, f"{metric}: nobody says what matters"
    assert all(0 <= claim.margin < 1 for claim in experiment.claims if claim.paper is not None)
    for claim in experiment.claims:
        assert claim.paper != 0 or claim.read_to > 0, f"{claim.says}: how exact is this 0?"
        assert not claim.is_own or claim.paper is None, f"{claim.says}: published, or not?"


def test_a_figure_may_declare_what_matters_to_it(tmp_path: Path) -> None:
    """0.90 (0.88 to 0.92) is an effect, but not where a fifth is the least of interest."""
    results: Any = SimpleNamespace(
        metric=lambda name: Metric(name, "time", "s", matters=0.05),
        answer=lambda claim: got(0.88, 0.9, 0.92),
        chance=lambda claim: 0.001,
        basis=lambda claim: Basis(3, 10, 10),
        notes={},
        select=lambda where: [],
        experiment=SimpleNamespace(metrics=()),
    )
    results.asked = lambda claim: results
    claim = Claim("download", "Fig. 9", "less", of={"pipes": 8}, over={"pipes": 1})
    assert rows.row(results, claim).verdict == "yes"
    coarse = rows.row(results, replace(claim, matters=0.2))
    assert coarse.verdict == "nil" and "within 20\N{NO-BREAK SPACE}%" in coarse.why[0]
    assert coarse.as_dict()["matters"] == 0.2


def test_what_may_be_near_zero_has_a_least_effect_in_its_unit() -> None:
    """A twentieth of a delay of 0.1 ms is nothing that anybody looks for."""
    delay = Metric("added_s", "delay", "s", matters=0.05, matters_by=0.001)
    assert delay.least(0.0001) == delay.least(-3.0) == 0.001
    assert Metric("x", "x", "s", matters=0.05).least(-2.0) == pytest.approx(0.1)
    assert Metric("x", "x", "s").least(2.0) == 0.0
    assert Metric("x", "x", "s", matters=0.1).least(math.inf) == 0.0
    assert words.smallest_effect(delay).replace("\N{NO-BREAK SPACE}", " ") == (
        "Smallest effect of interest: 5 %, 0.001 s where it may be near 0."
    )
    assert words.smallest_effect(Metric("x", "x", "s")) == ""
