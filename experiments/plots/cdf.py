# SPDX-License-Identifier: MIT
"""How all runs are spread: the share that was done by then. Failures keep it below 1."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from experiments.plots import sheet
from experiments.plots.against import entries
from experiments.plots.ccdf import times
from experiments.plots.cells import Line, Scene, has_published
from experiments.plots.looks import MUTED
from experiments.report.data import Results

MARKED = 6  # markers on a curve


def draw(results: Results, scene: Scene) -> Sheet:
    with sheet.sheet(len(scene.panels), scene.figure.title) as (made, groups):
        for panel, [axes] in zip(scene.panels, groups, strict=True):
            if panel.label:
                sheet.title(axes, panel.label, panel.along)
            for level in sorted({level for _, level in panel.floor}):
                axes.axvline(level, color=MUTED, linewidth=1.1, zorder=1)
            for line in panel.lines:
                _curve(axes, line, scene.figure.listed)
            _axes(axes, scene)
        floor = any(panel.floor for panel in scene.panels)
        if scene.figure.over:  # ratios are to be compared from panel to panel
            spans = [axes.get_xlim() for [axes] in groups]
            for [axes] in groups:
                axes.set_xlim(min(low for low, _ in spans), max(high for _, high in spans))
        names = entries(scene.panels)
        sheet.legend(made, names, "floor" if floor else "", has_published(scene.panels))
        return made


def _axes(axes: Axes, scene: Scene) -> None:
    listed = scene.figure.listed
    axes.set_xlabel(of_list(listed) if listed else sheet.label_of(scene.metric, scene.figure.over))
    if axes.get_subplotspec().is_first_col():
        axes.set_ylabel("share of all of them" if listed else "share of runs")
    axes.set_ylim(0, 1.02)
    if scene.figure.log:
        axes.set_xscale("log")
    elif axes.get_xlim()[0] > 0 and not scene.figure.over:
        axes.set_xlim(left=0)
    sheet.plain_numbers(axes.xaxis)
    axes.tick_params(axis="x", which="both", labelsize=8)


def of_list(name: str) -> str:
    """The label of a list of seconds: times_s."""
    return f"{name.removesuffix('_s').replace('_', ' ')} [s]"


def _curve(axes: Axes, line: Line, listed: str) -> None:
    """Of one value of each run, or of all that the runs list."""
    each = [value for point in line.points for value in point.values]
    values = np.sort(times(line, listed).answered if listed else each)
    done = values[np.isfinite(values)]
    if not len(done):
        return
    if len(values) == 1:  # one run is a place, and no distribution
        axes.plot(
            done, [1.0], color=line.look.colour, marker=line.look.marker or "o", clip_on=False
        )
        return
    look = line.look
    for value in (it for point in line.points for it in point.published):  # at the median
        axes.plot(value, 0.5, color=look.colour, zorder=4, linestyle="none", **sheet.PUBLISHED)
    shares = np.arange(1, len(done) + 1) / len(values)
    xs = np.concatenate(([done[0]], done))
    ys = np.concatenate(([0.0], shares))
    axes.plot(
        xs,
        ys,
        drawstyle="steps-post",
        color=look.colour,
        linestyle=look.dash,
        marker=look.marker or None,
        markevery=max(1, math.ceil(len(xs) / MARKED)),
        markersize=4,
    )
