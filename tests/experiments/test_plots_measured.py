# SPDX-License-Identifier: MIT
"""No plot draws a point that was not measured: each is a configuration of the summary's."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from experiments import catalogue
from experiments.model import Figure
from experiments.plots import cells, drawing
from experiments.plots.cells import Point, Scene, scene
from experiments.report import summary
from experiments.report.data import OF_PIPES
from experiments.report.matching import matches
from experiments.report.runs import Configuration
from tests.experiments import synthetic
from tests.experiments.synthetic import made_up

EVERY = [(name, quick) for name in catalogue.names() for quick in (True, False)]


def may_have_a_map(name: str) -> bool:
    """It has one, or leaves its figures to what was run."""
    figures = catalogue.find(name).figures
    return not figures or any(it.kind == "heat" for it in figures)


WITH_MAPS = [(name, quick) for name, quick in EVERY if may_have_a_map(name)]


def points_of(drawn: Scene) -> list[Point]:
    return [p for panel in drawn.panels for line in panel.lines for p in line.points]


def divisors(some: list[Configuration], it: Configuration, figure: Figure) -> list[Configuration]:
    """Of those that the figure is `over`: what differs from it in that, and in nothing else that
    applies."""
    over = dict(figure.over)
    if "way" in over:  # without pipes, their number is another
        over.setdefault("pipes", None)
    return [
        other
        for other in some
        if all(
            name in over
            or other.params.get(name) == value
            or (name in OF_PIPES and None in (other.params.get(name), value))
            for name, value in it.params.items()
        )
    ]


def by_seed(it: Configuration, name: str) -> dict[int, float]:
    return {run.seed: run.measures[name] for run in it.runs}


def expected(some: list[Configuration], point: Point, figure: Figure, name: str) -> list[float]:
    found = []
    for it in point.of:
        own = by_seed(it, name)
        if figure.over:
            others = divisors(some, it, figure)
            assert len(others) <= 1, f"{figure.name}: {len(others)} to divide {it.params} by"
            own = {
                seed: own[seed] / value
                for other in others
                for seed, value in by_seed(other, name).items()
            }
        found += own.values()
    return found


@pytest.mark.parametrize(("name", "quick"), EVERY)
def test_points_are_the_summarys(name: str, quick: bool) -> None:
    results = made_up(catalogue.find(name), 3, quick=quick)
    told = summary.configurations(results)
    known = {results.key(it["params"], results.varying): it["metrics"] for it in told}
    for figure in results.figures():
        if figure.kind in ("series", "heat"):
            continue
        drawn = scene(results, figure)
        over = [it for it in results.configurations if matches(it.params, figure.over)]
        for point in points_of(drawn):
            keys = [results.key(it.params, results.varying) for it in point.of]
            assert keys and all(key in known for key in keys), figure.name
            differ = [
                name
                for name in results.varying
                if len({repr(it.params.get(name)) for it in point.of}) > 1
            ]
            assert set(differ) <= set(drawn.together), f"{figure.name}: over {differ}, untold"
            metric = drawn.metric.name
            assert sorted(point.values) == pytest.approx(
                sorted(expected(over, point, figure, metric))
            ), f"{figure.name}: {[it.params for it in point.of]}"
            if len(keys) == 1 and not figure.over:
                assert point.got.median == pytest.approx(known[keys[0]][metric]["median"], 1e-5)


@pytest.mark.parametrize(("name", "quick"), WITH_MAPS)
def test_cells_of_maps_are_the_summarys(name: str, quick: bool) -> None:
    from experiments.plots.heat import _maps

    results = made_up(catalogue.find(name), 3, quick=quick)
    for figure in (it for it in results.figures() if it.kind == "heat"):
        drawn = scene(results, figure)
        medians = {median(by_seed(it, drawn.metric.name).values()) for it in results.configurations}
        for cell in (cell for each in _maps(results, drawn).values() for cell in each.values()):
            assert cell.n <= 3 and (figure.over or cell.median in medians)


def test_pipes_of_sctp_are_divided_by_as_many_of_tcp() -> None:
    """Not two by eight: eight are faster, and so the gain was in their number."""
    results = made_up(catalogue.find("sctp"), 1)
    figure = next(it for it in results.figures() if it.name == "gain")
    for point in points_of(scene(results, figure)):
        assert len(point.values) == len(point.of), "each page once"


def test_two_buffers_are_two_points() -> None:
    """4 pipes, early, least: the send buffer is the kernel's, or 2 MB."""
    results = made_up(catalogue.find("reordering"))
    figure = next(it for it in results.figures() if it.name == "waiting")
    panel = next(it for it in scene(results, figure).panels if "sender" in it.label)
    least = [it for it in panel.lines if "pipe policy least" in it.label]
    assert len(least) == 2
    assert all(point.got.n == 5 for line in least for point in line.points)
    assert {"2\N{NO-BREAK SPACE}MB" in line.label for line in least} == {True, False}


def test_pages_are_no_panels_of_a_distribution() -> None:
    """Of one page there may be one run, whose curve is no distribution."""
    results = made_up(catalogue.find("sctp"), 1)
    for figure in results.figures():
        assert figure.kind == "cdf"
        for point in points_of(scene(results, figure)):
            assert len(point.values) == 5
        assert "Over 5 values of page." in drawing.caption(results, figure)


def test_settings_are_not_taken_together_however_many(tmp_path: Path) -> None:
    class Many(synthetic.Download):
        grids = ({"rtt_ms": [float(n) for n in range(10, 22)], "pipes": [1, 8]},)
        figures = (Figure("time", "All", "against"),)

    results = synthetic.loaded(synthetic.make(tmp_path / "many", Many(), 1), Many())
    drawn = scene(results, results.figures()[0])
    assert len(drawn.panels) == 12 and not drawn.together


def test_what_nothing_is_paired_with_has_no_panel(tmp_path: Path) -> None:
    class Some(synthetic.Download):
        grids = (
            {"rtt_ms": (10.0, 20.0), "pipes": (8,)},
            {"rtt_ms": (10.0,), "pipes": (1,)},
        )
        figures = (Figure("time", "To one pipe", "normalised", over={"pipes": 1}),)

    results = synthetic.loaded(synthetic.make(tmp_path / "some", Some(), 3), Some())
    (panel,) = scene(results, results.figures()[0]).panels
    assert "10" in panel.label and "20" not in panel.label


def test_what_would_mix_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_up(catalogue.find("reordering"))
    figure = next(it for it in results.figures() if it.name == "waiting")
    monkeypatch.setattr(cells, "apart", lambda *_: ())
    with pytest.raises(cells.Mixed, match="waiting: one point of"):
        scene(results, figure)


def test_a_divisor_that_is_not_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_up(catalogue.find("sctp"), 1)
    figure = next(it for it in results.figures() if it.name == "gain")
    monkeypatch.setattr(cells, "like", lambda results, of, over: {"page": "site-02", **over})
    with pytest.raises(cells.Mixed, match="more than one configuration"):
        scene(results, replace(figure, over={"transport": "tcp"}))
