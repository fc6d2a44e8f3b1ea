# SPDX-License-Identifier: MIT
"""What panels are called, and of series which are shown, how high, and what of them is not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue
from experiments.model import Figure
from experiments.plots import drawing, series, sheet
from experiments.plots.cells import scene, tell_apart
from experiments.report.data import Results
from experiments.report.runs import Run
from tests.experiments import synthetic
from tests.experiments.synthetic import made_up
from topologies.parameter import Parameter

SPACE = "\N{NO-BREAK SPACE}"


def test_as_few_names_as_tell_apart() -> None:
    names = ("rate", "readers", "round trip")
    keys = [(50, 1, 50), (50, 16, 50), (200, 255, 0)]
    assert tell_apart(keys, names) == ("readers",), "all else follows"
    assert tell_apart(keys, names, ("rate",)) == ("rate", "readers")
    assert tell_apart([*keys, (200, 16, 0)], names) == ("rate", "readers")
    assert tell_apart(keys[:1], names, ("rate",)) == ("rate",)
    assert tell_apart([], ()) == ()


def test_a_panel_is_named_by_what_tells_it_and_the_rest_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of slow-reader's 255 readers the rate is another, too: six lines of a title said all."""
    experiment = catalogue.find("slow-reader")
    results = made_up(experiment, 1, quick=False)
    shown = {it.label: it.along for it in scene(results, results.figures()[0]).panels}
    assert {"1 reader", "16 readers", "255 readers"} <= set(shown)
    assert f"rate 200{SPACE}Mbit/s" in shown["255 readers"]
    assert f"rate 50{SPACE}Mbit/s" in shown["1 reader"]
    titles: list[tuple[str, str]] = []

    def take(made: sheet.Sheet, folder: Path, of: str) -> Path:
        sheet.fit_labels(made)
        for axes in made.axes:
            (small,) = axes.texts
            above, below = (it.get_window_extent() for it in (axes._left_title, small))
            assert axes.get_window_extent().y1 < below.y0 < below.y1 < above.y0, "over another"
            titles.append((axes._left_title.get_text(), " ".join(small.get_text().split())))
        return folder / of

    monkeypatch.setattr(sheet, "save", take)
    assert drawing.draw_one(results, results.figures()[0], tmp_path)
    assert dict(titles) == {label: " ".join(along.split()) for label, along in shown.items()}


def test_what_goes_along_x_makes_no_panels(tmp_path: Path) -> None:
    """The queue's time follows the rate: two panels had a point each. And x is the link's rate,
    although a goodput is called so, too."""
    results = made_up(catalogue.find("radio-delay"), 1, quick=False)
    (figure,) = results.figures()
    (panel,) = scene(results, figure).panels
    assert sum(len(line.points) for line in panel.lines) == 2
    drawing.draw_one(results, figure, tmp_path)
    words = (tmp_path / "firmware.svg").read_text()
    assert "uplink rate [Mbit/s]" in words and "goodput" not in words


def test_a_value_that_is_left_to_the_preset_is_a_panels_name() -> None:
    """Of two panels by rate one had no name at all."""

    class Rates(synthetic.Download):
        grids = ({"rtt_ms": [None, 30.0], "pipes": [1, 8]}, {"way": ["direct"], "rtt_ms": [30.0]})
        figures = (Figure("f", "By pipes", "against", facet="rtt_ms"),)

    results = made_up_of(Rates())
    labels = [it.label for it in scene(results, Rates.figures[0]).panels]
    assert labels == ["round trip of the preset", f"round trip 30{SPACE}ms"]


def test_a_panel_that_others_names_do_not_apply_to_is_called_by_what_goes_with_it() -> None:
    """Of three panels by the path of a plain GET that of all paths had no name."""

    class Ranges(synthetic.Download):
        parameters = (
            Parameter("fetch", "ranges", "text", "how", ("get", "ranges")),
            Parameter("path", 1, "whole", "of a GET", needs=(("fetch", "get"),)),
        )
        grids = (
            {"way": ["direct"], "fetch": ["get"], "path": [1, 2]},
            {"way": ["direct"], "fetch": ["ranges"], "path": [None]},
        )
        figures = (Figure("f", "Times", "cdf"),)

    results = made_up_of(Ranges())
    panels = [(it.label, it.along) for it in scene(results, Ranges.figures[0]).panels]
    assert panels == [("path 1", "fetch get"), ("path 2", "fetch get"), ("fetch ranges", "")]


