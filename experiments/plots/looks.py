# SPDX-License-Identifier: MIT
"""One look for each configuration, the same in every plot.

The line says how the bytes were carried: pipes are solid, without them direct is dotted, MPTCP
dash-dotted, HTTP/2 dashed, HAProxy dash-dot-dotted. Colour and marker say the number of pipes, or a
parameter's value. The colours are those of Okabe and Ito, which colour-blind people tell apart;
markers differ as well, for print in grey.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topologies.parameter import Value

INK = "#1b1b1b"
PAPER = "#fefefe"
MUTED = "#6b6b6b"
ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, OLIVE, BROWN = "#D55E00", "#CC79A7", "#9A8A00", "#8C5A2B"

Dash = Any


@dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    dash: Dash = "-"


DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1.2)),
    (0, (6, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (9, 2)),
    (0, (2, 2.4)),
)
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, OLIVE, BROWN)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
ORDERED = tuple(map(Look, COLOURS, MARKERS, DASHES))

PIPES: Dash = "-"
WITHOUT: dict[str, Dash] = {  # pipes
    "direct": (0, (1, 1.6)),
    "MPTCP": (0, (4, 1.5, 1, 1.5)),
    "HTTP/2": (0, (2.5, 1.2)),
    "HAProxy": (0, (6, 1.5, 1, 1.5, 1, 1.5)),
}
CARRIED = {
    "direct": Look(INK, "x", WITHOUT["direct"]),
    "1 pipe": Look(ORANGE, "s"),
    "2 pipes": Look(SKY, "^"),
    "3 pipes": Look(OLIVE, "v"),
    "4 pipes": Look(GREEN, "D"),
    "6 pipes": Look(BROWN, "h"),
    "8 pipes": Look(BLUE, "o"),
    "16 pipes": Look(PURPLE, "P"),
    "32 pipes": Look(MUTED, "*"),
    "MPTCP": Look(VERMILION, "X", WITHOUT["MPTCP"]),
    "HTTP/2": Look(PURPLE, "p", WITHOUT["HTTP/2"]),
    "HAProxy": Look(BROWN, "<", WITHOUT["HAProxy"]),
}
PRESETS = ("wired", "lossy", "dsl", "wifi", "lte", "thin", "satellite", "mobile-dsl", "wifi-lte")


def of_carried(text: str) -> Look:
    """By how it was carried; what nobody foresaw gets a look by its name, always the same."""
    return CARRIED.get(text) or ORDERED[sum(text.encode()) % len(ORDERED)]


def dash_of(carried: str) -> Dash:
    """Of pipes, however many, or of what goes without."""
    return WITHOUT.get(carried, PIPES)


def of_values(
    parameter: str, values: Sequence[Value], choices: Sequence[Value] = ()
) -> dict[Value, Look]:
    """Of the values of one parameter, in their order; those that are chosen from a list keep their
    look where others are not there."""
    first = PRESETS if parameter == "preset" else choices
    others = [it for it in values if it not in first]
    return {it: ORDERED[k % len(ORDERED)] for k, it in enumerate((*first, *others))}
