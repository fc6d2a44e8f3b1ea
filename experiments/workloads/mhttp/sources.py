# SPDX-License-Identifier: MIT
"""Where an object may be had, a server's address by a path, and which a connection takes next."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.workloads.mhttp.path import Path


@dataclass(frozen=True)
class Source:
    path: Path
    address: str

    def __str__(self) -> str:
        return f"{self.address} by {self.path.name}"


class Sources:
    """One connection a path; a single path has one to each of its addresses."""

    def __init__(self, paths: Sequence[Path], addresses: Sequence[Sequence[str]]) -> None:
        pairs = zip(paths, addresses, strict=True)
        self.all = [Source(path, it) for path, told in pairs for it in told if path.reaches(it)]
        self._given_up: set[Source] = set()
        self._in_use: list[Source] = []

    def take(self) -> Source | None:
        """The first one of a path in no use, to a server in no use if there is one."""
        paths = {it.path for it in self._in_use}
        servers = {it.address for it in self._in_use}
        left = [it for it in self.all if it not in self._given_up and it not in self._in_use]
        if len({it.path for it in self.all}) > 1:
            left = [it for it in left if it.path not in paths]
        if not left:
            return None
        path = left[0].path
        on_path = [it for it in left if it.path == path]
        chosen = next((it for it in on_path if it.address not in servers), on_path[0])
        self._in_use.append(chosen)
        return chosen

    def release(self, source: Source, *, good: bool) -> None:
        """It is in use no more; unless it is good, it is never taken again."""
        self._in_use.remove(source)
        if not good:
            self._given_up.add(source)