@pytest.mark.parametrize("way", ["direct", "pipes"])
def test_a_series_at_a_constant_rate_is_called_so(way: str) -> None:
    class Traces(synthetic.Download):
        grids = ({"way": [way], "trace_up": [None, "synthetic-lte"]},)
        figures = (Figure("s", "Series", "series", y="up_mbps"),)

    results = made_up_of(Traces(), up_mbps=[1.0, 2.0])
    shown = series._chosen(results, scene(results, Traces.figures[0]))
    assert [it.label for it in shown] == ["constant rate", "trace up synthetic-lte"]


def made_up_of(experiment: synthetic.Download, **measures: Any) -> Results:
    """A run of each configuration, which measured that."""
    runs = [
        Run(str(k), params, 1, 0, "ok", {"completion_s": 1.0, **measures}, 1.0)
        for k, params in enumerate(synthetic.configurations(experiment.grids))
    ]
    meta = {"format": 1, "experiment": experiment.name}
    return Results(Path("nowhere"), meta, tuple(runs), 0, experiment, True)


class Many(synthetic.Download):
    grids = ({"size": [n * 1000 for n in range(1, 9)], "preset": ["lossy"]},)
    figures = (Figure("s", "Series", "series", y="down_mbps"),)


def test_series_are_named_by_what_differs_among_them() -> None:
    """And not by what differs elsewhere in the folder."""
    results = made_up_of(Many(), down_mbps=[1.0, 2.0])
    elsewhere = replace(results.runs[0], params={**results.runs[0].params, "preset": "wired"})
    both = replace(results, runs=(*results.runs, elsewhere))
    figure = replace(Many.figures[0], where={"preset": "lossy"})
    shown = series._chosen(both, scene(both, figure))
    assert [it.label for it in shown][:2] == [f"1{SPACE}KB", f"2{SPACE}KB"]
    assert not any(it.along for it in shown)


def test_a_way_is_named_once() -> None:
    class Ways(synthetic.Download):
        grids = ({"way": ["direct"]}, {"pipes": [1, 8]})
        figures = Many.figures

    results = made_up_of(Ways(), down_mbps=[1.0, 2.0])
    shown = series._chosen(results, scene(results, Many.figures[0]))
    assert [(it.label, it.along) for it in shown] == [
        ("direct", ""),
        ("1 pipe", ""),
        ("8 pipes", ""),
    ]


def test_how_many_series_are_not_shown_is_said() -> None:
    results = made_up_of(Many(), down_mbps=[1.0, 2.0])
    assert len(series._chosen(results, scene(results, Many.figures[0]))) == series.PANELS
    said = f"The first {series.PANELS} of 8 configurations."
    assert said in drawing.caption(results, Many.figures[0])
    few = replace(results, runs=results.runs[: series.PANELS])
    assert "configurations" not in drawing.caption(few, Many.figures[0])


@pytest.mark.parametrize(("peak", "cut"), [(1000.0, True), (90.0, False)])
def test_a_peak_does_not_press_all_else_flat(
    peak: float, cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst of what a pipe held back, at once, in one of 120 steps."""
    results = made_up_of(Many(), down_mbps=[48.0] * 120)
    first, *others = results.runs
    high = replace(first, measures={**first.measures, "down_mbps": [48.0] * 90 + [peak] + [48.0]})
    results = replace(results, runs=(high, *others))
    seen: list[tuple[float, list[str]]] = []

    def take(made: sheet.Sheet, folder: Path, of: str) -> Path:
        for axes in made.axes:
            seen.append((axes.get_ylim()[1], [it.get_text() for it in axes.texts]))
        return folder / of

    monkeypatch.setattr(sheet, "save", take)
    assert drawing.draw_one(results, Many.figures[0], tmp_path)
    tops = {top for top, _ in seen}
    assert len(tops) == 1 and (tops.pop() < 100) == (cut or peak < 100)
    arrow = f"\N{UPWARDS ARROW}{SPACE}1"
    assert [any(it.startswith(arrow) for it in texts) for _, texts in seen] == [cut] + [False] * 5
