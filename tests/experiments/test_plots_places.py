# SPDX-License-Identifier: MIT
"""Where marks stand along x: those of one value together, and apart from those of the next."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from experiments.model import Figure, Grid
from experiments.plots import drawing, sheet
from experiments.plots.cells import in_order
from experiments.plots.looks import MUTED
from tests.experiments import synthetic
from topologies.parameter import Parameter, Value

SIZES = (50_000, 100_000, 200_000, 300_000, 1_000_000)
# A single number, two words, numbers near to each other and far apart, numbers on a logarithm.
ALONG: dict[str, tuple[Value, ...]] = {
    "pipes": (4,),
    "binding": ("late", "early"),
    "rtt_ms": (50.0, 51.0, 90.0),
    "wan_rtt_ms": (1.0, 2.0, 32.0),
}


def axes_of(path: Path, x: str, grid: Grid, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Axes:
    """Of a figure of lines along x, one for each size."""

    class Some(synthetic.Download):
        grids = (grid,)
        figures = (Figure("f", "Some", "against", x=x, hue="size", **more),)

    seen: list[Axes] = []

    def take(made: sheet.Sheet, folder: Path, of: str) -> Path:
        made.draw_without_rendering()
        seen.extend(made.axes)
        return folder / of

    monkeypatch.setattr(sheet, "save", take)
    results = synthetic.loaded(synthetic.make(path / "A", Some(), 3), Some())
    assert drawing.draw_one(results, results.figures()[0], path)
    (axes,) = seen
    return axes


def marks(path: Path, x: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Axes, list[list[float]]]:
    """The axes of a figure of lines for SIZES, and where their marks are."""
    axes = axes_of(path, x, {"size": SIZES, x: ALONG[x]}, monkeypatch)
    lines = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == len(ALONG[x])]
    return axes, [sorted(float(at) for at in line) for line in lines]


@pytest.mark.parametrize("places", [1, 3])
def test_a_floor_is_a_line(places: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one place, too."""
    grid: Grid = {"size": SIZES[:1], "rtt_ms": ALONG["rtt_ms"][:places]}
    axes = axes_of(tmp_path, "rtt_ms", grid, monkeypatch, floor="floor_s")
    (line,) = [line for line in axes.lines if line.get_color() == MUTED]
    assert min(line.get_xdata()) < max(line.get_xdata())


