# SPDX-License-Identifier: MIT
"""Percentiles of all that runs list together, and what a report says of them."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments import pooled
from experiments.catalogue.thin_loss import ThinLoss
from experiments.model import OWN, Claim, Experiment, Metric, Pooled
from experiments.report import rows, summary
from experiments.report.data import Results
from experiments.report.runs import Run
from experiments.statistics import ratio
from topologies.parameter import Params

FAR = Metric("far_ms", "far out", "ms", pooled=Pooled("s", 0.999, 1e3, "given_up"))
MEAN = Metric("share", "mean", "", pooled=Pooled("share", None))
NEW: Params = {"thin": "copy"}
OLD: Params = {"thin": "off"}


class Times(Experiment):
    name = "synthetic-times"
    title = "Made up"
    question = "Is it shorter?"
    metrics = (FAR, MEAN)
    grids = ({"thin": ("copy", "off")},)
    claims = (
        Claim("x", OWN, "far out", NEW, OLD, metric="far_ms", statistic="pooled", than=0.6),
        Claim("x", OWN, "share", NEW, metric="share", statistic="pooled", than=0.001),
    )

    def measure(self, run: object) -> dict[str, float]:
        raise NotImplementedError


def run_of(params: Params, rep: int, seconds: Sequence[float], **more: float) -> Run:
    measures = {"s": list(seconds), "share": 0.0005 * (rep % 3), "given_up": 0, **more}
    return Run(f"{params}-{rep}", params, rep, rep, "ok", measures)


def made_up(reps: int = 8, queries: int = 1000) -> Results:
    """Of 1,000 answers two take 100 ms, or 200 ms, and in a run of its own twenty do."""
    runs = []
    for rep in range(reps):
        slow = 20 if rep == 1 else 2
        for params, tail in ((NEW, 0.1), (OLD, 0.2)):
            seconds = [tail] * slow + [0.02] * (queries - slow)
            runs.append(run_of(params, rep, seconds))
    meta = {"format": 1, "experiment": Times.name}
    return Results(Path("nowhere"), meta, tuple(runs), 0, Times(), True)


def test_all_runs_are_one_distribution() -> None:
    chance = np.random.default_rng(1)
    runs = [run_of(NEW, rep, chance.exponential(0.02, 1000)) for rep in range(10)]
    every = np.concatenate([run.measures["s"] for run in runs])
    got = pooled.estimate([runs], FAR, float)
    assert got.median == pytest.approx(1e3 * np.quantile(every, 0.999))
    assert got.low <= got.median <= got.high
    assert got.mean == pytest.approx(1e3 * np.mean(every))


def test_an_interval_holds_the_true_percentile() -> None:
    true, held = 20 * math.log(1000), 0
    for seed in range(60):
        chance = np.random.default_rng(seed)
        runs = [run_of(NEW, rep, chance.exponential(0.02, 1000)) for rep in range(12)]
        got = pooled.estimate([runs], FAR, float)
        held += got.low <= true <= got.high
    assert held >= 50


def test_two_sides_are_drawn_together() -> None:
    """What one repetition's losses did to both does not widen the interval of the ratio."""
    far, share = rows.rows(made_up())
    assert (far.verdict, far.kind) == ("yes", "ratio of the pooled values")
    assert far.got.median == far.got.high == pytest.approx(0.5)
    assert (share.verdict, share.got.median) == ("yes", pytest.approx(0.0005 * 7 / 8))


def test_too_few_values_decide_nothing() -> None:
    far, _ = rows.rows(made_up(queries=999))
    assert far.verdict == "few"
    assert "7992 values: an interval needs 8000." in far.why
    far, share = rows.rows(made_up(reps=4, queries=4000))
    assert far.verdict == share.verdict == "few"
    assert "4 repetitions: an interval needs 5." in far.why


def test_what_failed_or_was_given_up_took_longest() -> None:
    runs = [run_of(NEW, rep, [0.02] * 125) for rep in range(8)]
    assert pooled.estimate([runs], FAR, float).median == pytest.approx(20)
    given_up = [run_of(NEW, 0, [0.02] * 123, given_up=2), *runs[1:]]
    assert pooled.estimate([given_up], FAR, float).median == math.inf
    failed = [Run("f", NEW, 0, 0, "failed", {}), *runs[1:]]
    got = pooled.estimate([failed], FAR, float)
    assert (got.median, got.failed) == (math.inf, 1)
    assert pooled.estimate([failed, runs], FAR, ratio).median == math.inf
    assert pooled.estimate([[], runs], FAR, ratio).n == 0


def test_a_configuration_has_it_too() -> None:
    results = made_up()
    copy = next(it for it in results.configurations if it.params == NEW)
    assert copy.estimate(FAR).median == pytest.approx(100)
    told = summary.of(results, rows.rows(results))["comparison"]
    assert told[0]["pooled"] == pytest.approx(0.5)


def test_tails_of_thin_streams_are_over_8000_queries() -> None:
    of_both = (it for it in ThinLoss.claims if it.is_own and it.over is not None)
    bounds = [it for it in of_both if it.metric == "answer_p999_ms"]
    assert len(bounds) == 2
    queries = next(it.default for it in ThinLoss.parameters if it.name == "queries")
    for claim in bounds:
        assert claim.statistic == "pooled"
        assert claim.over is not None
        for grids, reps in (
            (ThinLoss.grids, ThinLoss.reps),
            (ThinLoss.quick_grids, ThinLoss.quick_reps),
        ):
            for side in (claim.of, claim.over):
                asked = [it.get("queries", (queries,))[0] for it in grids if offers(it, side)]
                assert any(many * reps >= 8000 for many in asked), (side, asked)


def offers(grid: dict[str, Sequence[object]], side: Params) -> bool:
    rest = {"by": ("tcp",), "burst": (1,), "way": ("pipes",), "nagle": (False,), "loss": (0.02,)}
    return all(value in (rest | grid).get(name, ()) for name, value in side.items())
