# SPDX-License-Identifier: MIT
"""A plot of an axis, as SVG: what a message takes, and memory, against how many there are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.stats import Spread

WIDTH, HEIGHT = 360, 240  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 28, 28, 44
ROW = 14  # of the legend
COLOURS = {"rp": "#0072b2", "lp": "#d55e00"}
STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Panel:
    """`curves`: of each process, what was found at which value."""

    title: str
    curves: dict[str, list[tuple[int, Spread]]]

    def most(self) -> float:
        return max(it.high for curve in self.curves.values() for _, it in curve)


def ticks(most: float, about: int = 4) -> list[float]:
    """From 0 on, round, and the last one is not below `most`."""
    if most <= 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(most / about))
    step = next(it * power for it in STEPS if it * power * about >= most * (1 - 1e-9))
    return [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]


@dataclass(frozen=True)
class Scale:
    """From values and figures to places; values by their logarithms."""

    left: float
    values: tuple[int, ...]
    top: float

    def x(self, value: int) -> float:
        low, high = math.log(self.values[0]), math.log(self.values[-1])
        share = (math.log(value) - low) / (high - low) if high > low else 0.5
        return self.left + LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, figure: float) -> float:
        return HEIGHT - BOTTOM - figure / self.top * (HEIGHT - TOP - BOTTOM)


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {at}{more}>{escape(words)}</text>"


def line(x: tuple[float, float], y: tuple[float, float], colour: str) -> str:
    ends = f'x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y[0]:.1f}" y2="{y[1]:.1f}"'
    return f'<line {ends} stroke="{colour}"/>'


def curve(scale: Scale, role: str, points: Sequence[tuple[int, Spread]]) -> list[str]:
    """Its medians are joined; a bar at each is the interval."""
    colour = COLOURS[role]
    ends = [(scale.x(value), it) for value, it in points]
    path = " ".join(f"{x:.1f},{scale.y(it.median):.1f}" for x, it in ends)
    found = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for x, it in ends:
        found.append(line((x, x), (scale.y(it.low), scale.y(it.high)), colour))
        found.append(f'<circle cx="{x:.1f}" cy="{scale.y(it.median):.1f}" r="3" fill="{colour}"/>')
    return found


def legend(scale: Scale, roles: Sequence[str]) -> list[str]:
    """In the middle at the top, where curves seldom are."""
    x = scale.left + (LEFT + WIDTH - RIGHT) / 2
    return [
        text(x, TOP + ROW * row, role, more=f' fill="{COLOURS[role]}" font-weight="bold"')
        for row, role in enumerate(roles, 1)
    ]


def axes(scale: Scale, panel: Panel, marks: Sequence[float], what: str) -> list[str]:
    left, right = scale.left + LEFT, scale.left + WIDTH - RIGHT
    found = [text((left + right) / 2, TOP - 12, panel.title)]
    for mark in marks:
        y = scale.y(mark)
        found.append(line((left, right), (y, y), "#ddd" if mark else "#333"))
        found.append(text(left - 6, y + 4, f"{mark:g}", "end"))
    found += [text(scale.x(it), HEIGHT - BOTTOM + 16, f"{it:,}") for it in scale.values]
    found.append(text((left + right) / 2, HEIGHT - 8, what))
    return found


def draw(panels: Sequence[Panel], what: str) -> str:
    """`what` is counted from left to right."""
    size = f"{WIDTH * len(panels)} {HEIGHT}"
    font = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="11"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {font}>']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for number, panel in enumerate(panels):
        marks = ticks(panel.most())
        values = sorted({value for it in panel.curves.values() for value, _ in it})
        scale = Scale(number * WIDTH, tuple(values), marks[-1])
        parts += axes(scale, panel, marks, what)
        for role, points in panel.curves.items():
            parts += curve(scale, role, points)
        parts += legend(scale, list(panel.curves))
    return "\n".join([*parts, "</svg>"]) + "\n"
