# SPDX-License-Identifier: MIT
"""What a results folder says, as a page that stands alone and as a table for the terminal.

Nothing heavy is imported until it is asked for: listing experiments must be quick.
"""

from collections.abc import Sequence
from pathlib import Path


def write(folder: Path) -> Path:
    """report.html and summary.json of a results folder; draws plots that are missing or old."""
    from experiments.report import page

    return page.write(Path(folder))


def table(folder: Path, width: int = 100) -> str:
    """The same in short, as text."""
    from experiments.report import text

    return text.table(Path(folder), width)


def index(folders: Sequence[Path]) -> Path:
    """One page over the results of several experiments, in the folder they have in common."""
    from experiments.report import overview

    return overview.write([Path(folder) for folder in folders])
