# SPDX-License-Identifier: MIT
"""Throughput and windows over time, from the proxies' own statistics of repetition 0.

docs/statistics.md is their format. The sender of the greater part tells: RP for a download.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from experiments.model import Figure
from experiments.plots import sheet
from experiments.plots.cells import CARRIED, Scene, tell_apart, titles
from experiments.plots.looks import BLUE, INK, MUTED, ORANGE, ORDERED, SKY, Look
from experiments.report import words
from experiments.report.data import Results
from experiments.report.runs import Configuration, Run

PANELS = 6
UNITS = {"mbps": "Mbit/s"}
USUAL, FAR_ABOVE = 0.99, 3.0  # of all values so many are usual; a peak is so many times more
SAMPLES = 400  # of a pipe: more are thinned out
OF_TOLD = (
    Look(INK, ""),
    Look(ORANGE, "", (0, (5, 1.5))),
    Look(SKY, "", (0, (1.2, 1.2))),
    Look(BLUE, "", (0, (3, 1, 1, 1))),
)


Curve = tuple[Sequence[float], Sequence[float]]  # seconds, values


@dataclass(frozen=True)
class Trace:
    """Of one pipe: seconds, Mbit/s between this sample and the one before, window in segments."""

    pipe: str
    seconds: tuple[float, ...]
    mbps: tuple[float, ...]
    windows: tuple[float, ...]


@dataclass(frozen=True)
class Shown:
    """A panel: a configuration's pipes, and series that its run measured itself."""

    label: str
    along: str  # what else differs from panel to panel, and goes with the label
    traces: list[Trace]
    told: dict[str, tuple[list[float], list[float]]]
    went: float | None  # from when on the run's own series are; None: nobody recorded it

    @property
    def has_one_time(self) -> bool:
        return not self.told or not self.traces or self.went is not None

    @cached_property
    def rates(self) -> list[Curve]:
        """What the upper axes show."""
        if self.told:
            return [*self.told.values()]
        its: list[Curve] = [(trace.seconds, trace.mbps) for trace in self.traces]
        return [*its, _sum(self.traces)] if len(its) > 1 else its


def lacks(results: Results, figure: Figure) -> str:
    """Why a figure cannot be drawn whole; empty: it can."""
    if any(run.logs and (results.folder / run.logs).is_dir() for run in results.runs):
        return ""
    if any(_goes_over_pipes(it) for it in _with_runs(results, figure)):
        return "it needs the statistics of the proxies, and this folder has no logs"
    return ""


def number(results: Results, figure: Figure) -> int:
    """How many configurations have something to show, of which PANELS at most are shown."""
    return sum(
        _goes_over_pipes(it) or any(run.ok and listed(run, figure.y) for run in it.runs)
        for it in _with_runs(results, figure)
    )


def _with_runs(results: Results, figure: Figure) -> list[Configuration]:
    return [it for it in results.shown(figure.where) if any(run.ok for run in it.runs)]


def _goes_over_pipes(it: Configuration) -> bool:
    return it.params.get("way", "pipes") == "pipes"


def read(folder: Path, since: float | None = None) -> list[Trace]:
    """The traces of whichever proxy sent more; none where there were no pipes. From that time on,
    else from the first sample."""
    sides = [_records(path) for path in sorted(folder.rglob("*stats*.jsonl"))]
    sides = [side for side in sides if side]
    if not sides:
        return []
    return traces(max(sides, key=_sent), since)


def _records(path: Path) -> list[dict[str, Any]]:
    records = []
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # the line that a killed proxy was writing
            continue
        if record.get("type") == "pipe":
            records.append(record)
    return records


def _sent(side: Sequence[dict[str, Any]]) -> int:
    latest = {(it["session"], it["pipe"]): it["tx_bytes"] for it in side}
    return sum(latest.values())


