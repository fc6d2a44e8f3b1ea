# SPDX-License-Identifier: MIT
"""From single figures to tables and plots."""

from collections.abc import Sequence
from typing import Any

from bench.growth.axes import AXES, Axis, Point
from bench.growth.measure import LOCAL, metrics
from bench.growth.plot import Panel, draw
from bench.report import Rows, as_markdown, as_text, cell, disturbance, without_empty_columns
from bench.stats import Spread, ratios

ROLES = ("rp", LOCAL)
COLUMNS = (
    ("rp µs a message", "cpu.rp", 2),
    ("lp µs a message", f"cpu.{LOCAL}", 2),
    ("rp MiB", "mib.rp", 2),
    ("lp MiB", f"mib.{LOCAL}", 2),
)


class Values:
    """Metrics of points, by block."""

    def __init__(self, figures: Sequence[dict[str, Any]]) -> None:
        self._found: dict[tuple[str, int, str], dict[int, float]] = {}
        for figure in figures:
            for metric, value in metrics(figure).items():
                key = figure["axis"], figure["value"], metric
                self._found.setdefault(key, {})[figure["block"]] = value

    def of(self, axis: Axis, value: int, metric: str) -> dict[int, float]:
        return self._found.get((axis.name, value, metric), {})

    def along(self, axis: Axis) -> list[int]:
        return sorted({value for name, value, _ in self._found if name == axis.name})


def rows(axis: Axis, values: Values) -> Rows:
    """With what a message takes by what it takes where there is least, block by block."""
    least = values.along(axis)[0]
    found = [
        [axis.title, *(title for title, _, _ in COLUMNS), "rp by the first", "lp by the first"]
    ]
    for value in values.along(axis):
        cells = [
            cell(list(values.of(axis, value, metric).values()), digits)
            for _, metric, digits in COLUMNS
        ]
        grown = [
            cell(
                ratios(values.of(axis, value, f"cpu.{it}"), values.of(axis, least, f"cpu.{it}")), 2
            )
            for it in ROLES
        ]
        found.append([f"{value:,}", *cells, *grown])
    return without_empty_columns(found)


def panel(title: str, kind: str, axis: Axis, values: Values) -> Panel:
    curves = {}
    for role in ROLES:
        points = [
            (value, spread)
            for value in values.along(axis)
            if (spread := Spread.of(list(values.of(axis, value, f"{kind}.{role}").values())))
        ]
        if points:
            curves[role] = points
    return Panel(title, curves)


def plots(result: dict[str, Any]) -> dict[str, str]:
    """By the name of the axis."""
    values = Values(result["figures"])
    return {
        axis.name: draw(
            [
                panel("µs of processor time a message", "cpu", axis, values),
                panel("MiB resident", "mib", axis, values),
            ],
            axis.title,
        )
        for axis in AXES.values()
        if values.along(axis)
    }


def tables(result: dict[str, Any]) -> list[tuple[str, Rows]]:
    values = Values(result["figures"])
    return [
        (f"Against {axis.title}", rows(axis, values))
        for axis in AXES.values()
        if values.along(axis)
    ]


def notes(result: dict[str, Any]) -> list[str]:
    figures = result["figures"]
    lines = ["", disturbance(figures)]
    lines += [
        f"Failed: {Point(it['axis'], it['value'])}: {it['failed']}."
        for it in figures
        if "failed" in it
    ]
    return lines


def facts(result: dict[str, Any]) -> list[str]:
    machine, pace = result["machine"], result["pace"]
    return [
        f"- {machine['cpu']}, {len(machine['processors_used'])} cores used, "
        f"Linux {machine['kernel']}, {result['control']}",
        f"- {result['blocks']} blocks, seed {result['seed']}, {pace['hold_s']:g} s a point, "
        f"{result['started']}",
        *(f"- {line}" for line in result["versions"].values() if line),
    ]


def text(result: dict[str, Any]) -> str:
    return as_text(tables(result), notes(result))


def markdown(result: dict[str, Any]) -> str:
    return as_markdown(result["command"], facts(result), tables(result), notes(result))
