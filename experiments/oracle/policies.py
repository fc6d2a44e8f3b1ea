# SPDX-License-Identifier: MIT
"""The policies that the simulator knows: whose bytes go first, and on which path.

A connection policy orders messages: fcfs by arrival, srpt by how soon each could be complete if it
were alone, rr by turns of a quantum. A path policy either lets every path take bytes when it has
nothing left to send (minrtt, soonest, ecf), or deals each message out to the paths as it arrives.

soonest chooses among the paths that can take a byte at once. In the fluid a path can whenever it
has none, so soonest and minrtt are one there; they part where windows are counted in packets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.oracle.path import OracleError, Path

CONNECTION_POLICIES = ("fcfs", "rr", "srpt")
DEALING = ("rr", "txdelay", "one", "split", "copies")
TAKING = ("minrtt", "soonest", "ecf")
PATH_POLICIES = ("minrtt", "rr", "txdelay", "ecf", "one:NAME", "split:P", "copies", "soonest")


@dataclass(frozen=True)
class PathPolicy:
    """`one` has a path's name as its argument, `split` the nearest path's share of the bytes."""

    kind: str
    name: str = ""
    share: float = 0.0

    @property
    def deals(self) -> bool:
        return self.kind in DEALING


def connection_policy(text: str) -> str:
    if text not in CONNECTION_POLICIES:
        raise OracleError(f"connection policy {text}: none of {', '.join(CONNECTION_POLICIES)}")
    return text


def path_policy(text: str, paths: Sequence[Path]) -> PathPolicy:
    """What a word means for these paths, nearest first. `one` alone is the nearest."""
    kind, colon, argument = text.partition(":")
    if kind not in DEALING + TAKING or (colon and kind not in ("one", "split")):
        raise OracleError(f"path policy {text}: none of {', '.join(PATH_POLICIES)}")
    if kind == "one":
        name = argument or paths[0].name
        if name not in [path.name for path in paths]:
            raise OracleError(f"path policy {text}: there is no path {name}")
        return PathPolicy(kind, name=name)
    if kind == "split":
        return PathPolicy(kind, share=_percent(text, argument, paths) / 100)
    return PathPolicy(kind)


def _percent(text: str, argument: str, paths: Sequence[Path]) -> float:
    try:
        percent = float(argument)
    except ValueError:
        raise OracleError(f"path policy {text}: {argument!r} is no number of percent") from None
    if not 0 <= percent <= 100:
        raise OracleError(f"path policy {text}: {argument} is not from 0 to 100")
    if len(paths) != 2:
        raise OracleError(f"path policy {text}: a split needs two paths, not {len(paths)}")
    return percent


def dealt(
    policy: PathPolicy, paths: Sequence[Path], size: float, waiting: Sequence[float]
) -> list[float]:
    """Each path's bytes of a message, nearest first, if these bytes wait there already."""
    if policy.kind == "copies":
        return [size] * len(paths)
    if policy.kind == "rr":
        return [size / len(paths)] * len(paths)
    if policy.kind == "one":
        return [size if path.name == policy.name else 0.0 for path in paths]
    if policy.kind == "split":
        return [size * policy.share, size * (1 - policy.share)]
    return _poured(paths, size, waiting)


def _poured(paths: Sequence[Path], size: float, waiting: Sequence[float]) -> list[float]:
    """txdelay: each byte goes where round trip and queue are least, so these become equal."""
    heights = [path.rtt + bytes_ / path.rate for path, bytes_ in zip(paths, waiting, strict=True)]
    rate = weighted = 0.0
    level = float("inf")
    for height, path in sorted(zip(heights, paths, strict=True), key=lambda it: it[0]):
        if height >= level:
            break
        rate += path.rate
        weighted += path.rate * height
        level = (size + weighted) / rate
    return [
        path.rate * max(0.0, level - height) for path, height in zip(paths, heights, strict=True)
    ]
