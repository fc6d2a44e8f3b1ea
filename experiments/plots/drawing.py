# SPDX-License-Identifier: MIT
"""Draws the figures that an experiment names, each by its kind."""

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.model import Figure
from experiments.plots import against, ccdf, cdf, heat, series, sheet
from experiments.plots.cells import Line, Scene, has_published, scene
from experiments.report import words
from experiments.report.data import Results
from experiments.statistics import LEAST

Draw = Callable[[Results, Scene], sheet.Sheet | None]
Say = Callable[[str], None]
KINDS: dict[str, Draw] = {
    "against": against.draw,
    "normalised": against.draw,
    "cdf": cdf.draw,
    "ccdf": ccdf.draw,
    "heat": heat.draw,
    "series": series.draw,
}
LISTED = "All values that runs list which succeeded; of one that failed there are none."
HOW_TO_READ = {
    "against": "Medians.",
    "normalised": "Medians of ratios of runs that met the same losses.",
    "cdf": "Every run; a curve that ends below 1 belongs to a configuration with failures.",
    "ccdf": "Of all answers of all runs that succeeded the share that took longer, logarithmic; "
    "level parts are named by that share and the time at which they end.",
    "heat": "The median in each cell; hatched where nothing ran or over half of the runs failed.",
    "series": "The first repetition, from the sending proxy's own statistics.",
}


def draw_all(results: Results, say: Say = lambda _: None) -> list[Path]:
    """What is drawn. `say` is told of each figure that is not drawn whole, and of each file that
    goes."""
    folder = results.folder / "plots"
    drawn, left = [], set()
    for figure in results.figures():
        path = draw_one(results, figure, folder)
        lacks = lacking(results, figure)
        if path:
            drawn.append(path)
        if lacks:
            there = (folder / f"{figure.name}.svg").is_file()
            done = "drawn in part" if path else "stays as it is" if there else "not drawn"
            say(f"{folder / figure.name}.svg: {done}: {lacks}")
        if path or lacks:
            left.add(figure.name)
    named = {figure.name for figure in results.figures()}
    for old in sorted((*folder.glob("*.svg"), *folder.glob("*.png"))):
        if old.stem not in left:
            say(f"{old}: removed: {'it shows nothing' if old.stem in named else 'no such figure'}")
            old.unlink()
    return drawn


def lacking(results: Results, figure: Figure) -> str:
    """Why a figure cannot be drawn whole from what the folder keeps; empty: it can."""
    return series.lacks(results, figure) if figure.kind == "series" else ""


def draw_one(results: Results, figure: Figure, folder: Path) -> Path | None:
    """None where there is nothing to draw: no run is chosen or succeeded or has the metric. So it
    is, too, where what a run left was needed and is gone: what was drawn then shows more."""
    if lacking(results, figure) and (results.folder / "plots" / f"{figure.name}.svg").is_file():
        return None
    chosen = results.shown(figure.where)
    if not any(run.ok for it in chosen for run in it.runs):
        return None
    drawn = scene(results, figure)
    points = [p for panel in drawn.panels for line in panel.lines for p in line.points]
    if figure.kind != "series" and not any(point.values for point in points):
        return None
    made = KINDS[figure.kind](results, drawn)
    return sheet.save(made, folder, figure.name) if made else None


def caption(results: Results, figure: Figure) -> str:
    """How to read it, and what was taken together."""
    drawn = scene(results, figure)
    parts = [LISTED if figure.listed else HOW_TO_READ[figure.kind]]
    if figure.kind in ("against", "normalised"):
        parts.append(_bars(results, drawn))
    if figure.kind == "series":
        of = series.number(results, figure)
        if of > series.PANELS:
            parts.append(f"The first {series.PANELS} of {of} configurations.")
    if figure.over:
        parts.append(f"1: as with {words.label(figure.over, [*figure.over]) or 'the paired run'}.")
    if figure.kind == "heat" and heat.is_of_ratios(drawn):
        parts.append("In brackets: the interval includes 1.")
    if figure.floor:
        parts.append("Grey line: what no proxy can go below.")
    if figure.kind not in ("ccdf", "heat", "series") and has_published(drawn.panels):
        parts.append("Diamond: published" + (", at the median." if figure.kind == "cdf" else "."))
    across = [line for panel in drawn.panels for line in panel.lines if line.baseline]
    if across:
        parts.append(_of_lines_across(across, figure))
    if drawn.together and figure.kind != "series":
        counts = [
            f"{len({it.params.get(name) for it in results.configurations})} values of "
            f"{words.name(name)}"
            for name in drawn.together
        ]
        parts.append(f"Over {words.listed(counts)}.")
    if figure.kind != "series":
        parts.append(words.smallest_effect(results.metric(figure.y)))
    return " ".join(filter(None, parts))


def _bars(results: Results, drawn: Scene) -> str:
    """What they are of the points that are drawn: reports call no range an interval either."""
    points = [p for panel in drawn.panels for line in panel.lines for p in line.points if p.got.n]
    intervals = any(p.got.enough for p in points)
    ranges = any(not p.got.enough for p in points)
    told = [
        *(["95\N{NO-BREAK SPACE}% intervals"] if intervals or not ranges else []),
        *([f"the range of fewer than {LEAST} runs"] if ranges else []),
    ]
    repeats = any(results.repeats(p.of) for p in points)
    alike = " Where nothing was drawn at random they are of repeats of one session."
    return f"Bars are {words.listed(told, 'or')}.{alike if repeats else ''}"


def _of_lines_across(across: Sequence[Line], figure: Figure) -> str:
    its = [it for line in across for point in line.points for it in point.of]
    if all(it.params.get("way", "pipes") == "pipes" for it in its):
        return f"Lines across: no {words.name(figure.x)} of their own, the interval as a band."
    return "Lines across: without pipes, the interval as a band."
