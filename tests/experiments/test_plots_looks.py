# SPDX-License-Identifier: MIT
"""What a plot looks like: nothing is cut off, one look for each way, published values marked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure as MatplotlibFigure

from experiments import catalogue
from experiments.model import Claim, Experiment, Figure
from experiments.plots import drawing, looks, series, sheet
from experiments.plots.cells import Line, has_published, scene
from experiments.plots.how_it_works import DOCS, NAME, PIPES
from experiments.report import words
from experiments.report.data import Results
from experiments.report.runs import Run
from tests.experiments import synthetic
from tests.experiments.drawn import words_of
from tests.experiments.synthetic import made_up
from topologies.parameter import Params

# Published of these are ratios alone, and what their plots show is in units; or the largest of all.
NO_MARK = (
    *("host-cc", "paths-rates", "paths-split", "paths-vary"),
    *("radio-qcut", "smt-single", "smt-two-5"),
)


def lines_of(results: Results) -> list[Line]:
    drawn = [scene(results, it) for it in results.figures() if it.kind not in ("series", "heat")]
    return [line for each in drawn for panel in each.panels for line in panel.lines]


@pytest.mark.parametrize("name", catalogue.names())
def test_no_text_is_cut_off(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def check(figure: sheet.Sheet, folder: Path, of: str) -> Path:
        sheet.fit_labels(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for axes in figure.axes:
            axes.get_tightbbox()  # puts labels where they are drawn
            for text in (axes.title, axes.xaxis.label, axes.yaxis.label, axes._left_title):
                box = text.get_window_extent()
                inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1
                assert not text.get_text() or (inside and box.y1 <= height + 1), text.get_text()
            high = axes.yaxis.label.get_window_extent().height
            assert high <= axes.get_window_extent().height, axes.get_ylabel()
        seen.append(of)
        return folder / of

    monkeypatch.setattr(sheet, "save", check)
    results = made_up(catalogue.find(name), 1)
    for figure in (it for it in results.figures() if it.kind != "series"):
        drawing.draw_one(results, figure, tmp_path)
    assert seen


@pytest.mark.parametrize("name", catalogue.names())
def test_the_line_says_what_carried(name: str) -> None:
    """Pipes are solid and nothing else is: 2 MB over pipes and direct were one dotted green."""
    results = made_up(catalogue.find(name), 1)
    for line in lines_of(results):
        for point in line.points:
            for it in point.of:
                carried = words.carried(it.params)
                assert line.look.dash == looks.dash_of(carried), f"{line.label}: {carried}"
                without = it.params.get("way", "pipes") != "pipes"
                assert (line.look.dash != "-") == without, line.label


@pytest.mark.parametrize("joined", [True, False])
def test_only_what_lies_between_two_values_is_joined(
    joined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distributions of a table have numbers, and nothing is between two of them."""
    seen: set[str] = set()

    def look(figure: sheet.Sheet, folder: Path, of: str) -> Path:
        lines = [line for axes in figure.axes for line in axes.lines]
        seen.update(str(it.get_linestyle()) for it in lines if len(it.get_xdata()) > 2)
        return folder / of

    monkeypatch.setattr(sheet, "save", look)
    results = made_up(catalogue.find("smt-two-1"), 1)
    figure = results.figures()[1]
    assert not figure.joined
    drawing.draw_one(results, replace(figure, joined=joined), tmp_path)
    assert len(seen) == 1 and (seen == {"None"}) == (not joined)


def test_late_binding_looks_alike_in_every_plot() -> None:
    """Whatever else a figure has beside it."""
    seen: dict[str, set[str]] = {"late": set(), "early": set()}
    for name in ("object", "object-size", "sender-blocking", "page-busy", "reordering", "video"):
        for line in lines_of(made_up(catalogue.find(name), 1)):
            for binding, colours in seen.items():
                plain = line.label.endswith(f"{binding} binding")
                if plain or line.label == f"{binding} binding, pipe policy soonest":
                    colours.add(line.look.colour)
    assert seen == {"late": {looks.BLUE}, "early": {looks.VERMILION}}


@pytest.mark.parametrize(
    ("values", "named"), [([f"attack-{n}" for n in range(13)], 13), (list(range(1, 40, 3)), 7)]
)
def test_every_word_on_an_axis_is_named(values: list[str] | list[int], named: int) -> None:
    """Of numbers some will do; they stand in a row."""
    axes = MatplotlibFigure().subplots()
    sheet.x_axis(axes, "attack", values)
    axes.figure.canvas.draw()
    assert sum(bool(it.get_text()) for it in axes.get_xticklabels()) == named


def test_a_line_without_a_name_gets_one_beside_others(tmp_path: Path) -> None:
    results = made_up(catalogue.find("walkthrough"), 2)
    path = drawing.draw_one(results, results.figures()[0], tmp_path)
    assert path and {"pipes", "direct"} <= set(words_of(path))


def test_a_legend_names_no_line_that_is_not_there(tmp_path: Path) -> None:
    """Of loss-blocking's direct connections nobody can tell whose loss they wait for."""
    results = made_up(catalogue.find("loss-blocking"), 2)
    runs = tuple(
        replace(run, measures={} if run.params["way"] == "direct" else run.measures)
        for run in results.runs
    )
    bare = replace(results, runs=runs)
    path = drawing.draw_one(bare, bare.figures()[0], tmp_path)
    assert path and not [text for text in words_of(path) if text.startswith("direct")]


