# SPDX-License-Identifier: MIT
"""Of which runs a claim is said, and what of them answers it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import catalogue, compare, sweep
from experiments.catalogue.download import Download
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.plots import cells, drawing
from experiments.report import rows
from experiments.report.data import Results
from experiments.report.matching import matches, spelled
from experiments.report.runs import Run
from experiments.statistics import LEAST_P95, NOTHING, Estimate, changed
from tests.experiments import synthetic
from topologies.parameter import Params, Value


def of(name: str, command: str, overrides: dict[str, Sequence[Value]], reps: int = 5) -> Results:
    """What the catalogue's experiment would leave, in made-up seconds that go by the way and the
    congestion control."""
    experiment = catalogue.find(name)
    runs = []
    for n, params in enumerate(sweep.configurations(experiment, overrides, quick=True)):
        for rep in range(reps):
            took = 1.0 / (params["pipes"] or 1) * (3.0 if params["cc"] == "bbr" else 1.0)  # type: ignore[operator]
            took *= 1 + rep / 1000
            measures = {it.name: took for it in experiment.metrics}
            runs.append(Run(f"{rep}-{n}", params, rep, rep, "ok", measures, took))
    meta = {"format": 1, "experiment": name, "command": ["tm3lab", "run", name, *command.split()]}
    return Results(Path("nowhere"), meta, tuple(runs), 0, experiment, True)


def run_rows(results: Results) -> dict[str, rows.Row]:
    return {it.claim.says: it for it in rows.rows(results) if it.verdict != "none"}


def test_a_link_that_no_sweep_has_answers_nothing() -> None:
    results = of("download", "--preset lte --loss 3%", {"preset": ("lte",), "loss": (0.03,)})
    assert results.strange == ("loss",)
    assert not run_rows(results)
    (row,) = [
        it
        for it in rows.rows(results)
        if it.claim.says.startswith("300 KB, 8 pipes instead")
        and it.claim.of["preset"] == "lte"
        and not it.claim.of["warm"]
    ]
    assert row.why == ("Not said of runs with loss 3\N{NO-BREAK SPACE}%.",)
    figure = next(it for it in results.figures() if it.name == "normalised")
    drawn = cells.scene(results, figure)
    points = [p for panel in drawn.panels for line in panel.lines for p in line.points]
    assert points and not any(p.published for p in points)


def test_what_is_run_beside_the_sweep_does_not_enter() -> None:
    both = of("download", "--cc cubic,bbr", {"cc": ("cubic", "bbr")})
    alone = of("download", "", {})
    assert (both.strange, alone.strange) == (("cc",), ())
    found, wanted = run_rows(both), run_rows(alone)
    assert found.keys() == wanted.keys() and len(wanted) > 10
    assert [it.got for it in found.values()] == [it.got for it in wanted.values()]


def test_a_value_that_the_preset_has_anyway_is_none_of_its_own() -> None:
    results = of("download", "--preset lossy --loss 1%", {"preset": ("lossy",), "loss": (0.01,)})
    assert results.strange == () and run_rows(results)


@pytest.mark.parametrize("name", ["link", "proxies"])
def test_what_emulates_and_whose_proxies_changes_nothing(name: str) -> None:
    """Unless runs of both stand side by side."""
    values = {"link": ("netem", "linkem"), "proxies": ("/one", "/other")}[name]
    assert run_rows(of("download", f"--{name} {values[0]}", {name: values[:1]}))
    assert not run_rows(of("download", f"--{name} {','.join(values)}", {name: values}))


def test_what_a_claim_names_may_be_any() -> None:
    results = of("loss-blocking", "--loss 1%", {"loss": (0.01,)})
    assert run_rows(results)


def test_a_command_that_named_nothing_is_of_its_own_time() -> None:
    """Defaults change: what a folder has that was not asked for was the default then."""
    results = of("download", "", {"conn_policy": ("drr",)})
    assert results.strange == () and run_rows(results)


@pytest.mark.parametrize("name", catalogue.names())
def test_a_claim_pools_no_more_than_it_says(name: str) -> None:
    """In the whole sweep what it does not name is one value, but for pages, what is a statistic
    over settings, and sizes or distributions that its sentence has together."""
    experiment = catalogue.find(name)
    together = {*experiment.units, "distribution"}
    every = sweep.configurations(experiment, {})
    for claim in experiment.claims:
        if claim.statistic not in ("median", "p95", "pooled"):
            continue
        named = {*spelled({**claim.of, **(claim.over or {})}), *together}
        if " and " in claim.says.partition(",")[0]:
            named.add("size")
        for side in filter(None, (claim.of, claim.over)):
            its = [it for it in every if matches(it, side)]
            for other in set().union(*its) - named:
                values = {repr(it[other]) for it in its} - {"None"}
                assert len(values) <= 1, f"{claim.says}: {other} is {values}"


class Messages(Experiment):
    name = "synthetic-messages"
    title = "Made up"
    question = "Is any late?"
    metrics = (Metric("late", "late messages", ""),)
    grids = ({"pipes": tuple(range(1, 10))},)
    claims = (
        Claim("x", "here", "none", {}, metric="late", statistic="worst", expect="same", than=0),
    )

    def measure(self, run: object) -> dict[str, float]:
        raise NotImplementedError


@pytest.mark.parametrize(("failed", "verdict"), [(0, "yes"), (1, "no"), (6, "no")])
def test_in_every_run_is_not_in_most(failed: int, verdict: str) -> None:
    runs = [
        Run(f"{n}", {"pipes": n % 9 + 1}, n, n, "failed" if n < failed else "ok", {"late": 0.0})
        for n in range(45)
    ]
    results = Results(Path("nowhere"), {}, tuple(runs), 0, Messages(), True)
    (row,) = rows.rows(results)
    assert (row.verdict, row.got.n, row.got.failed) == (verdict, 45, failed)
    assert row.kind == "worst of all runs"


def lossless(results: Results) -> Results:
    links = {"mile down": {"lost_packets": 0}}
    return replace(results, runs=tuple(replace(it, links=links) for it in results.runs))


@pytest.mark.parametrize(
    ("name", "repeats"), [("paths-objects", False), ("download", True), ("smt-two-1", False)]
)
def test_runs_that_draw_their_work_are_no_repeats(name: str, repeats: bool) -> None:
    results = lossless(synthetic.made_up(catalogue.find(name)))
    assert {it.basis.repeats for it in rows.rows(results) if it.got.n} == {repeats}


class Few(Download):
    figures = (Figure("time", "Time", "against"), Figure("all", "All", "cdf", listed="times_s"))


@pytest.mark.parametrize(
    ("reps", "told"),
    [
        (5, "Bars are 95\N{NO-BREAK SPACE}% intervals."),
        (2, "Bars are the range of fewer than 5 runs."),
    ],
)
def test_a_caption_calls_a_range_no_interval(reps: int, told: str) -> None:
    results = synthetic.made_up(Few(), reps)
    assert told in drawing.caption(results, Few.figures[0])
    alike = drawing.caption(lossless(results), Few.figures[0])
    assert "of repeats of one session" in alike
    assert "of one that failed there are none" in drawing.caption(results, Few.figures[1])


def test_what_may_be_below_zero_is_compared_by_its_difference() -> None:
    class Signed(Experiment):
        name = "synthetic-signed"
        title = "Made up"
        question = "How much more?"
        metrics = (Metric("excess", "excess", "s", matters_by=0.001),)
        grids = ({"pipes": (1, 8)},)

        def measure(self, run: object) -> dict[str, float]:
            raise NotImplementedError

    def side(excess: float) -> Results:
        runs = tuple(Run(f"{n}", PIPES, n, n, "ok", {"excess": excess}) for n in range(6))
        return Results(Path("nowhere"), {}, runs, 0, Signed(), True)

    PIPES: Params = {"pipes": 8}
    made = compare.of(side(-0.030), side(0.030))
    (pair,) = made.pairs[made.a.main]
    assert (round(pair.change.median, 3), pair.says) == (0.06, "larger")
    assert "B less A" in str(made)


def test_two_percentiles_of_few_runs_say_nothing_of_each_other() -> None:
    few = replace(NOTHING, n=10, median=1.0, low=0.9, high=1.1, least=LEAST_P95)
    got: Estimate = changed(few, few, "ratio")
    assert not got.enough
