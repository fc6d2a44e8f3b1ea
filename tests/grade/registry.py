# SPDX-License-Identifier: MIT
"""The list of checks: each a function that plays one scene and says what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .lab import Lab

EXTRA = 5  # beyond the course: listed, never counted
LEVELS = (1, 2, 3, 4)
LEVEL_TITLES = {
    1: "sequential connections over one pipe",
    2: "sequential connections over several pipes",
    3: "concurrent connections over several pipes",
    4: "real workload",
    EXTRA: "beyond the course",
}


@dataclass(frozen=True)
class Check:
    name: str
    level: int
    title: str
    run: Callable[[Lab], str]
    seconds: float  # for the whole check
    needs_namespace: bool

    @property
    def level_text(self) -> str:
        return "extra" if self.level == EXTRA else str(self.level)


CHECKS: list[Check] = []


def check(
    level: int, name: str, seconds: float = 15.0, needs_namespace: bool = False
) -> Callable[[Callable[[Lab], str]], Callable[[Lab], str]]:
    """Add a function to the list; the first line of its docstring is the check's title."""

    def add(run: Callable[[Lab], str]) -> Callable[[Lab], str]:
        title = (run.__doc__ or name).strip().splitlines()[0]
        CHECKS.append(Check(name, level, title, run, seconds, needs_namespace))
        return run

    return add