def traces(records: Sequence[dict[str, Any]], since: float | None = None) -> list[Trace]:
    by_pipe: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for it in records:
        by_pipe.setdefault((it["session"], it["pipe"]), []).append(it)
    start = min((it["time"] for it in records), default=0.0) if since is None else since
    made = []
    for (_, pipe), its in sorted(by_pipe.items()):
        its = its[:: max(1, len(its) // SAMPLES)]
        steps = [(a, b) for a, b in pairwise(its) if b["time"] > max(a["time"], start)]
        made.append(
            Trace(
                f"pipe {pipe}",
                tuple(b["time"] - start for _, b in steps),
                tuple(
                    (b["tx_bytes"] - a["tx_bytes"]) * 8e-6 / (b["time"] - a["time"])
                    for a, b in steps
                ),
                tuple(b["cwnd"] for _, b in steps),
            )
        )
    return [trace for trace in made if len(trace.seconds) > 1]


def _chosen(results: Results, scene: Scene) -> list[Shown]:
    """A configuration each, the first few that have something to show."""
    its = _with_runs(results, scene.figure)
    differing = [
        name for name in results.varying if len({repr(it.params.get(name)) for it in its}) > 1
    ]
    telling = tell_apart([results.key(it.params, differing) for it in its], differing)
    carried = CARRIED if set(telling) & set(CARRIED) else ()  # says it once
    along = [name for name in differing if name not in (*telling, *carried)]
    found = []
    for it in its:
        run = _first(it)
        told = listed(run, scene.figure.y)
        since = run.went if told else None
        traces = read(results.folder / run.logs, since) if run.logs else []
        if traces or told:
            names = titles(results, it.params, telling, along)
            found.append(Shown(*names, traces, told, run.went))
        if len(found) == PANELS:
            break
    return found


def _first(it: Configuration) -> Run:
    """That succeeded; logs are of the first repetition, or of those that failed."""
    done = [run for run in it.runs if run.ok]
    return next((run for run in done if run.logs), done[0])


def listed(run: Run, name: str) -> dict[str, tuple[list[float], list[float]]]:
    """Series that a run measured itself: the named one, and others in the same unit. Each value
    with the end of the time that it is of; none of a time after the run was to end."""
    step = run.measures.get("series_step_s", 1.0)
    until = run.params.get("seconds")
    most = round(until / step) if isinstance(until, int | float) else None
    if not isinstance(run.measures.get(name), list):
        return {}
    unit = name.rsplit("_", 1)[-1]
    names = [name, *(key for key in run.measures if key != name and key.endswith(f"_{unit}"))]
    found = {}
    for key in names:
        values = run.measures[key]
        if isinstance(values, list) and values:
            values = values[:most]
            found[key] = ([step * (k + 1) for k in range(len(values))], values)
    return found


def unit_of(name: str) -> str:
    """A series is named for it: series_download_mbps, series_waited_for_objects."""
    unit = name.rpartition("_")[2]
    return UNITS.get(unit, unit)


def draw(results: Results, scene: Scene) -> Sheet | None:
    """None where nothing was kept: direct connections have no statistics."""
    chosen = _chosen(results, scene)
    if not chosen:
        return None
    rows = 2 if any(it.traces for it in chosen) else 1
    with sheet.sheet(len(chosen), scene.figure.title, 1.55, rows, share_y=False) as (made, groups):
        names: dict[str, Look] = {}
        for it, group in zip(chosen, groups, strict=True):
            sheet.title(group[0], it.label, it.along)
            names.update(_told(group[0], it) if it.told else _throughput(group[0], it.traces))
            if rows == 2:
                group[0].tick_params(labelbottom=not it.has_one_time)
                _windows(group[1], it.traces)
            group[-1].set_xlabel("time [s]" if it.has_one_time else "time of the pipes [s]")
            if group[0].get_subplotspec().is_first_col():
                group[0].set_ylabel(unit_of(scene.figure.y) if it.told else UNITS["mbps"])
                if rows == 2:
                    group[1].set_ylabel("window [segments]")
        _aligned(chosen, groups)
        sheet.legend(made, list(names.items()))
        return made


def _aligned(chosen: Sequence[Shown], groups: Sequence[Sequence[Axes]]) -> None:
    """The same second stands at the same place in all panels, the same rate at the same height."""
    ends = [seconds[-1] for it in chosen for seconds, _ in it.rates if len(seconds)]
    for k in range(len(groups[0])):
        top = max(group[k].get_ylim()[1] for group in groups)
        for group in groups:
            group[k].set_xlim(0, max(ends))
            group[k].set_ylim(0, top)
            sheet.plain_numbers(group[k].xaxis)
            sheet.plain_numbers(group[k].yaxis)
    _cut_peaks(chosen, [group[0] for group in groups])


def _cut_peaks(chosen: Sequence[Shown], upper: Sequence[Axes]) -> None:
    """A peak far above all else would press that flat: it goes out of the picture, and its height
    is named where it does."""
    every = sorted(v for it in chosen for _, values in it.rates for v in values)
    usual = every[int(len(every) * USUAL)] if every else 0.0
    if not usual or every[-1] <= FAR_ABOVE * usual:
        return
    top = 1.5 * usual
    for it, axes in zip(chosen, upper, strict=True):
        axes.set_ylim(0, top)
        points = [point for curve in it.rates for point in zip(*curve, strict=True)]
        at, peak = max(points, key=lambda point: point[1])
        if peak > top:
            axes.annotate(
                f"\N{UPWARDS ARROW}\N{NO-BREAK SPACE}{words.number(peak)}",
                (at, top),
                xytext=(-4 if at > axes.get_xlim()[1] / 2 else 4, 0),
                textcoords="offset points",
                ha="right" if at > axes.get_xlim()[1] / 2 else "left",
                va="top",
                fontsize=7,
                color=INK,
            )


def _told(axes: Axes, it: Shown) -> dict[str, Look]:
    """The series that the figure names is drawn over the others."""
    names = {}
    for k, (key, (seconds, values)) in enumerate(it.told.items()):
        look = OF_TOLD[min(k, len(OF_TOLD) - 1)]
        axes.stairs(
            values,
            [0.0, *seconds],
            baseline=None,
            color=look.colour,
            linestyle=look.dash,
            linewidth=1.3,
            zorder=3 - k,
        )
        names[key.rpartition("_")[0].removeprefix("series_").replace("_", " ")] = look
    axes.set_ylim(bottom=0)
    return names


def _throughput(axes: Axes, its: Sequence[Trace]) -> dict[str, Look]:
    for k, trace in enumerate(its):
        look = ORDERED[k % len(ORDERED)]
        axes.plot(trace.seconds, trace.mbps, color=look.colour, linestyle=look.dash, linewidth=0.9)
    if len(its) > 1:
        axes.plot(*_sum(its), color=INK, linewidth=1.4)
    axes.set_ylim(bottom=0)
    return {"a pipe each": Look(BLUE, ""), "all pipes together": Look(INK, "")}


def _sum(its: Sequence[Trace]) -> tuple[list[float], list[float]]:
    """Of the pipes' rates at the times of the first: all are sampled together."""
    times = list(its[0].seconds)
    total = [0.0] * len(times)
    for trace in its:
        for k, at in enumerate(times):
            near = [m for s, m in zip(trace.seconds, trace.mbps, strict=True) if abs(s - at) < 0.01]
            total[k] += near[0] if near else 0.0
    return times, total


def _windows(axes: Axes, its: Sequence[Trace]) -> None:
    if not its:
        axes.text(0.5, 0.5, "no pipes", transform=axes.transAxes, ha="center", color=MUTED)
    for k, trace in enumerate(its):
        look = ORDERED[k % len(ORDERED)]
        axes.plot(
            trace.seconds,
            trace.windows,
            color=look.colour,
            linestyle=look.dash,
            linewidth=0.9,
            drawstyle="steps-pre",
        )
    axes.set_ylim(bottom=0)
