# SPDX-License-Identifier: MIT
"""How the times of all answers are spread: the share that takes longer, its level parts named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from experiments.plots import sheet
from experiments.plots.against import entries
from experiments.plots.cells import Line, Scene
from experiments.plots.looks import Look
from experiments.report.data import Results
from experiments.workloads.dns import distribution

MARKED = 6  # markers on a curve
NAMED = 3  # level parts of a curve, the longest
EARLY = 0.5  # of the curve's length: a name that ends there would begin left of the axis
SEEN = 1.01  # times or shares that differ by less look alike


@dataclass(frozen=True)
class Times:
    """Of all runs of a line: seconds, and how many never came."""

    answered: list[float]
    unanswered: int


def times(line: Line, name: str) -> Times:
    runs = [run for point in line.points for it in point.of for run in it.runs if run.ok]
    answered = [seconds for run in runs for seconds in run.measures.get(name) or ()]
    return Times(answered, sum(int(run.measures.get("unanswered") or 0) for run in runs))


def draw(results: Results, scene: Scene) -> Sheet:
    with sheet.sheet(len(scene.panels), scene.figure.title) as (made, groups):
        for panel, [axes] in zip(scene.panels, groups, strict=True):
            if panel.label:
                sheet.title(axes, panel.label, panel.along)
            for line in panel.lines:
                its = times(line, scene.figure.x)
                if its.answered:
                    _curve(axes, its, line.look)
            _axes(axes)
        sheet.legend(made, entries(scene.panels))
        return made


def _axes(axes: Axes) -> None:
    axes.set_xlabel("time of an answer [ms]")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=1.5)
    if axes.get_subplotspec().is_first_col():
        axes.set_ylabel("share that took longer [%]")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share * 100:g}")
    sheet.plain_numbers(axes.xaxis)
    axes.tick_params(axis="x", which="both", labelsize=8)


def thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without what nobody would see."""
    kept = [curve[0]]
    for at, share in curve[1:]:
        if at > SEEN * kept[-1][0] or SEEN * share < kept[-1][1]:
            kept.append((at, share))
    return kept


def _curve(axes: Axes, its: Times, look: Look) -> None:
    """The last one takes no longer than itself: there the curve ends, where none was given up."""
    curve = [(at * 1e3, share) for at, share in distribution.ccdf(its.answered, its.unanswered)]
    drawn = thinned([(curve[0][0], 1.0), *(it for it in curve if it[1])])
    axes.plot(
        [at for at, _ in drawn] + [curve[-1][0]],
        [share for _, share in drawn] + [drawn[-1][1]],
        drawstyle="steps-post",
        color=look.colour,
        linestyle=look.dash,
        marker=look.marker or None,
        markevery=max(1, len(drawn) // MARKED),
        markersize=4,
    )
    levels = distribution.plateaus(its.answered, its.unanswered)
    for level in sorted(levels, key=lambda it: it.from_s / it.to_s)[:NAMED]:
        early = math.log(level.to_s * 1e3 / curve[0][0]) < EARLY * math.log(
            curve[-1][0] / curve[0][0]
        )
        axes.annotate(
            f"{level.share:.2%} to {level.to_s * 1e3:.0f} ms",
            ((level.from_s if early else level.to_s) * 1e3, level.share),
            xytext=(2 if early else -2, 2),
            textcoords="offset points",
            ha="left" if early else "right",
            fontsize=6.5,
            color=look.colour,
        )
