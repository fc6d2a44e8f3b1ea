# SPDX-License-Identifier: MIT
"""What a plot says, read from its file."""

from pathlib import Path
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def words_of(path: Path) -> list[str]:
    """The texts of a plot: they are text, not outlines."""
    tree = ElementTree.parse(path)
    return ["".join(it.itertext()).strip() for it in tree.iter(f"{SVG}text")]
