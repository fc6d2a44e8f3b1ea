# SPDX-License-Identifier: MIT
"""How strong a radio's signal is over time."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from topologies.parameter import ParameterError

NAME = "rssi"
SAME_DB = 1e-9  # what differs by less does so by rounding


@dataclass(frozen=True)
class Rssi:
    """`points`: seconds and dBm. Straight between them, level before the first and behind the
    last."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Raises ParameterError."""
        if not self.points:
            raise ParameterError(NAME, "has no point")
        for at, dbm in self.points:
            if not (math.isfinite(at) and math.isfinite(dbm)):
                raise ParameterError(NAME, f"{at:g} s, {dbm:g} dBm: is not finite")
        for (before, _), (at, _) in pairwise(self.points):
            if at <= before:
                raise ParameterError(NAME, f"goes back in time: {at:g} s behind {before:g} s")

    def at(self, second: float) -> float:
        number = bisect_right(self.points, second, key=lambda it: it[0])
        if number in (0, len(self.points)):
            return self.points[min(number, len(self.points) - 1)][1]
        (t0, v0), (t1, v1) = self.points[number - 1 : number + 1]
        return v0 + (v1 - v0) * (second - t0) / (t1 - t0)

    def below(self, dbm: float, since: float = 0.0) -> float | None:
        """When it first gets below `dbm`, at `since` or later; None: never."""
        return self._from(since, dbm, -1)

    def above(self, dbm: float, since: float = 0.0) -> float | None:
        return self._from(since, dbm, 1)

    def turns(self) -> float:
        """When it is weakest for the last time."""
        weakest = min(dbm for _, dbm in self.points)
        return max(at for at, dbm in self.points if dbm == weakest)

    def _from(self, since: float, dbm: float, sign: int) -> float | None:
        if sign * (self.at(since) - dbm) > SAME_DB:
            return since
        for (t0, v0), (t1, v1) in self._pieces(since):
            if sign * (v1 - dbm) > SAME_DB:
                return t0 + (t1 - t0) * max(0.0, (dbm - v0) / (v1 - v0))
        return None

    def _pieces(self, since: float) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
        later = [point for point in self.points if point[0] > since]
        return pairwise([(since, self.at(since)), *later])


def read(path: Path) -> Rssi:
    """A line for each point: seconds, dBm. Raises ParameterError."""
    points = []
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(NAME, f"{path}: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            at, dbm = map(float, words)
        except ValueError:
            raise ParameterError(
                NAME, f"{path}, line {number}: {line!r} is not seconds and dBm"
            ) from None
        points.append((at, dbm))
    return Rssi(tuple(points))


def write(path: Path, rssi: Rssi) -> None:
    path.write_text("".join(f"{at!r} {dbm!r}\n" for at, dbm in rssi.points))