@pytest.mark.parametrize("x", ALONG)
def test_marks_of_one_place_stand_together(
    x: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes, lines = marks(tmp_path, x, monkeypatch)
    assert len(lines) == len(SIZES)
    pixels = [
        sorted(axes.transData.transform((line[k], 1.0))[0] for line in lines)
        for k in range(len(ALONG[x]))
    ]
    box = axes.get_window_extent()
    for group in pixels:
        assert all(a < b for a, b in pairwise(group)), "side by side"
        assert group[-1] - group[0] < 0.45 * box.width
    for a, b in pairwise(pixels):
        wide = max(a[-1] - a[0], b[-1] - b[0])
        assert b[0] - a[-1] > wide, "nearer to each other than to the next value's"
    if x == "pipes":
        middle = sum(pixels[0]) / len(pixels[0])
        assert middle == pytest.approx((box.x0 + box.x1) / 2, abs=1), "one value, in the middle"


def drawn(experiment: synthetic.Download, path: Path, patch: pytest.MonkeyPatch) -> list[Axes]:
    """The axes of its first figure."""
    seen: list[Axes] = []
    patch.setattr(sheet, "save", lambda made, folder, of: seen.extend(made.axes) or folder / of)
    results = synthetic.loaded(synthetic.make(path / "A", experiment, 3), experiment)
    assert drawing.draw_one(results, results.figures()[0], path)
    return seen


@pytest.mark.parametrize("rates", [(5.0, 10.0, 20.0), (5.0, 10.0, 80.0)])
def test_panels_that_lack_some_numbers_have_the_axis_of_all(
    rates: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two marks at the one rate of their panel stood at the ends of its axis."""

    class Apart(synthetic.Download):
        grids = tuple(
            {"wan_rtt_ms": [rate], "rtt_ms": [1000 / rate], "pipes": [1, 8]} for rate in rates
        )
        figures = (Figure("f", "F", "against", x="wan_rtt_ms", hue="pipes", facet="rtt_ms"),)

    panels = drawn(Apart(), tmp_path, monkeypatch)
    assert len(panels) == len(rates)
    assert len({axes.get_xlim() for axes in panels}) == 1
    for axes in panels:
        ends = axes.transAxes.inverted()
        at = [
            ends.transform(axes.transData.transform((line.get_xdata()[0], 1.0)))[0]
            for line in axes.lines
            if len(line.get_xdata()) == 1
        ]
        assert len(at) == 2
        assert 0 < max(at) - min(at) < 0.1


@pytest.mark.parametrize(("most", "factor"), [(1.05, 2.0), (10.0, 10.0)])
def test_a_small_difference_does_not_fill_a_logarithmic_axis(
    most: float, factor: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Alike(synthetic.Download):
        grids = ({"pipes": [1, 8]},)
        figures = (Figure("f", "F", "against", log=True),)

    monkeypatch.setattr(
        synthetic, "seconds", lambda params, seed: 0.4 * (most if params["pipes"] == 1 else 1)
    )
    (axes,) = drawn(Alike(), tmp_path, monkeypatch)
    bottom, top = axes.get_ylim()
    assert bottom < 0.4 < 0.4 * most < top
    assert factor <= top / bottom < 2 * factor


def test_names_have_lines_between_them_and_numbers_at_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes, _ = marks(tmp_path / "words", "binding", monkeypatch)
    assert list(axes.xaxis.get_minorticklocs()) == [0.5]
    assert axes.xaxis.get_minor_ticks()[0].gridline.get_visible()
    assert not axes.xaxis.get_major_ticks()[0].gridline.get_visible()
    axes, _ = marks(tmp_path / "numbers", "rtt_ms", monkeypatch)
    assert not len(axes.xaxis.get_minorticklocs())
    assert axes.xaxis.get_major_ticks()[0].gridline.get_visible()


def test_words_stand_as_their_parameter_lists_them(tmp_path: Path) -> None:
    class Own(synthetic.Download):
        parameters = (Parameter("takes", "none", "text", "much", ("none", "some", "all")),)

    results = synthetic.loaded(synthetic.make(tmp_path / "A", Own(), 1), Own())
    assert in_order(results, "takes", {"all", "none", "some"}) == ["none", "some", "all"]
    assert in_order(results, "takes", {"all", "none", "more"}) == ["all", "more", "none"]
    assert in_order(results, "binding", {"early", "late", None}) == [None, "late", "early"]
    assert in_order(results, "pipes", {8, 1, 4}) == [1, 4, 8]


@pytest.mark.parametrize(
    ("values", "columns", "turned"),
    [
        (["file", "objects", "short", "upload", "video"], 1, False),
        (["file", "objects", "short", "upload", "video"], 3, True),
        ([0, 500_000, 8_000_000], 1, True),
        ([0, 4_000_000, 8_000_000], 1, False),
    ],
)
def test_names_are_turned_where_they_would_touch(
    values: list[Value], columns: int, turned: bool
) -> None:
    axes = MatplotlibFigure().subplots(1, columns, squeeze=False)[0][0]
    where = sheet.x_axis(axes, "size", values)
    axes.plot([*where.values()], [1.0 for _ in where])
    assert (axes.get_xticklabels()[0].get_rotation() == 35) == turned


def test_measured_numbers_have_the_digits_that_mean_something() -> None:
    axes = MatplotlibFigure().subplots()
    goodput = synthetic.Download.metrics[2]
    sheet.x_axis(axes, goodput.name, [0.7261538, 0.9, 12.0], goodput)
    axes.plot([0.7, 12.0], [1, 2])
    axes.figure.canvas.draw()
    assert [it.get_text() for it in axes.get_xticklabels()] == ["0.726", "0.9", "12"]
