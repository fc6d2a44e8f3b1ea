# SPDX-License-Identifier: MIT
"""The plots of a results folder, as SVG and PNG. matplotlib is imported when one is drawn."""

from pathlib import Path


def draw(folder: Path) -> list[Path]:
    """Draws every figure of the folder's experiment into its plots/; the SVGs, in order."""
    from experiments.plots.drawing import draw_all
    from experiments.report.data import load

    return draw_all(load(Path(folder)))
