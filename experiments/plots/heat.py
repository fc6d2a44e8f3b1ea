# SPDX-License-Identifier: MIT
"""Two swept parameters as a map. The number stands in each cell; the colour is for the eye."""

import math
from dataclasses import replace

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure as Sheet
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from experiments.plots import sheet
from experiments.plots.cells import CARRIED, Scene, facet_label, in_order, measured
from experiments.plots.looks import INK, MUTED
from experiments.report import words
from experiments.report.data import Results
from experiments.report.runs import Configuration
from experiments.statistics import Drawn, Estimate, grouped
from topologies.parameter import Value

Cells = dict[tuple[Value, Value], Estimate]
RATIOS = (0.1, 0.2, 0.33, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
NEAR_ONE = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 1.8)  # where none is far from it
DARK_BELOW = 0.45  # luminance of a cell under which its number is white


def draw(results: Results, scene: Scene) -> Sheet:
    figure = scene.figure
    maps = _maps(results, scene)
    xs = in_order(results, figure.x, {x for cells in maps.values() for x, _ in cells})
    ys = in_order(results, figure.hue, {y for cells in maps.values() for _, y in cells})
    ratios = is_of_ratios(scene)
    shades = _shades(maps, ratios)
    height = max(1.8, 0.5 + 0.32 * len(ys))
    with sheet.sheet(len(maps), figure.title, height) as (made, groups):
        for (label, cells), [axes] in zip(maps.items(), groups, strict=True):
            sheet.title(axes, label)
            _map(axes, cells, xs, ys, shades, ratios)
            _names(axes, figure.x, figure.hue, xs, ys)
        bar = made.colorbar(shades, ax=[axes for [axes] in groups], shrink=0.9, aspect=25, pad=0.02)
        bar.set_label(sheet.label_of(scene.metric, figure.over), fontsize=8)
        if ratios:
            low, high = shades.get_clim()
            named = RATIOS if high >= 2 else NEAR_ONE
            bar.set_ticks([it for it in named if low <= it <= high])
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        bar.ax.minorticks_off()
        bar.solids.set_rasterized(False)
        return made


def is_of_ratios(scene: Scene) -> bool:
    """Whether 1 is no effect."""
    return bool(scene.figure.over) or scene.metric.is_ratio


def _coordinate(it: Configuration, name: str) -> Value:
    return words.carried(it.params) if name == "way" else it.params.get(name)


def _maps(results: Results, scene: Scene) -> dict[str, Cells]:
    """Panels as in other plots, but both axes are parameters and each cell a configuration."""
    figure = scene.figure
    shown = results.shown(figure.where)
    plain = [
        name
        for name in results.varying
        if name not in (figure.x, figure.hue, *CARRIED)
        and len({repr(it.params.get(name)) for it in shown}) > 1
    ]
    carried = {figure.x, figure.hue} & set(CARRIED)
    found: dict[str, dict[tuple[Value, Value], list[Drawn]]] = {}
    for it in shown:
        if figure.x == "pipes" and it.params.get("way", "pipes") != "pipes":
            continue
        names = [n for n in plain if n not in scene.together]
        label = facet_label(results, it.params, names if carried else ["pipes", *names])
        at = _coordinate(it, figure.x), _coordinate(it, figure.hue)
        values = measured(results, it, replace(figure, kind="heat"), scene.metric)
        found.setdefault(label, {}).setdefault(at, []).extend(values)
    return {
        label: {at: grouped(values) for at, values in cells.items()}
        for label, cells in found.items()
    }


def _shades(maps: dict[str, Cells], ratios: bool) -> matplotlib.cm.ScalarMappable:
    """Ratios diverge from 1, alike to both sides; other values run from low to high."""
    medians = [
        got.median
        for cells in maps.values()
        for got in cells.values()
        if got.n and math.isfinite(got.median)
    ]
    low, high = (min(medians), max(medians)) if medians else (0.0, 1.0)
    if ratios:
        reach = min(10.0, max(1.2, high, 1 / low if low > 0 else 10.0))
        return matplotlib.cm.ScalarMappable(LogNorm(1 / reach, reach), "RdBu_r")
    if low > 0 and high / low > 20:
        return matplotlib.cm.ScalarMappable(LogNorm(low, high), "YlGnBu")
    return matplotlib.cm.ScalarMappable(Normalize(min(low, 0.0), high or 1.0), "YlGnBu")


def _map(
    axes: Axes,
    cells: Cells,
    xs: list[Value],
    ys: list[Value],
    shades: matplotlib.cm.ScalarMappable,
    ratios: bool,
) -> None:
    """Empty where nothing was run; a cross where over half of the runs failed."""
    axes.grid(False)
    for (row, y), (column, x) in ((r, c) for r in enumerate(ys) for c in enumerate(xs)):
        got = cells.get((x, y))
        if got is None or not got.n:
            _cell(axes, column, row, "none", MUTED, "\N{EN DASH}")
        elif not math.isfinite(got.median):
            _cell(axes, column, row, "none", INK, f"✗ {got.failed}/{got.n}")
        else:
            colour = shades.to_rgba(max(got.median, 1e-12))
            light = float(np.dot(colour[:3], (0.3, 0.59, 0.11)))
            text = words.ratio(got.median) if ratios else words.number(got.median)
            if ratios and not (got.high < 1 or got.low > 1):
                text = f"({text})"
            _cell(axes, column, row, colour, "white" if light < DARK_BELOW else "#111111", text)
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(-0.5, len(ys) - 0.5)


def _cell(axes: Axes, column: int, row: int, face: object, ink: str, text: str) -> None:
    axes.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            facecolor=face,
            edgecolor=MUTED if face == "none" else "white",
            hatch="////" if face == "none" else None,
            linewidth=0 if face == "none" else 1,
            alpha=0.25 if face == "none" else 1,
        )
    )
    axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=ink)


def _names(axes: Axes, x: str, y: str, xs: list[Value], ys: list[Value]) -> None:
    def named(name: str, values: list[Value]) -> list[str]:
        return [str(it) if name == "way" else sheet.tick(name, it) for it in values]

    axes.set_xticks(range(len(xs)), named(x, xs))
    axes.set_yticks(range(len(ys)), named(y, ys))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(sheet.parameter_label(x, xs[0] if xs else None))
    if axes.get_subplotspec().is_first_col():
        axes.set_ylabel(sheet.parameter_label(y, ys[0] if ys else None))
