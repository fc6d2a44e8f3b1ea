# SPDX-License-Identifier: MIT
"""What is watched: a folder that proxies write to, a run's, or a folder of results with many.

Nothing is written there, and nothing in it is locked: who writes goes on as if nobody looked.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from experiments.folder import META, RUNS, FolderError, Results

STATS = {who: f"{who}.stats.jsonl" for who in ("rp", "lp")}
LOGS = {who: f"{who}.log" for who in ("rp", "lp")}
FRESH_S = 5.0  # what was written since then is of a proxy that runs
_PLOT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.svg")


def has_statistics(folder: Path) -> bool:
    return any((folder / name).is_file() for name in STATS.values())


class Watched:
    """`results` is None where the folder is that of a single pair of proxies."""

    def __init__(self, folder: Path, title: str | None = None) -> None:
        """`title`: of a lab whose proxies may still have to begin. Raises FolderError."""
        self.folder, self.title = folder, title
        self.results = (folder / META).is_file()
        if not folder.is_dir():
            raise FolderError(f"{folder}: no such folder")
        if self.results:
            Results.open(folder)
        elif title is None and not has_statistics(folder):
            raise FolderError(
                f"{folder}: neither a folder of results nor one with {' or '.join(STATS.values())}"
            )

    @property
    def name(self) -> str:
        if self.title is not None:
            return self.title
        path = self.folder.resolve()
        return f"{path.parent.name} / {path.name}" if self.results else path.name

    def is_live(self) -> bool:
        """Somebody writes to it."""
        if self.results and self._is_locked():
            return True
        found = self.newest()
        files = [found[1] / name for name in STATS.values()] if found else []
        return any(time.time() - _written_at(it) < FRESH_S for it in files)

    def _is_locked(self) -> bool:
        """As the kernel tells: to try it would be in the way of who wants to."""
        told = (self.folder / RUNS).stat()
        place = f"{os.major(told.st_dev):02x}:{os.minor(told.st_dev):02x}:{told.st_ino}"
        try:
            locks = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return False
        return any("FLOCK" in it.split() and place in it.split() for it in locks)

    def run(self, ident: str) -> Path | None:
        """The folder of a run whose statistics are here."""
        folder = self.folder / "logs" / ident
        inside = self.results and folder.parent == self.folder / "logs" and ident not in ("", "..")
        return folder if inside and has_statistics(folder) else None

    def kept(self) -> list[str]:
        """The runs whose statistics are here, by name."""
        if not self.results or not (self.folder / "logs").is_dir():
            return []
        there = (self.folder / "logs").iterdir()
        return sorted(it.name for it in there if it.is_dir() and has_statistics(it))

    def newest(self) -> tuple[float, Path] | None:
        """Where the proxies write now, or wrote last, and when a file was last made there."""
        runs = self._runs() if self.results else [(_written_at(self.folder), self.folder)]
        for at, path in sorted(runs, reverse=True):
            if not self.results or has_statistics(path):
                return at, path
        return None

    def _runs(self) -> list[tuple[float, Path]]:
        """With the time at which a file was last made there."""
        logs = self.folder / "logs"
        found = logs.iterdir() if logs.is_dir() else ()
        return [(at, it) for it in found if (at := _written_at(it))]

    def drawn(self) -> dict[str, int]:
        """Pictures that were drawn of it so far, and when, in nanoseconds."""
        there = (self.folder / "plots").glob("*.svg") if self.results else ()
        found: dict[str, int] = {}
        for it in sorted(there):
            with suppress(FileNotFoundError):
                if _PLOT.fullmatch(it.name) and not it.is_symlink():
                    found[it.name] = it.stat().st_mtime_ns
        return found

    def plot(self, name: str) -> bytes | None:
        return (self.folder / "plots" / name).read_bytes() if name in self.drawn() else None


def _written_at(path: Path) -> float:
    """0: it is gone, as runs' folders may be while somebody looks."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
