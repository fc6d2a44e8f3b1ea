# SPDX-License-Identifier: MIT
"""DEMS over two paths: where they meet in an object, and how much is sent again around that point.

The near path takes from the front, the far one from the end. Numbers in brackets are equations of
the dissertation that describes DEMS.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.oracle.optimum import shares, thresholds
from experiments.oracle.path import OracleError, Path, nearest_first


@dataclass(frozen=True)
class Around:
    """A range of a near path's and of a far path's bytes that both paths carry."""

    near_until: float  # the near path goes on to this byte
    far_from: float  # the far path has gone down to this one

    @property
    def again(self) -> float:
        """The bytes that are sent twice."""
        return self.near_until - self.far_from


def two(paths: Sequence[Path]) -> tuple[Path, Path]:
    """The near and the far one."""
    ordered = nearest_first(paths)
    if len(ordered) != 2:
        raise OracleError(f"DEMS over {len(ordered)} path(s): exactly two")
    return ordered[0], ordered[1]


def stop_below(paths: Sequence[Path]) -> float:
    """Bytes between the two, below which the far path stops (5.9)."""
    _, far = two(paths)
    return thresholds(paths)[far.name]


def meeting(paths: Sequence[Path], size: float) -> float:
    """The byte of an object where the two meet."""
    near, _ = two(paths)
    return shares(paths, size)[near.name]


def _both(paths: Sequence[Path]) -> float:
    near, far = two(paths)
    return near.rate * far.rate / (near.rate + far.rate)


def most_again(paths: Sequence[Path]) -> float:
    """DEMS-S: the most that is sent again, until all is acknowledged or sent twice (5.10)."""
    near, far = two(paths)
    return _both(paths) * (near.rtt + far.rtt)


def again(paths: Sequence[Path], deviation: float) -> float:
    """DEMS-F: bytes sent again if the difference of delays is known to some seconds (5.13)."""
    if deviation < 0:
        raise OracleError(f"a deviation of {deviation:g} s is below 0")
    return 2 * deviation * _both(paths)


def near_goes_on(paths: Sequence[Path], deviation: float, ago: float) -> bool:
    """Whether the near path sends again what the far one sent so many seconds ago (5.11)."""
    near, far = two(paths)
    return ago <= far.delay - near.delay + deviation


def far_goes_on(paths: Sequence[Path], deviation: float, between: float) -> bool:
    """Whether the far path goes on with so many bytes between the two (5.12).

    A deviation above the difference of delays leaves a threshold below 0: it goes on.
    """
    near, far = two(paths)
    return between >= (far.delay - near.delay - deviation) * near.rate


def around(paths: Sequence[Path], size: float, deviation: float) -> Around:
    """The range around the meeting point that both carry, cut at the object's ends."""
    half = again(paths, deviation) / 2
    here = meeting(paths, size)
    return Around(near_until=min(size, here + half), far_from=max(0.0, here - half))
