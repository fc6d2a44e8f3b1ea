# SPDX-License-Identifier: MIT
"""One object over paths whose rate and delay vary: what somebody could do who knew all beforehand.

A path carries bytes at its rate of the moment and delivers each after the delay of the moment, but
never before the one ahead of it. Windows are grown and nothing is lost.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.oracle.path import OracleError, check_size

STEP_S = 0.0005
MOST_S = 60.0

Series = Callable[[float], float]  # of a moment in seconds


@dataclass(frozen=True)
class Varying:
    rate: Series  # bytes a second
    delay: Series  # seconds, one way


def steps(values: Sequence[float], step_s: float) -> Series:
    """Each value for so long; from the last on it begins anew."""
    return lambda at: values[int(at / step_s) % len(values)]


def least(paths: Sequence[Varying], size: float, begin: float = 0.0) -> float:
    """Seconds until the last byte is there at best: each path carries what can be there by then,
    and nothing that would hold that up."""
    return _last(paths, size, begin, _by_arrival)


def together(paths: Sequence[Varying], size: float, begin: float = 0.0) -> float:
    """The same if every path sends until there is nothing left, as minrtt does in a fluid."""
    return _last(paths, size, begin, _by_leaving)


@dataclass(frozen=True)
class _Piece:
    leaves: float
    arrives: float  # were there none ahead of it
    behind: float  # behind all that left before by its path
    size: float


def _by_arrival(pieces: list[_Piece]) -> list[tuple[float, float]]:
    return [(it.arrives, it.size) for it in sorted(pieces, key=lambda it: it.arrives)]


def _by_leaving(pieces: list[_Piece]) -> list[tuple[float, float]]:
    return [(it.behind, it.size) for it in sorted(pieces, key=lambda it: it.leaves)]


def _last(
    paths: Sequence[Varying],
    size: float,
    begin: float,
    order: Callable[[list[_Piece]], list[tuple[float, float]]],
) -> float:
    """When the last of those is there that are used first and make up the size."""
    check_size(size)
    if not paths:
        raise OracleError("no path: one at least")
    reach = MOST_S / 2**10
    while reach <= MOST_S:
        left, last = size, 0.0
        for there, bytes_ in order([it for path in paths for it in _pieces(path, begin, reach)]):
            left -= bytes_
            last = max(last, there)
            if left <= 0:
                break
        # Else some that leave later may be there sooner.
        if left <= 0 and (order is _by_leaving or last <= reach):
            return last
        reach *= 2
    raise OracleError(f"{size:g} bytes take more than {MOST_S:g} s")


def _pieces(path: Varying, begin: float, reach: float) -> list[_Piece]:
    """All that leave before `reach`."""
    found = []
    behind = 0.0
    for n in range(math.ceil(reach / STEP_S)):
        leaves = n * STEP_S
        at = begin + leaves
        arrives = leaves + STEP_S + path.delay(at)
        behind = max(behind, arrives)
        found.append(_Piece(leaves, arrives, behind, path.rate(at) * STEP_S))
    return found
