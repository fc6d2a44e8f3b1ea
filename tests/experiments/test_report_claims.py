# SPDX-License-Identifier: MIT
"""Claims about percentiles and differences, and what report and summary say of them."""

import random
from pathlib import Path

import pytest

from experiments.model import Claim, Experiment, Metric
from experiments.report import page, rows, summary, text
from experiments.report.data import Results
from experiments.report.runs import Run
from topologies.parameter import Params

NEW: Params = {"extend": "auto"}
OLD: Params = {"extend": "never"}


class Tails(Experiment):
    """A tail that is half as long, and a time that is 5 ms longer."""

    name = "synthetic-tails"
    title = "Made up"
    question = "Is it shorter?"
    metrics = (Metric("completion_s", "completion time", "s"), Metric("took_ms", "object", "ms"))
    grids = ({"extend": ("auto", "never")},)
    claims = (
        Claim("made-up", "here", "slow ones", NEW, OLD, statistic="p95", than=0.75),
        Claim("made-up", "here", "slow ones alone", NEW, statistic="p95", than=3.0),
        Claim(
            "made-up",
            "here",
            "2 ms more at most",
            NEW,
            OLD,
            metric="took_ms",
            compared="difference",
            than=2.0,
        ),
        Claim(
            "made-up",
            "here",
            "10 ms more at most",
            NEW,
            OLD,
            metric="took_ms",
            compared="difference",
            than=10.0,
        ),
    )

    def measure(self, run: object) -> dict[str, float]:
        raise NotImplementedError


def made_up(seeds: int = 40, folder: Path = Path("nowhere")) -> Results:
    runs = []
    for seed in range(seeds):
        chance = random.Random(seed)
        lost, took = (2.0 if seed % 4 == 0 else 0.0) + chance.random() / 10, chance.uniform(40, 80)
        for params, tail, more in ((NEW, 0.5, 5.0), (OLD, 1.0, 0.0)):
            measures = {"took_ms": took + more + chance.uniform(-1, 1)}
            name = f"{params['extend']}-{seed}"
            took_s = 0.5 + tail * lost
            runs.append(Run(name, params, seed, seed, "ok", measures, took_s))
    meta = {"format": 1, "experiment": Tails.name}
    return Results(folder, meta, tuple(runs), 0, Tails(), True)


def test_percentiles_and_differences_are_decided() -> None:
    tail, alone, two, ten = rows.rows(made_up())
    assert (tail.verdict, tail.kind) == ("yes", "ratio of the 95th percentiles")
    assert tail.got.median == pytest.approx(1.5 / 2.5, 0.05)
    assert (alone.verdict, alone.kind) == ("yes", "95th percentile")
    assert alone.ours.endswith("\N{NO-BREAK SPACE}s")
    assert (two.verdict, ten.verdict) == ("no", "yes")
    assert two.got.median == pytest.approx(5, abs=0.5)
    assert (two.kind, two.expected) == ("paired difference", "below 2.00\N{NO-BREAK SPACE}ms")
    assert two.ours.endswith("\N{NO-BREAK SPACE}ms")


def test_a_percentile_needs_more_runs_than_a_median() -> None:
    tail, *_ = rows.rows(made_up(20))
    assert tail.verdict == "few"
    assert "20 pairs: an interval needs 40." in tail.why


def test_the_summary_calls_a_percentile_by_its_name() -> None:
    results = made_up()
    told = summary.of(results, rows.rows(results))["comparison"]
    assert "median" not in told[0]
    assert told[0]["low"] <= told[0]["p95"] <= told[0]["high"] < 0.75
    assert [it["unit"] for it in told] == ["", "s", "ms", "ms"]
    assert told[2]["kind"] == "paired difference"
    assert told[2]["low"] < told[2]["median"] < told[2]["high"]


def test_page_and_terminal_say_what_is_compared(tmp_path: Path) -> None:
    results = made_up(folder=tmp_path)
    found = rows.rows(results)
    shown = [page.shown(row, results) for row in found]
    assert [it["metric_label"] for it in shown[:3]] == [
        "95th percentile",
        "95th percentile",
        "object, difference",
    ]
    assert shown[0]["forest"] and not shown[2]["forest"], "a difference may be below 0"
    assert "95th percentile" in page.render(results, found)
    told = " ".join(text.of(results, 160).split())
    assert "here: slow ones (95th percentile)" in told
    assert "here: 2 ms more at most (difference)" in told


class Settings(Tails):
    """Twice as much in two settings of three, half as much in the third."""

    name = "synthetic-settings"
    metrics = (Metric("rate", "rate", "1/s", "more"),)
    grids = ({"extend": ("auto", "never"), "mbps": (1.0, 2.0, 3.0)},)
    claims = tuple(
        Claim(
            "made-up",
            "here",
            statistic,
            NEW,
            OLD,
            metric="rate",
            statistic=statistic,
            settings=settings,
            expect="more",
        )
        for statistic, settings in (("second", 3), ("least", 3), ("geomean", 3), ("geomean", 4))
    )


def of_settings(folder: Path = Path("nowhere")) -> Results:
    runs = []
    for seed in range(10):
        chance = random.Random(seed)
        for k, mbps in enumerate((1.0, 2.0, 3.0)):
            rate = mbps * chance.uniform(10, 20)
            gain = chance.uniform(0.95, 1.05) * (0.5, 2.0, 2.0)[k]
            for side, value in ((NEW, rate * gain), (OLD, rate)):
                name = f"{side['extend']}-{mbps}-{seed}"
                params = {**side, "mbps": mbps}
                runs.append(Run(name, params, seed, seed, "ok", {"rate": value}, 1.0))
    meta = {"format": 1, "experiment": Settings.name}
    return Results(folder, meta, tuple(runs), 0, Settings(), True)


def test_settings_are_taken_together() -> None:
    second, least, mean, more = rows.rows(of_settings())
    assert [it.verdict for it in (second, least, mean, more)] == ["yes", "no", "yes", "none"]
    assert least.got.median == pytest.approx(0.5, rel=0.05)
    assert mean.got.median == pytest.approx(2 ** (1 / 3), rel=0.05)
    assert least.kind == "least of the settings' paired ratios"
    assert (mean.got.n, mean.got.unit) == (10, "repetitions")
    told = summary.of(of_settings(), [mean])["comparison"][0]
    assert told["low"] < told["geomean"] < told["high"] and "median" not in told


def test_page_and_terminal_name_what_was_taken_of_settings(tmp_path: Path) -> None:
    results = of_settings(tmp_path)
    assert "geometric mean" in page.render(results, rows.rows(results))
    assert "here: geomean (geometric mean)" in " ".join(text.of(results, 160).split())
