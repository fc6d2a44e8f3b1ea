# SPDX-License-Identifier: MIT
"""The picture of docs/how-it-works.md, from results/curated.

    build/venv/bin/python -m experiments.plots.how_it_works

Three panels, one for each kind of blocking: an object beside bulk, what waits at the receiver, and
whose losses a connection waits for. All of it was measured; no figure is written here.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from base.sources import ROOT
from experiments import folder
from experiments.catalogue.loss_blocking import runs as streams
from experiments.catalogue.reordering import MB
from experiments.catalogue.reordering import early as early_pipes
from experiments.catalogue.reordering import late as late_pipes
from experiments.catalogue.sender_blocking import TABLE
from experiments.plots.looks import BLUE, INK, MUTED, VERMILION
from experiments.plots.sheet import SETTINGS
from experiments.plots.svg import slim
from experiments.report.data import Results, load
from topologies.parameter import Params

CURATED, DOCS = ROOT / "results" / "curated", ROOT / "docs"
NAME = "how-it-works"
NEEDED = ("sender-blocking", "object", "reordering", "loss-blocking")
TITLES = ("Sender", "Order", "Loss")
OBJECT = "a 4 KB object beside bulk [ms]"
WAITING = "messages wait at the receiver, p75 [ms]"
LOST = "% of a connection's time\nthat losses of 1 % cost"
PIPES = (1, 2, 4, 8)
INTERVAL: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.2, "capsize": 2.5}
EIGHT = [row for row in TABLE if row.pipes == 8]
SENDER: Params = {"preset": "wired", "bottleneck": "sender"}


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    low: float
    high: float
    colour: str


def newest(experiment: str, curated: Path) -> Results:
    found = folder.find(curated, experiment)
    if not found:
        raise folder.FolderError(f"{curated}: it has no results of {experiment}")
    return load(found[0])


def bar(results: Results, name: str, where: Params, metric: str, colour: str, scale: float) -> Bar:
    got = results.pooled(where, results.metric(metric))
    if not got.n:
        raise folder.FolderError(f"{results.folder}: no runs with {dict(where)}")
    return Bar(name, got.median * scale, got.low * scale, got.high * scale, colour)


def sender_bars(blocked: Results, alone: Results) -> list[Bar]:
    small, large = EIGHT[0], EIGHT[-1]
    asked = "object_p50_s"
    idle: Params = {"way": "pipes", "pipes": 8, "binding": "late", "bulk": False, "mbps": 10.0}
    return [
        bar(alone, "alone", idle, asked, MUTED, 1e3),
        bar(blocked, "late", {**SENDER, **small.late()}, asked, BLUE, 1e3),
        bar(blocked, "early, small buffers", {**SENDER, **small.early()}, asked, VERMILION, 1e3),
        bar(blocked, "early, large buffers", {**SENDER, **large.early()}, asked, VERMILION, 1e3),
    ]


def order_bars(results: Results) -> list[Bar]:
    sides = {
        "late": (late_pipes(4), BLUE),
        "early, least unsent": (early_pipes(4, None, "least"), VERMILION),
        "early, any pipe": (early_pipes(4, 2 * MB, "random"), VERMILION),
    }
    return [
        bar(results, name, {**SENDER, **params}, "reorder_p75_s", colour, 1e3)
        for name, (params, colour) in sides.items()
    ]


def loss_bars(results: Results) -> dict[str, list[Bar]]:
    causes = {"own": ("its own", MUTED), "others": ("others'", VERMILION)}
    return {
        name: [bar(results, str(n), streams(n), f"{cause}_share", colour, 100) for n in PIPES]
        for cause, (name, colour) in causes.items()
    }


def beyond(bars: Sequence[Bar]) -> tuple[list[float], list[float]]:
    """How far the intervals reach below and above the values."""
    return [it.value - it.low for it in bars], [it.high - it.value for it in bars]


def across(axes: Axes, bars: Sequence[Bar], label: str) -> None:
    """Lying bars with their values, on an axis that shows ratios."""
    places = range(len(bars))
    axes.barh(places, [it.value for it in bars], color=[it.colour for it in bars], height=0.6)
    axes.errorbar([it.value for it in bars], places, xerr=beyond(bars), **INTERVAL)
    axes.set_yticks(places, [it.name for it in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    most = max(it.value for it in bars)
    for place, it in zip(places, bars, strict=True):
        axes.text(max(it.value, it.high) + most / 40, place, f"{it.value:.0f}", va="center")
    axes.set_xlim(0, max(it.high for it in bars) * 1.2)
    axes.set_xlabel(label)


def stacked(axes: Axes, causes: dict[str, list[Bar]]) -> None:
    places = range(len(PIPES))
    below = [0.0] * len(PIPES)
    for name, bars in causes.items():
        heights = [it.value for it in bars]
        axes.bar(places, heights, 0.6, below, color=bars[0].colour, label=f"{name} losses")
        below = [b + h for b, h in zip(below, heights, strict=True)]
        shift = -0.12 if name == "its own" else 0.12  # so that both can be seen
        axes.errorbar([at + shift for at in places], below, yerr=beyond(bars), **INTERVAL)
    tops = [b + it.high - it.value for b, it in zip(below, causes["others'"], strict=True)]
    tops = [max(top, own.high) for top, own in zip(tops, causes["its own"], strict=True)]
    for place, it, top in zip(places, causes["others'"], tops, strict=True):
        text = f"{it.value:.1f}"
        axes.text(place, top, text, ha="center", va="bottom", color=it.colour, weight="bold")
    axes.set_xticks(places, [str(n) for n in PIPES])
    axes.set_xlabel("pipes")
    axes.set_ylabel(LOST)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, max(tops) * 1.35)
    axes.legend(loc="upper right", ncols=2, fontsize=8, handlelength=1.2, columnspacing=1.2)


def draw(into: Path, curated: Path = CURATED, *, png: bool = False) -> Path:
    """The SVG; a PNG beside it, to look at."""
    of = {name: newest(name, curated) for name in NEEDED}
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(1, 3, figsize=(10.4, 2.9), layout="constrained")
        for each, title in zip(axes, TITLES, strict=True):
            each.set_title(title)
        across(axes[0], sender_bars(of["sender-blocking"], of["object"]), OBJECT)
        across(axes[1], order_bars(of["reordering"]), WAITING)
        stacked(axes[2], loss_bars(of["loss-blocking"]))
        svg = into / f"{NAME}.svg"
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
        if png:
            figure.savefig(svg.with_suffix(".png"), dpi=130)
        plt.close(figure)
    svg.write_text(slim(svg.read_text()))
    return svg


def main(words: Sequence[str]) -> None:
    made = argparse.ArgumentParser(
        prog="python -m experiments.plots.how_it_works",
        description="Draws the picture of docs/how-it-works.md from results/curated.",
    )
    made.parse_args(words)
    print(draw(DOCS))


if __name__ == "__main__":
    main(sys.argv[1:])
