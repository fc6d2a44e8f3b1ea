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
