# SPDX-License-Identifier: MIT
"""How this program was called, as records of what it did have it."""

import sys


def words() -> list[str]:
    """Without where the results go: that is of one machine, and changes nothing of a run."""
    program, *rest = sys.argv
    found, given = [program], iter(rest)
    for word in given:
        if word == "--results":
            next(given, None)
        elif not word.startswith("--results="):
            found.append(word)
    return found
