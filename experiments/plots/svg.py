# SPDX-License-Identifier: MIT
"""SVG made smaller, and made fit to stand inside a page beside others of its kind."""

import re

from experiments.plots.looks import BLUE, INK, PAPER, VERMILION
from experiments.plots.plain import plain

FONTS = "'DejaVu Sans', Verdana, Arial, sans-serif"
NUMBER = re.compile(r"-?\d+\.\d{3,}")
COORDINATES = re.compile(r'(?<= )(d|x|y|x1|x2|y1|y2|width|height|points|transform)="[^"]*"')
# Colours that follow the page's own, so that a plot can be read on a dark page.
INLINE = {INK: "currentColor", PAPER: "var(--plot-paper)"}
INLINE |= {BLUE.lower(): "var(--plot-blue)", VERMILION.lower(): "var(--plot-red)"}


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def slim(text: str) -> str:
    """Without metadata, names that nobody refers to, and digits that nobody sees."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!DOCTYPE.*?>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = COORDINATES.sub(lambda match: NUMBER.sub(_rounded, match.group()), text)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: m.group() if m.group(1) in used else "", text)
    text = re.sub(r"'DejaVu Sans'(?:, '?[A-Za-z -]+'?)*", FONTS, text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    return re.sub(r'xlink:href="', 'href="', text)


def inline(text: str, name: str, title: str) -> str:
    """As an element of a page: its own names, the page's ink, a title for who cannot see it.

    Raises NoPlot."""
    text = plain(text)
    for given in set(re.findall(r' id="([^"]+)"', text)):
        own = f"{name}-{given}"
        text = text.replace(f'id="{given}"', f'id="{own}"').replace(f"#{given}", f"#{own}")
    for colour, ours in INLINE.items():
        text = text.replace(colour, ours)
    head, _, rest = text.partition(">")
    width = re.search(r'viewBox="0 0 ([0-9.]+)', head)
    # Points to pixels, and a little more: letters as large as the page's own.
    style = f"--width: {float(width.group(1)) * 1.55:.0f}px" if width else ""
    head = re.sub(r' (width|height|style)="[^"]*"', "", head)
    return f'{head} style="{style}" role="img" aria-label="{title}">{rest}'
