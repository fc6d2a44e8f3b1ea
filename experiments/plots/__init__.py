# SPDX-License-Identifier: MIT
"""The plots of a results folder, as SVG and PNG. matplotlib is imported when one is drawn."""

from collections.abc import Callable
from pathlib import Path


def draw(folder: Path, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Draws every figure of the folder's experiment into its plots/; the SVGs, in order. `say` is
    told of what could not be drawn, and of what went."""
    from experiments.plots.drawing import draw_all
    from experiments.report.data import load

    return draw_all(load(Path(folder)), say)
