# SPDX-License-Identifier: MIT
"""The sheet that plots are drawn on: panels in rows, one legend, units on axes, two files."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    AutoLocator,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
)

from experiments.model import Metric
from experiments.plots.looks import INK, MUTED, PAPER, Look
from experiments.plots.svg import slim
from experiments.report import words
from topologies.parameter import Params, Value

WIDTH = 7.2  # inches: a page's text
ROW = 2.45
DPI = 160  # of what is laid out and of PNGs; at matplotlib's 100 text counts as higher than it is
LEAST_COLUMNS = 10  # of a label's line
NAMED = 9  # ticks with a name
PANEL = {1: 4.4, 2: 2.9, 3: 1.9}  # inches that a panel is wide at least, of so many in a row
LETTER = 0.075  # inches that one is wide, on average
UNNAMED = "pipes"  # a line that stands alone has no name, until there is another beside it
PUBLISHED: dict[str, Any] = {"marker": "D", "markersize": 8, "markerfacecolor": "none"}
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tm3",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "path.simplify_threshold": 0.3,
}


@contextmanager
def sheet(
    panels: int, title: str, row_inches: float = ROW, rows_each: int = 1, share_y: bool = True
) -> Iterator[tuple[Sheet, list[list[Axes]]]]:
    """Axes for each panel (`rows_each` below one another), closed at the end."""
    columns = 1 if panels < 2 else 2 if panels in (2, 4) else 3
    rows = math.ceil(max(1, panels) / columns)
    width = WIDTH * (0.72 if columns == 1 else 1)
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(
            rows * rows_each,
            columns,
            squeeze=False,
            figsize=(width, 0.75 + row_inches * rows * rows_each * (1.25 if columns == 1 else 1)),
            dpi=DPI,
            layout="constrained",
            sharey="all" if share_y and rows_each == 1 else False,
        )
        try:
            figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
            yield figure, _grouped(axes, panels, columns, rows_each)
        finally:
            plt.close(figure)


def _grouped(axes: Any, panels: int, columns: int, rows_each: int) -> list[list[Axes]]:
    groups = []
    for k in range(len(axes) // rows_each * columns):
        row, column = divmod(k, columns)
        group = [axes[row * rows_each + below][column] for below in range(rows_each)]
        if k < panels:
            groups.append(group)
        else:
            for it in group:
                it.remove()
    return groups


def legend(
    figure: Sheet,
    entries: Sequence[tuple[str, Look | None]],
    floor: str = "",
    published: bool = False,
) -> None:
    """One for all panels, below them; entries of their own for the floor and published values."""
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker or None, linestyle=look.dash)
        for _, look in entries
        if look
    ]
    labels = [label for label, look in entries if look]
    if len(labels) > 1 or (labels and (floor or published)):
        labels = [label or UNNAMED for label in labels]
    if published:
        handles.append(Line2D([], [], **PUBLISHED, color=INK, linestyle="none"))
        labels.append("published")
    if floor:
        handles.append(Line2D([], [], color=MUTED, linewidth=1.1))
        labels.append(floor)
    if not labels or (len(labels) == 1 and not labels[0]):
        return
    widest = 0.75 + 0.068 * max(map(len, labels))
    columns = max(1, min(len(labels), 6, int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, handlelength=3.2)


def label_of(metric: Metric, over: Params | None = None) -> str:
    """An axis: what, and in which unit; of ratios, to what."""
    if over:
        return f"{metric.label} / that of {divisor(over)}"
    return f"{metric.label} [{metric.unit}]" if metric.unit else metric.label


def divisor(over: Params) -> str:
    """What a figure's values are divided by: 1 pipe, direct, early binding, transport tcp."""
    return words.label(over, [*over])


def fit_labels(figure: Sheet) -> None:
    """Axes in their places, labels of y axes in as many lines as these are high enough for."""
    for _ in range(3):  # each line takes from the width, and so from the height of titles
        _place(figure)
        wide = [it for it in figure.axes if it.get_ylabel() and _sticks_out(it)]
        if not wide:
            return
        for axes in wide:
            _break_label(axes)
    _place(figure)


def _place(figure: Sheet) -> None:
    """As drawing does first, at half of its price."""
    engine = figure.get_layout_engine()
    assert engine is not None, "a sheet is laid out once"
    engine.execute(figure)


def _sticks_out(axes: Axes) -> bool:
    return axes.yaxis.label.get_window_extent().height > axes.get_window_extent().height


def _break_label(axes: Axes) -> None:
    """Into lines that are as long as the axes are high; letters are of several widths."""
    text = " ".join(axes.get_ylabel().split("\n"))
    axes.set_ylabel(text)
    share = axes.get_window_extent().height / axes.yaxis.label.get_window_extent().height
    for columns in range(max(LEAST_COLUMNS, int(len(text) * share)), LEAST_COLUMNS - 1, -1):
        axes.set_ylabel("\n".join(textwrap.wrap(text, columns)))
        if not _sticks_out(axes):
            return


def parameter_label(name: str, value: Value = None) -> str:
    """`value`: one of those on the axis."""
    unit, noun = words.unit(name, value), words.name(name, value)
    if name in ("pipes", "way"):
        return "pipes"
    return f"{noun} [{unit}]" if unit and unit != "bytes" else noun


