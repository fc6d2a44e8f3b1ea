# SPDX-License-Identifier: MIT
"""The curves of findings, in the look of all other plots. matplotlib is imported with this file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments.plots import sheet
from experiments.plots.looks import ORDERED, Look
from experiments.trace.bursts import DOWN, UP
from experiments.trace.distribution import Distribution
from experiments.trace.findings import UPLOADS, VOLUMES, Findings, Kind

POINTS = 1000  # of a curve
MARKED = 6  # markers on it
Curves = Mapping[str, Distribution]


def draw(found: Findings, folder: Path) -> list[Path]:
    """The SVGs; a PNG is beside each. None of a figure that would show nothing."""
    volumes = {
        "up": found.volumes(UP),
        "down": found.volumes(DOWN),
        "both": found.volumes(UP, DOWN),
    }
    drawn = [_figure(folder, "sessions", "Sessions", "bytes", "sessions", {"": volumes})]
    for name, title, label, of_what, of in (
        ("durations-up", "Upload bursts of a flow", "duration [s]", "flows", _durations(UP)),
        ("durations-down", "Download bursts of a flow", "duration [s]", "flows", _durations(DOWN)),
        ("rates", "Rates of flows over 3 s", "rate [Mbit/s]", "flows", _rates),
        ("round-trips", "Round trips of flows", "round trip [ms]", "flows", _round_trips),
        ("increase", "I(s) by what went up in a second", "I(s) [ms]", "seconds", _increases),
    ):
        panels = {kind.name: of(kind) for kind in found.kinds}
        drawn.append(_figure(folder, name, title, label, of_what, panels))
    drawn.append(_concurrency(folder, found))
    return [path for path in drawn if path]


def _durations(way: int) -> Callable[[Kind], Curves]:
    def curves(kind: Kind) -> Curves:
        parts = {name: kind.durations(way, volume) for name, volume in VOLUMES.items()}
        return {"all": kind.durations(way), **parts}

    return curves


def _rates(kind: Kind) -> Curves:
    return {"up": kind.rates(UP), "down": kind.rates(DOWN)}


def _round_trips(kind: Kind) -> Curves:
    return {
        "handshake": kind.handshakes().times(1000),
        "least of the data's": kind.least_trips().times(1000),
    }


def _increases(kind: Kind) -> Curves:
    return {name: kind.increases(upload).times(1000) for name, upload in UPLOADS.items()}


def _figure(
    folder: Path, name: str, title: str, label: str, of_what: str, panels: Mapping[str, Curves]
) -> Path | None:
    panels = {key: curves for key, curves in panels.items() if any(map(len, curves.values()))}
    if not panels:
        return None
    looks = dict(zip(next(iter(panels.values())), ORDERED, strict=False))
    with sheet.sheet(len(panels), title) as (made, groups):
        for (key, curves), [axes] in zip(panels.items(), groups, strict=True):
            if key:
                sheet.title(axes, key)
            for curve, values in curves.items():
                if len(values):
                    _curve(axes, values, looks[curve])
            _axes(axes, label, of_what)
        _scale([axes for [axes] in groups], panels.values())
        shown = [it for it in looks if any(len(curves[it]) for curves in panels.values())]
        sheet.legend(made, [(it, looks[it]) for it in shown])
        return sheet.save(made, folder, name)


def _axes(axes: Axes, label: str, of_what: str) -> None:
    axes.set_xlabel(label)
    if axes.get_subplotspec().is_first_col():
        axes.set_ylabel(f"share of {of_what}")
    axes.set_ylim(0, 1.02)
    axes.tick_params(axis="x", which="both", labelsize=8)


def _scale(every: Sequence[Axes], panels: Iterable[Curves]) -> None:
    """One for all panels, which are to be compared."""
    values = [it for curves in panels for curve in curves.values() for it in curve.values]
    positive = [it for it in values if it > 0]
    log = bool(positive) and max(positive) / min(positive) >= 20
    for axes in every:
        if log:
            axes.set_xscale("log")
    spans = [axes.get_xlim() for axes in every]
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    for axes in every:
        axes.set_xlim(low if log else min(0, low), high)
        sheet.plain_numbers(axes.xaxis)


def _curve(axes: Axes, it: Distribution, look: Look) -> None:
    """On a logarithmic axis what is 0 lies left of it: the curve begins above the share of it."""
    if len(it) == 1:  # one is a place, and no distribution
        axes.plot(it.values, [1.0], color=look.colour, marker=look.marker, clip_on=False)
        return
    ranks = np.unique(np.linspace(1, len(it), min(POINTS, len(it))).round().astype(int))
    values = [it.values[rank - 1] for rank in ranks]
    axes.plot(
        [values[0], *values],
        [0.0, *(ranks / len(it))],
        drawstyle="steps-post",
        color=look.colour,
        linestyle=look.dash,
        marker=look.marker,
        markevery=max(1, len(values) // MARKED),
        markersize=4,
    )


def _concurrency(folder: Path, found: Findings) -> Path | None:
    """How many flows carry data in a second, as a share of all seconds."""
    kinds: Sequence[Kind] = [it for it in found.kinds if it.busy.total()]
    if not kinds:
        return None
    with sheet.sheet(1, "Flows that carry data in a second") as (made, [[axes]]):
        for kind, look in zip(kinds, ORDERED, strict=False):
            counts = sorted(kind.busy)
            shares = np.cumsum([kind.busy[it] for it in counts]) / kind.busy.total()
            axes.plot(
                counts,
                shares,
                drawstyle="steps-post",
                color=look.colour,
                linestyle=look.dash,
                marker=look.marker,
                markersize=4,
            )
        axes.set_xlabel("flows with data")
        axes.set_ylabel("share of seconds")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(left=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        sheet.legend(made, [(kind.name, look) for kind, look in zip(kinds, ORDERED, strict=False)])
        return sheet.save(made, folder, "concurrency")
