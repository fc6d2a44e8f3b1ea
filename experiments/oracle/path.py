# SPDX-License-Identifier: MIT
"""A way through the network, as the oracle sees it: a rate and a one-way delay, both constant."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_PATHS = 7
FRESH_WINDOW = 10 * 1460  # bytes; the ten segments of RFC 6928


class OracleError(ValueError):
    """A question that has no answer; the message names the wrong value."""


@dataclass(frozen=True)
class Path:
    """A path. Without a round trip of its own it has twice the one-way delay."""

    name: str
    rate: float  # bytes a second
    delay: float  # seconds, one way
    own_rtt: float | None = None  # seconds; None: twice the delay

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise OracleError(f"path {self.name}: a rate of {self.rate:g} bytes/s is not above 0")
        if not (math.isfinite(self.delay) and self.delay >= 0):
            raise OracleError(f"path {self.name}: a delay of {self.delay:g} s is not 0 or more")
        if not self.delay <= self.rtt < math.inf:
            raise OracleError(
                f"path {self.name}: a round trip of {self.rtt:g} s is shorter than one way"
            )

    @property
    def rtt(self) -> float:
        return 2 * self.delay if self.own_rtt is None else self.own_rtt


def nearest_first(paths: Sequence[Path]) -> list[Path]:
    """The paths by delay, of equal ones the faster first. Refuses what is no set of paths."""
    if not paths:
        raise OracleError("no path: one at least")
    if len(paths) > MOST_PATHS:
        raise OracleError(f"{len(paths)} paths: at most {MOST_PATHS}")
    names = [path.name for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise OracleError(f"path {name}: two have that name")
    return sorted(paths, key=lambda path: (path.delay, -path.rate))


def check_size(size: float) -> None:
    if not (math.isfinite(size) and size > 0):
        raise OracleError(f"a size of {size:g} bytes is not above 0")
