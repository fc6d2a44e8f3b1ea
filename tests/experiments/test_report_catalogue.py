# SPDX-License-Identifier: MIT
"""Every experiment of the catalogue has a report: its figures show something, its claims answer."""

import pytest

from experiments import catalogue, paper, sweep
from experiments.plots import drawing
from experiments.plots.cells import scene
from experiments.report import conclusions, rows
from experiments.report.data import Results
from experiments.report.runs import Run
from tests.experiments.synthetic import made_up


@pytest.mark.parametrize("name", catalogue.names())
def test_every_experiment_has_a_report(name: str) -> None:
    results = made_up(catalogue.find(name))
    for figure in results.figures():
        shown = scene(results, figure)
        assert shown.panels, f"{figure.name}: `where` chooses no run"
        assert drawing.caption(results, figure)
        if figure.kind == "series":
            continue
        for panel in shown.panels:
            for line in panel.lines:
                counts = [point.got.n for point in line.points]
                assert any(counts), f"{figure.name}, {panel.label}, {line.label}: no value"
    found = rows.rows(results)
    assert len(found) == len(results.experiment.claims)
    told = conclusions.sentences(results)
    assert told[0].endswith("none failed.")
    assert len(told) > 1, "nothing is compared with anything"


def test_draws_of_several_parameters_are_taken_together() -> None:
    """Of each quick configuration of paths-vary there is one run for each pair of traces: delays
    and rates are told apart, and neither is split by the traces of the other."""
    told = " ".join(conclusions.sentences(made_up(catalogue.find("paths-vary"), 1)))
    assert "varies delay" in told and "varies rate" in told
    assert "taken over every delay trace, delay trace of the second, trace down" in told
    assert "synthetic-" not in told


@pytest.mark.parametrize("name", catalogue.names())
def test_claims_choose_runs_of_the_whole_sweep(name: str) -> None:
    """A claim whose runs are in no grid could never be answered."""
    experiment = catalogue.find(name)
    every = sweep.configurations(experiment, {}) + sweep.configurations(experiment, {}, quick=True)
    whole = made_up(experiment, 0)
    one = tuple(Run(str(k), params, 1, 0, "ok", {}) for k, params in enumerate(every))
    results = Results(whole.folder, whole.meta, one, 0, experiment, True)
    for claim in experiment.claims:
        for side in (claim.of, claim.over):
            assert side is None or results.select(side), f"{claim.where}: {claim.says}: {side}"


def test_every_published_row_is_claimed() -> None:
    """Else a report would always name it as missing."""
    claimed = {claim.row for it in catalogue.experiments() for claim in it.claims}
    assert {it.row for it in paper.ROWS} <= claimed
