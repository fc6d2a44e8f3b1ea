# SPDX-License-Identifier: MIT
"""One colour, marker and line style for each configuration, the same in every plot.

The colours are those of Okabe and Ito, which colour-blind people tell apart; markers and line
styles differ as well, for print in grey.
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

DIRECT = Look(INK, "x", (0, (1, 1.6)))
CARRIED = {
    "direct": DIRECT,
    "1 pipe": Look(ORANGE, "s", (0, (5, 1.5))),
    "2 pipes": Look(SKY, "^", (0, (6, 1.5, 1.2, 1.5))),
    "3 pipes": Look(OLIVE, "v", (0, (2, 2.4))),
    "4 pipes": Look(GREEN, "D", (0, (1.2, 1.2))),
    "6 pipes": Look(BROWN, "h", (0, (9, 2))),
    "8 pipes": Look(BLUE, "o", "-"),
    "16 pipes": Look(PURPLE, "P", (0, (3, 1.2))),
    "32 pipes": Look(MUTED, "*", (0, (6, 1.2, 1.2, 1.2, 1.2, 1.2))),
    "MPTCP": Look(VERMILION, "X", (0, (6, 1.2, 1.2, 1.2))),
    "HTTP/2": Look(PURPLE, "p", (0, (2, 1))),
}
LEVELS: dict[str, Dash] = {  # lines across: without pipes
    "direct": (0, (1, 1.6)),
    "MPTCP": (0, (4, 1.5, 1, 1.5)),
    "HTTP/2": (0, (2.5, 1.2)),
}
PRESETS = ("wired", "lossy", "dsl", "wifi", "lte", "thin", "satellite", "mobile-dsl")


def of_carried(text: str) -> Look:
    """By how it was carried; what nobody foresaw gets a look by its name, always the same."""
    return CARRIED.get(text) or ORDERED[sum(text.encode()) % len(ORDERED)]


def of_values(parameter: str, values: Sequence[Value]) -> dict[Value, Look]:
    """Of the values of one parameter, in their order."""
    if parameter == "preset":
        others = [it for it in values if it not in PRESETS]
        values = (*PRESETS, *others)
    return {it: ORDERED[k % len(ORDERED)] for k, it in enumerate(values)}
