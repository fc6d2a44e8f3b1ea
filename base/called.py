# SPDX-License-Identifier: MIT
"""How this program was called, as records of what it did have it."""

import sys
from collections.abc import Collection, Sequence


def words() -> list[str]:
    """Without where the results go: that is of one machine, and changes nothing of a run."""
    program, *rest = sys.argv
    return [program, *without(rest, ["--results"])]


def without(command: Sequence[str], options: Collection[str]) -> list[str]:
    """Each of these has a value, as the next word or behind `=`."""
    found, given = [], iter(command)
    for word in given:
        name, equals, _ = word.partition("=")
        if name not in options:
            found.append(word)
        elif not equals:
            next(given, None)
    return found
