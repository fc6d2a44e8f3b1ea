# SPDX-License-Identifier: MIT
"""Plots of made-up folders: every kind, with empty and failed cells; small, and alike in looks."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.catalogue import find
from experiments.catalogue.paths_split import QUICK_STEPS
from experiments.model import Experiment, Figure
from experiments.plots import drawing, looks, series, svg
from experiments.plots.cells import scene
from experiments.report.data import Results
from tests.experiments import synthetic
from tests.experiments.drawn import words_of
from tests.experiments.synthetic import made_up
from topologies.parameter import Params

LIMIT = 150_000  # bytes of a plot that is to be committed


def some_fail(params: Params, rep: int) -> bool:
    if params["preset"] == "lossy" and params["pipes"] == 2:
        return True
    return params["preset"] == "wired" and params["pipes"] == 4 and rep < 2


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = synthetic.make(tmp_path_factory.mktemp("plots") / "A", fails=some_fail)
    return synthetic.loaded(folder)


@pytest.mark.parametrize("figure", synthetic.Download.figures, ids=lambda it: it.kind)
def test_every_kind_is_drawn(results: Results, figure: Figure, tmp_path: Path) -> None:
    path = drawing.draw_one(results, figure, tmp_path)
    assert path is not None
    assert path.stat().st_size < LIMIT
    png = path.with_suffix(".png").read_bytes()
    assert png.startswith(b"\x89PNG")
    told = words_of(path)
    assert figure.title in told
    lines = " ".join(told)  # a label may take two
    text = path.read_text()
    assert "<metadata" not in text and "<image" not in text
    assert not re.search(r"(href|url)\W+http", text)
    if figure.kind != "series":
        assert "wired" in told and "lossy" in told
    if figure.kind == "series":
        assert "time [s]" in told and "window [segments]" in lines
    elif figure.kind in ("against", "cdf"):
        assert "completion time [s]" in lines
    else:
        assert "completion time / that of 1 pipe" in lines


def test_plots_of_figures_that_are_called_otherwise_now_are_gone(tmp_path: Path) -> None:
    folder = synthetic.make(tmp_path / "A", synthetic.Plain(), 2)
    (folder / "plots").mkdir()
    for name in ("old.svg", "old.png", "pipes.svg", "by-hand.txt"):
        (folder / "plots" / name).write_text("")
    drawing.draw_all(synthetic.loaded(folder, synthetic.Plain()))
    left = {path.name for path in (folder / "plots").iterdir()}
    assert left == {"pipes.svg", "pipes.png", "by-hand.txt"}
    assert (folder / "plots" / "pipes.svg").stat().st_size > 1000


def test_failures_are_told_in_the_plot(results: Results, tmp_path: Path) -> None:
    path = drawing.draw_one(results, results.figures()[0], tmp_path)
    assert path
    told = words_of(path)
    assert "✗ 10/10 failed" in told, "no median: over half of the runs failed"
    assert "2/10 failed" in told


def test_a_distribution_with_failures_ends_below_one(results: Results) -> None:
    figure = Figure("cdf", "Every run", "cdf", facet="preset", where={"size": 300_000})
    by = {
        (panel.label, line.label): line
        for panel in scene(results, figure).panels
        for line in panel.lines
    }
    four = [value for point in by["wired", "4 pipes"].points for value in point.values]
    assert len(four) == 10 and sum(value == float("inf") for value in four) == 2


def test_cells_that_were_not_run_are_hatched(results: Results, tmp_path: Path) -> None:
    kept = [it for it in results.runs if (it.params["pipes"], it.params["size"]) != (8, 50_000)]
    part = replace(results, runs=tuple(kept))
    path = drawing.draw_one(part, part.figures()[3], tmp_path)
    assert path
    told = words_of(path)
    assert told.count("\N{EN DASH}") == 2, "one in each panel"
    assert told.count("✗ 10/10") == 2, "all runs of two pipes on lossy failed"
    assert "pattern" in path.read_text()


def test_nothing_to_draw(tmp_path: Path) -> None:
    folder = synthetic.make(tmp_path / "A", reps=2, fails=lambda params, rep: True)
    results = synthetic.loaded(folder)
    assert drawing.draw_all(results) == []
    good = synthetic.loaded(synthetic.make(tmp_path / "B", reps=1))
    nothing = Figure("x", "Nothing", "against", where={"preset": "satellite"})
    assert drawing.draw_one(good, nothing, tmp_path) is None
    direct = Figure("y", "No pipes, no statistics", "series", where={"way": "direct"})
    assert drawing.draw_one(good, direct, tmp_path) is None


def test_baselines_stand_in_each_panel(results: Results) -> None:
    by_pipes = scene(results, results.figures()[0])
    for panel in by_pipes.panels:
        levels = {line.label for line in panel.lines if line.baseline}
        assert levels == {"direct, 50\N{NO-BREAK SPACE}KB", "direct, 300\N{NO-BREAK SPACE}KB"}
        assert [level for _, level in panel.floor] == [
            pytest.approx(0.054 + 0.04),
            pytest.approx(0.054 + 0.24),
        ]
    late = Figure("z", "Only late", "cdf", where={"binding": "late", "warm": False})
    lines = {line.label for panel in scene(results, late).panels for line in panel.lines}
    assert "direct" in lines, "what is said of pipes keeps no baseline out"
    facets = Figure("f", "Pipes side by side", "against", x="size", facet="pipes")
    for panel in scene(results, facets).panels:
        lines_of = {line.label: line for line in panel.lines}
        assert set(lines_of) == {"", "direct"}, panel.label
        assert all(point.got.n == 10 for point in lines_of["direct"].points), "not mixed"


def test_what_an_axis_does_not_apply_to_is_a_line_across(tmp_path: Path) -> None:
    """And the floor is a curve of what has a place on the axis, and a level of the others."""
    results = made_up(find("paths-split"))
    figure = results.figures()[0]
    drawn = scene(results, figure)
    assert {line.label for it in drawn.panels for line in it.lines if line.baseline} == {
        f"path policy {it}" for it in ("best-split", "minrtt", "ecf", "dems-f")
    }
    (curve,) = [line for it in drawn.panels for line in it.lines if not line.baseline]
    assert [point.x for point in curve.points] == list(QUICK_STEPS)
    floors = dict(drawn.panels[0].floor)
    assert set(floors) == {None, *QUICK_STEPS}
    assert min(floors[it] for it in QUICK_STEPS) >= floors[None]
    assert floors[0.0] > floors[None] < floors[1.0]
    told = drawing.caption(results, figure)
    assert "Lines across: no share of the file over Wi-Fi of their own" in told
    path = drawing.draw_one(results, figure, tmp_path)
    assert path
    for label in ("path policy split", "path policy best-split", "floor"):
        assert label in words_of(path)


def test_normalised_is_paired(results: Results) -> None:
    drawn = scene(results, results.figures()[1])
    wired = next(panel for panel in drawn.panels if panel.label == "wired")
    line = next(line for line in wired.lines if line.label.startswith("300"))
    by_x = {point.x: point.got for point in line.points}
    assert by_x[1].median == by_x[1].low == by_x[1].high == 1.0
    assert by_x[8].median == pytest.approx(0.75, abs=0.03)
    own = {"preset": "wired", "size": 300_000, "way": "pipes"}
    ratio = results.ratio({**own, "pipes": 8}, {**own, "pipes": 1}, results.main)
    assert by_x[8].median == ratio.median


def test_what_has_no_axis_is_not_mixed(results: Results) -> None:
    """A parameter that a figure forgets makes panels; too many values are said to be mixed."""
    forgot = Figure("f", "No word of last mile", "against", hue="size")
    assert [panel.label for panel in scene(results, forgot).panels] == ["wired", "lossy"]

    class Many(synthetic.Download):
        grids = ({"rtt_ms": [float(n) for n in range(10, 30)], "pipes": [1, 8]},)
        figures = (Figure("cdf", "All", "cdf"),)

    folder = synthetic.make(results.folder.parent / "many", Many(), 1)
    many = synthetic.loaded(folder, Many())
    drawn = scene(many, many.figures()[0])
    assert len(drawn.panels) == 1 and drawn.together == ("rtt_ms",)
    assert "Over 20 values of round trip." in drawing.caption(many, many.figures()[0])


def test_looks_are_the_same_everywhere_and_differ_in_grey(results: Results) -> None:
    seen: dict[str, looks.Look] = {}
    for figure in (it for it in results.figures() if it.kind in ("against", "cdf")):
        for panel in scene(results, figure).panels:
            for line in panel.lines:
                assert seen.setdefault(line.label, line.look) == line.look
    assert len({look.colour for look in looks.ORDERED}) == len(looks.ORDERED)
    assert len({(look.marker, str(look.dash)) for look in looks.ORDERED}) == len(looks.ORDERED)
    carried = looks.CARRIED.values()
    assert len({look.marker for look in carried}) == len(carried)
    assert (
        looks.of_values("preset", ["lossy"])["lossy"]
        == looks.of_values("preset", ["wired", "lossy"])["lossy"]
    )


def test_a_metric_on_the_x_axis(results: Results, tmp_path: Path) -> None:
    figure = Figure("m", "Time by goodput", "against", x="goodput_mbps", hue="pipes")
    assert drawing.draw_one(results, figure, tmp_path)
    assert "goodput [Mbit/s]" in words_of(tmp_path / "m.svg")


def test_default_figures_of_an_experiment_that_names_none(results: Results, tmp_path: Path) -> None:
    class Bare(synthetic.Download):
        figures = ()

    bare = replace(results, experiment=Bare())
    paths = [drawing.draw_one(bare, figure, tmp_path) for figure in bare.figures()]
    assert all(paths) and len(paths) == 2


def test_traces_from_statistics(tmp_path: Path) -> None:
    synthetic.statistics_of(tmp_path / "run", 2)
    (tmp_path / "run" / "lp.stats.jsonl").write_text('{"type": "start"}\nnot js')
    found = series.read(tmp_path / "run")
    assert [it.pipe for it in found] == ["pipe 0", "pipe 1"]
    assert found[0].mbps[0] == pytest.approx(9000 * 8e-6 / 0.1)
    assert found[1].mbps[0] == pytest.approx(9800 * 8e-6 / 0.1)
    assert found[0].windows[:3] == (11, 12, 13)
    assert series.read(tmp_path / "nowhere") == []
    # The client went when the pipes had been up for a second and a half.
    since = series.read(tmp_path / "run", 1001.45)[0]
    assert since.seconds[0] == pytest.approx(0.05)
    assert since.windows == found[0].windows[-len(since.windows) :]


def test_series_that_a_run_measured(tmp_path: Path) -> None:
    class Told(synthetic.Download):
        grids = ({"pipes": [4]},)
        figures = (Figure("s", "Application and wire", "series", y="app_mbps"),)

    folder = synthetic.make(tmp_path / "A", Told(), 1)
    text = (folder / "runs.jsonl").read_text()
    more = '"measures": {"app_mbps": [1.0, 9.0], "wire_mbps": [8.0, 8.5], "series_step_s": 0.5, '
    (folder / "runs.jsonl").write_text(text.replace('"measures": {', more))
    results = synthetic.loaded(folder, Told())
    assert series.listed(results.runs[0], "app_mbps") == {
        "app_mbps": ([0.5, 1.0], [1.0, 9.0]),
        "wire_mbps": ([0.5, 1.0], [8.0, 8.5]),
    }
    path = drawing.draw_one(results, results.figures()[0], tmp_path)
    assert path and {"app", "wire"} <= set(words_of(path))
    # Of an older run nobody knows how long the pipes were up when its client went.
    assert "time of the pipes [s]" in words_of(path)
    newer = replace(results, runs=tuple(replace(run, went=1000.5) for run in results.runs))
    path = drawing.draw_one(newer, newer.figures()[0], tmp_path)
    assert path and {"time [s]"} <= set(words_of(path)) - {"time of the pipes [s]"}
    assert "time of the pipes [s]" not in words_of(path)


def test_inline_has_names_of_its_own_and_the_pages_colours() -> None:
    text = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg xmlns="http://www.w3.org/2000/svg" '
        'width="9pt" viewBox="0 0 9 9"><defs><path id="m1" d="M 0.123456 1"/></defs>'
        f'<use href="#m1" id="gone" style="fill: {looks.INK}"/></svg>'
    )
    slim = svg.slim(text)
    assert 'id="m1"' in slim and "gone" not in slim and "0.12 1" in slim
    inside = svg.inline(slim, "a", "A &lt; B")
    assert inside.startswith("<svg") and 'id="a-m1"' in inside and 'href="#a-m1"' in inside
    assert "currentColor" in inside and looks.INK not in inside
    assert 'aria-label="A &lt; B"' in inside


def test_the_same_runs_the_same_plot(results: Results, tmp_path: Path) -> None:
    figure = results.figures()[2]
    first = drawing.draw_one(results, figure, tmp_path / "1")
    second = drawing.draw_one(results, figure, tmp_path / "2")
    assert first and second and first.read_bytes() == second.read_bytes()


def test_the_kinds_are_the_models() -> None:
    from typing import get_args, get_type_hints

    kinds = set(get_args(get_type_hints(Figure)["kind"]))
    assert kinds == set(drawing.KINDS) == set(drawing.HOW_TO_READ)
    assert issubclass(synthetic.Download, Experiment)