def tick(name: str, value: Value) -> str:
    """A value on an axis that names its unit already."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return words.carried({"way": value}) if name == "way" else words.word(name, value)
    text = words.value(name, value)
    unit = words.unit(name, value)
    return text.removesuffix(f"\N{NO-BREAK SPACE}{unit}") if unit != "bytes" else text


def are_numbers(values: Sequence[Value]) -> bool:
    """Whether there is something between two of them; else each is a place of its own."""
    return all(isinstance(it, int | float) and not isinstance(it, bool) for it in values)


def places(values: Sequence[Value]) -> tuple[dict[Value, float], bool]:
    """Where values stand on an axis, and whether it is logarithmic."""
    if not values or not are_numbers(values):
        return {it: float(k) for k, it in enumerate(values)}, False
    where = {it: float(it) for it in values if isinstance(it, int | float)}
    least, most = min(where.values()), max(where.values())
    return where, least > 0 and most / least >= 6


def title(axes: Axes, text: str, small: str = "") -> None:
    """Of a panel, in lines that fit its width; `small`: what goes with it, in small letters."""
    columns = axes.get_subplotspec().get_gridspec().ncols
    told = textwrap.wrap(small, {1: 84, 2: 56, 3: 36}[columns])
    axes.set_title(
        "\n".join(textwrap.wrap(text, {1: 60, 2: 42, 3: 25}[columns])), pad=6 + 9 * len(told)
    )
    if told:
        axes.annotate(
            "\n".join(told),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            va="bottom",
            fontsize=6.5,
            color=MUTED,
        )


def x_axis(
    axes: Axes, name: str, values: Sequence[Value], metric: Metric | None = None
) -> dict[Value, float]:
    """Ticks where something was measured. Every word is named, and of numbers at most nine.
    `metric`: if x is one."""
    where, spread = places(values)
    at = sorted(where.values())
    if spread:
        axes.set_xscale("log", base=2)
    if metric and len(at) > NAMED:
        axes.set_xlabel(_x_label(name, values, metric))
        plain_numbers(axes.xaxis)
        if metric.unit == "bytes":
            axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: words.measured_size(v)))
        return where
    numbers = are_numbers(values)
    if at and (len(at) == 1 or not numbers):
        axes.set_xlim(at[0] - 0.5, at[-1] + 0.5)
    axes.xaxis.set_major_locator(FixedLocator(at))
    axes.xaxis.set_minor_locator(NullLocator())
    if not numbers:
        _grid_between(axes, at)
    by_place = {place: _tick(name, value, metric) for value, place in where.items()}
    step = math.ceil(len(at) / NAMED) if numbers else 1
    named = set(at[::step]) | {at[-1]} if at else set()
    axes.xaxis.set_major_formatter(
        FuncFormatter(
            lambda x, _: next(
                (
                    t
                    for p, t in by_place.items()
                    if p in named and math.isclose(p, x, abs_tol=1e-12)
                ),
                "",
            )
        )
    )
    if _overlap(axes, {it: text for it, text in by_place.items() if it in named}, numbers):
        axes.tick_params(axis="x", labelrotation=35)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_xlabel(_x_label(name, values, metric))
    return where


def _grid_between(axes: Axes, places: Sequence[float]) -> None:
    """So that what belongs to one name stands between two lines."""
    axes.xaxis.set_minor_locator(FixedLocator([it + 0.5 for it in places[:-1]]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.grid(False, axis="x", which="major")
    axes.grid(True, axis="x", which="minor")


def _overlap(axes: Axes, texts: dict[float, str], numbers: bool) -> bool:
    """Whether two neighbours among an axis's names would touch, were they written in one line."""
    log = axes.get_xscale() == "log"
    at = {math.log2(place) if log else place: text for place, text in sorted(texts.items())}
    if len(at) < 2:
        return False
    width = 1.1 * (max(at) - min(at)) if numbers else len(at)
    inches = PANEL[axes.get_subplotspec().get_gridspec().ncols] / width
    return any(
        (b - a) * inches < LETTER * (len(at[a]) + len(at[b]) + 2) / 2 for a, b in pairwise(at)
    )


def _tick(name: str, value: Value, metric: Metric | None) -> str:
    if metric and isinstance(value, int | float):
        return words.measured_size(value) if metric.unit == "bytes" else words.brief(value)
    return tick(name, value)


def _x_label(name: str, values: Sequence[Value], metric: Metric | None) -> str:
    if metric:
        return label_of(metric) if metric.unit != "bytes" else metric.label
    return parameter_label(name, next((it for it in values if it is not None), None))


def plain_numbers(axis: Any) -> None:
    """No powers of ten; between them, 2 and 5."""
    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        near = low > 0 and high / low < 8
        axis.set_major_locator(AutoLocator() if near else LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if abs(v) < 1e5 else f"{v:,.0f}"))


def save(figure: Sheet, folder: Path, name: str) -> Path:
    """NAME.svg, with text as text, and NAME.png; the SVG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    with plt.rc_context(SETTINGS):
        fit_labels(figure)
        # Else each file is laid out anew, in a drawing before its own.
        figure.set_layout_engine(None)
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
        figure.savefig(png, metadata={"Software": None})
    svg.write_text(slim(svg.read_text()))
    return svg
