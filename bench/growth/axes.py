# SPDX-License-Identifier: MIT
"""What grows, from where to where; all else stays as it is in the scene."""

from collections.abc import Sequence
from dataclasses import dataclass

CONNECTIONS, PIPES, SESSIONS, GAP = "connections", "pipes", "sessions", "gap"


@dataclass(frozen=True)
class Axis:
    name: str
    title: str
    values: tuple[int, ...]
    quick: tuple[int, ...]


AXES = {
    CONNECTIONS: Axis(
        CONNECTIONS, "connections", (1, 10, 100, 1_000, 10_000, 30_000), (1, 100, 1_000)
    ),
    PIPES: Axis(PIPES, "pipes", (1, 4, 16, 64), (1, 64)),
    SESSIONS: Axis(SESSIONS, "sessions", (1, 10, 100, 400), (1, 20)),
    GAP: Axis(
        GAP,
        "messages that wait for one that is missing",
        (1, 10, 100, 1_000, 10_000),
        (1, 100, 10_000),
    ),
}


@dataclass(frozen=True)
class Scene:
    """One point of an axis. `gap` 0: nothing is missing."""

    connections: int = 16
    pipes: int = 4
    sessions: int = 1
    gap: int = 0


@dataclass(frozen=True)
class Point:
    axis: str
    value: int

    def __str__(self) -> str:
        return f"{self.value:,} {AXES[self.axis].title}"

    def scene(self) -> Scene:
        if self.axis == CONNECTIONS:
            return Scene(connections=self.value)
        if self.axis == PIPES:
            return Scene(pipes=self.value)
        if self.axis == SESSIONS:
            return Scene(connections=max(16, self.value), sessions=self.value, pipes=1)
        return Scene(connections=1, pipes=2, gap=self.value)


def points(names: Sequence[str], quick: bool, descriptors: int) -> list[Point]:
    """Each connection is a descriptor of a process: where there are fewer, the last point has as
    many as that."""
    found = []
    for axis in (AXES[name] for name in names):
        values = axis.quick if quick else axis.values
        if axis.name != GAP:
            values = tuple(sorted({min(it, descriptors) for it in values}))
        found += [Point(axis.name, value) for value in values]
    return found
