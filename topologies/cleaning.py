# SPDX-License-Identifier: MIT
"""Removing what killed runners left, and telling what was done: of `topologies` and `tm3lab`."""

import sys

from topologies.entry import doubts
from topologies.registry import clean


def clean_and_tell(everything: bool) -> None:
    """What was removed, and what was left alone because it is not known for a lab's."""
    removed = clean(living=everything)
    print(f"removed {len(removed)} labs{''.join(f' {name}' for name in removed)}")
    for doubt in doubts():
        print(f"left alone: {doubt}", file=sys.stderr)
