# SPDX-License-Identifier: MIT
"""A metric against a parameter: medians joined by lines, with their 95 % intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Sheet

from experiments.plots import sheet
from experiments.plots.cells import Line, Panel, Point, Scene, has_published, in_order, on_axis
from experiments.plots.looks import INK, MUTED, Look
from experiments.report.data import Results
from topologies.parameter import Value

# By how much of the axis's width two lines are apart: those along numbers, marks at one place.
APART = {True: 0.012, False: 0.05}
OF_A_PLACE = 0.4  # of the way to the next place: what the lines of one place take at most
MARGIN = 0.05  # of the axis's width, at either end
LEAST_SPAN = 2.0  # of a logarithmic axis: on less, a few percent look like a large difference


def draw(results: Results, scene: Scene) -> Sheet:
    figure = scene.figure
    with sheet.sheet(len(scene.panels), figure.title) as (made, groups):
        xs = _all_x(results, scene)
        for panel, [axes] in zip(scene.panels, groups, strict=True):
            _panel(results, axes, panel, scene, xs)
            if axes.get_subplotspec().is_first_col():
                axes.set_ylabel(sheet.label_of(scene.metric, figure.over))
        _y_axis(groups[0][0], scene)
        _failures(groups, scene, xs)
        floor = any(panel.floor for panel in scene.panels)
        names = entries(scene.panels)
        sheet.legend(made, names, "floor" if floor else "", has_published(scene.panels))
        return made


def entries(panels: Sequence[Panel]) -> list[tuple[str, Look]]:
    """Each name once, of lines that have something to show; levels last."""
    found = {
        line.label: (line.baseline, line.look)
        for it in panels
        for line in it.lines
        if any(point.got.n for point in line.points)
    }
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    return [(label, look) for label, (_, look) in ordered]


def _all_x(results: Results, scene: Scene) -> list[Value]:
    its = [line for panel in scene.panels for line in panel.lines if not line.baseline]
    return in_order(results, scene.figure.x, {point.x for line in its for point in line.points})


def _y_axis(axes: Axes, scene: Scene) -> None:
    if scene.figure.log:
        axes.set_yscale("log")
        bottom, top = axes.get_ylim()
        if top / bottom < LEAST_SPAN:
            middle, half = math.sqrt(bottom * top), math.sqrt(LEAST_SPAN)
            axes.set_ylim(middle / half, middle * half)
    else:
        bottom, top = axes.get_ylim()
        axes.set_ylim(min(0.0, bottom), top + 0.04 * top)
    sheet.plain_numbers(axes.yaxis)


def _panel(results: Results, axes: Axes, panel: Panel, scene: Scene, xs: Sequence[Value]) -> None:
    if panel.label:
        sheet.title(axes, panel.label, panel.along)
    metric = results.metric(scene.figure.x) if on_axis(results, scene.figure) else None
    where = sheet.x_axis(axes, scene.figure.x, xs, metric)
    along = [(where[x], level) for x, level in panel.floor if x in where]
    across = [level for x, level in panel.floor if x is None]  # of lines across
    if len(along) == 1:  # of one place there is no line
        across.append(along.pop()[1])
    for level in across:
        axes.axhline(level, color=MUTED, linewidth=1.1, zorder=1)
    if along:
        axes.plot(*zip(*along, strict=True), color=MUTED, linewidth=1.1, zorder=1)
    if scene.figure.over:
        axes.axhline(1.0, color=INK, linewidth=0.8, zorder=1)
    asides = _asides(axes, panel, where)
    _ends(axes, where, asides.values())
    for line in panel.lines:
        if not line.baseline:
            _line(axes, line, where, asides[line.label], scene.figure.joined)
    levels = [line for line in panel.lines if line.baseline]
    for k, line in enumerate(levels):
        _level(axes, line, 1.02 + 0.035 * k)


def _asides(axes: Axes, panel: Panel, where: Mapping[Value, float]) -> dict[str, float]:
    """By how much each line is moved aside, so that intervals do not hide one another: so little
    that the lines of one place stand together, and nearer to each other than to the next place."""
    its = [line.label for line in panel.lines if not line.baseline]
    at = _along(axes, where)
    to_next = min((b - a for a, b in pairwise(at)), default=1.0)
    along = len(at) > 1 and sheet.are_numbers([*where])
    width = at[-1] - at[0] if along else len(at)
    step = min(APART[along] * width, OF_A_PLACE * to_next / max(1, len(its) - 1))
    return {label: (k - (len(its) - 1) / 2) * step for k, label in enumerate(its)}


def _along(axes: Axes, where: Mapping[Value, float]) -> list[float]:
    """The places in order, such that equal distances look equal."""
    return sorted(math.log2(x) if axes.get_xscale() == "log" else x for x in where.values())


def _ends(axes: Axes, where: Mapping[Value, float], asides: Iterable[float]) -> None:
    """An axis of numbers has the same ends in each panel, also in one that lacks some of them."""
    at = _along(axes, where)
    if len(at) < 2 or not sheet.are_numbers([*where]):
        return
    beyond = MARGIN * (at[-1] - at[0]) + max((abs(it) for it in asides), default=0.0)
    ends = at[0] - beyond, at[-1] + beyond
    axes.set_xlim(*(2**end if axes.get_xscale() == "log" else end for end in ends))


def _moved(axes: Axes, x: float, aside: float) -> float:
    return x * 2**aside if axes.get_xscale() == "log" else x + aside


def _finite(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.got.n and math.isfinite(point.got.median)]


def _line(
    axes: Axes,
    line: Line,
    where: Mapping[Value, float],
    aside: float,
    numbers: bool,
) -> None:
    points = [point for point in _finite(line.points) if point.x in where]
    if not points:
        return
    xs = [_moved(axes, where[p.x], aside) for p in points]
    ys = [point.got.median for point in points]
    # Between words there is nothing: only numbers are joined.
    joined = numbers and sheet.are_numbers([*where])
    dash = line.look.dash if joined else "none"
    axes.plot(xs, ys, color=line.look.colour, linestyle=dash, marker=line.look.marker, zorder=3)
    for x, got in zip(xs, (point.got for point in points), strict=True):
        finite = math.isfinite(got.high)
        bar = [(x, got.low), (x, got.high if finite else 1e3 * got.median)]
        bars = LineCollection([bar], colors=line.look.colour, linewidths=1.5, alpha=0.75, zorder=2)
        # An interval without an end goes out of the picture; it must not stretch it.
        axes.add_collection(bars, autolim=finite)
    marks = [(x, it) for x, point in zip(xs, points, strict=True) for it in point.published]
    for x, value in marks:
        axes.plot(x, value, color=line.look.colour, zorder=4, **sheet.PUBLISHED)
    for value in line.published:  # of all points together: at the end of the line
        axes.axhline(value, color=line.look.colour, linewidth=0.8, alpha=0.6, zorder=1)
        axes.plot(xs[-1], value, color=line.look.colour, zorder=4, **sheet.PUBLISHED)


def _level(axes: Axes, line: Line, mark: float) -> None:
    """`mark`: where its marker stands, for print in grey, as a share of the width: beside the
    picture, as inside it would look like something that was measured there."""
    at = axes.get_yaxis_transform()
    for point in _finite(line.points):
        got, look = point.got, line.look
        axes.axhline(got.median, color=look.colour, linestyle=look.dash, linewidth=1.4, zorder=2)
        if look.marker:
            axes.plot(
                *(mark, got.median, look.marker),
                **{"color": look.colour, "transform": at, "clip_on": False, "zorder": 3},
            )
        for value in point.published:
            axes.plot(0.97, value, color=look.colour, zorder=4, transform=at, **sheet.PUBLISHED)
        if math.isfinite(got.high):
            axes.axhspan(got.low, got.high, color=look.colour, alpha=0.1, linewidth=0, zorder=0)


def _failures(groups: list[list[Axes]], scene: Scene, xs: Sequence[Value]) -> None:
    """Where over half of the runs failed there is no median: a cross at the top says so."""
    for [axes], panel in zip(groups, scene.panels, strict=True):
        where, _ = sheet.places(xs)
        asides = _asides(axes, panel, where)
        for k, line in enumerate(panel.lines):
            for point in line.points:
                got = point.got
                if not got.failed or line.baseline or point.x not in where:
                    continue
                lost = not math.isfinite(got.median)
                y = 0.94 - 0.07 * k if lost else got.median
                axes.annotate(
                    f"{'✗ ' if lost else ''}{got.failed}/{got.n} failed",
                    (_moved(axes, where[point.x], asides[line.label]), y),
                    xycoords=axes.get_xaxis_transform() if lost else "data",
                    xytext=(4, 0 if lost else 4 + 3 * k),
                    textcoords="offset points",
                    fontsize=7,
                    color=line.look.colour,
                    zorder=5,
                )