def test_sizes_and_small_numbers_are_readable() -> None:
    assert words.measured_size(773_773) == "774\N{NO-BREAK SPACE}KB"
    assert words.number(-4e-8) == words.number(4e-8) == "0"
    assert words.number(-0.25) == "-0.250"
    assert words.value("beside", 500_000) == "500\N{NO-BREAK SPACE}KB"
    assert words.size(64 << 10) == "64\N{NO-BREAK SPACE}KiB"
    assert words.size(5 << 20) == "5\N{NO-BREAK SPACE}MiB"
    assert words.size(128_000) == "128\N{NO-BREAK SPACE}KB"  # 125 KiB
    assert words.size(1460) == "1.46\N{NO-BREAK SPACE}KB"
    assert words.value("beside", "3mbps") == "3mbps"
    assert words.name("beside", 500_000) == "download beside it"


def test_a_divisor_is_named_by_what_it_is() -> None:
    assert sheet.divisor({"pipes": 1}) == "1 pipe"
    assert sheet.divisor({"transport": "tcp"}) == "transport tcp"
    assert sheet.divisor({"way": "direct"}) == "direct"


def test_one_run_is_no_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = Figure("c", "Every run", "cdf", where={"size": 300_000})
    steps: list[int] = []

    def count(made: sheet.Sheet, folder: Path, of: str) -> Path:
        drawn = [line for axes in made.axes for line in axes.lines]
        steps.append(sum(line.get_drawstyle() == "steps-post" for line in drawn))
        return folder / of

    monkeypatch.setattr(sheet, "save", count)
    for n in (1, 2):
        folder = synthetic.make(tmp_path / str(n), synthetic.Download(), n)
        drawing.draw_one(synthetic.loaded(folder), figure, tmp_path)
    assert steps[0] == 0 < steps[1]


def timed(seconds: int, **series_of: list[float]) -> Results:
    """Throughput of 1 and of 4 pipes: the second's series is longer."""
    experiment = catalogue.find("throughput")
    base = made_up(experiment, 1)
    runs = tuple(
        Run(
            str(k),
            {**base.runs[0].params, "pipes": pipes, "seconds": seconds},
            1,
            0,
            "ok",
            {"series_step_s": 1.0, "series_down_mbps": values},
        )
        for k, (pipes, values) in enumerate(zip((1, 4), series_of.values(), strict=True))
    )
    return replace(base, runs=runs)


def test_a_series_ends_with_its_run() -> None:
    """iperf3's server tells of the last milliseconds, in which a queue ran dry, as of a second."""
    results = timed(5, first=[9.0] * 5 + [16.0], second=[8.0] * 6)
    seconds, values = series.listed(results.runs[0], "series_down_mbps")["series_down_mbps"]
    assert (max(seconds), max(values)) == (5.0, 9.0)


def test_seconds_stand_below_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = timed(9, first=[9.0, 9.0, 9.0], second=[2.0] * 6)
    spans: list[Any] = []

    def check(figure: sheet.Sheet, folder: Path, of: str) -> Path:
        spans.extend((axes.get_xlim(), axes.get_ylim()) for axes in figure.axes)
        return folder / of

    monkeypatch.setattr(sheet, "save", check)
    figure = Figure("s", "Series", "series", y="series_down_mbps")
    assert drawing.draw_one(results, figure, tmp_path)
    assert len(spans) == 2 and spans[0] == spans[1]
    assert spans[0][0] == (0, 6) and spans[0][1][1] >= 9


@pytest.mark.parametrize("name", catalogue.names())
def test_published_values_are_marked(name: str) -> None:
    experiment = catalogue.find(name)
    published = any(claim.paper is not None for claim in experiment.claims)
    results = made_up(experiment, 1)
    marked = any(
        has_published(scene(results, it).panels)
        for it in results.figures()
        if it.kind not in ("series", "heat")
    )
    assert marked == (published and name not in NO_MARK)


EIGHT: Params = {"way": "pipes", "pipes": 8, "size": 300_000, "preset": "lossy"}
ONE: Params = {"way": "pipes", "pipes": 1, "size": 300_000, "preset": "lossy"}


class Published(synthetic.Download):
    """One value of just what a point shows, others of more or of something else."""

    claims = (
        Claim("x", "Fig. 1", "this", of=EIGHT, over=ONE, paper=0.5, paper_sides=(1.5, 3.0)),
        Claim("x", "Fig. 1", "both sizes", of={"pipes": 8, "preset": "lossy"}, paper=7.0),
        Claim("x", "Fig. 1", "another's", of=EIGHT, over={"way": "direct"}, paper=0.25),
        Claim("x", "Fig. 1", "p95", of=EIGHT, statistic="p95", paper=9.0),
    )


def test_a_mark_stands_at_its_own_point(tmp_path: Path) -> None:
    experiment: Experiment = Published()
    results = synthetic.loaded(synthetic.make(tmp_path / "A", experiment, 3), experiment)
    by_name = {it.name: it for it in results.figures()}
    found = {
        name: {
            (panel.label, line.label, point.x): point.published
            for panel in scene(results, by_name[name]).panels
            for line in panel.lines
            for point in line.points
            if point.published
        }
        for name in ("pipes", "normalised")
    }
    size = "300\N{NO-BREAK SPACE}KB"
    assert found["pipes"] == {("lossy", size, 8): (1.5,), ("lossy", size, 1): (3.0,)}
    assert found["normalised"] == {("lossy", size, 8): (0.5,)}
    path = drawing.draw_one(results, by_name["normalised"], tmp_path)
    assert path and "published" in words_of(path)
    assert "Diamond: published." in drawing.caption(results, by_name["normalised"])
    assert "Diamond" not in drawing.caption(results, by_name["map"])


def test_how_it_works_shows_intervals() -> None:
    """A bar of each kind of blocking has one."""
    text = (DOCS / f"{NAME}.svg").read_text()
    assert text.count("stroke-width: 1.2") >= 4 + 3 + 2 * len(PIPES)
