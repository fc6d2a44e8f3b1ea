# SPDX-License-Identifier: MIT
"""A lab's entry as another process finds it, and whether it may be believed.

Whoever cleans up is root, and ends processes and deletes folders because a file says so. So an
entry counts only where nobody but root can have written it: the registry, the entry's folder and
its record are root's, no one else may write to them, and none is a symbolic link. Whatever else
lies in the registry is left alone, and told.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.processes import Identity, start_of

FORMAT = 2
RECORD = "state.json"
FRESH = f"{RECORD}.new"
_NAME = re.compile(r"\.?([1-9][0-9]*)-[1-9][0-9]*")  # of the runner's process and the lab's number


class NotOurs(RuntimeError):
    """No entry of a lab, or one that somebody else than root can have written."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")


def run_dir() -> Path:
    """Where labs are written down."""
    return Path(os.environ.get("TM3_RUN", "/run/tm3")).absolute()


def boot() -> str:
    """Which one it is: ids and start times of processes mean nothing after the next."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def check_ours(path: Path, kind: str) -> None:
    """Raises NotOurs where somebody else than root may have made or changed it."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise NotOurs(path, "it is a symbolic link")
    if not (stat.S_ISDIR if kind == "folder" else stat.S_ISREG)(found.st_mode):
        raise NotOurs(path, f"it is no {kind}")
    if found.st_uid != 0:
        raise NotOurs(path, f"it is user {found.st_uid}'s, not root's")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotOurs(path, "others than root may write to it")


def check_registry() -> None:
    """Raises NotOurs where labs are written down in a place that is not root's alone."""
    if os.path.lexists(run_dir()):
        check_ours(run_dir(), "folder")


@dataclass(frozen=True)
class Entry:
    """A lab as its folder tells it. `runner` is None where the record was never finished."""

    folder: Path
    runner: Identity | None
    made: float = 0.0
    namespaces: tuple[str, ...] = ()  # by the names of their nodes

    def running(self) -> bool:
        if self.runner:
            return self.runner.alive()
        # Without a record the folder's name tells whose it is; its id may be another's by now.
        return start_of(self._pid()) is not None

    def of_unknown(self, pid: int) -> bool:
        """Whether it has no record, and the name that a process of this id gives."""
        return self.runner is None and self._pid() == pid

    def _pid(self) -> int:
        found = _NAME.fullmatch(self.folder.name)
        assert found is not None
        return int(found[1])


def entry(folder: Path) -> Entry:
    """Raises NotOurs."""
    check_ours(folder, "folder")
    if not _NAME.fullmatch(folder.name):
        raise NotOurs(folder, "its name is not a lab's")
    for place in mounted_below(folder):
        if place.parent != folder or place.suffix != ".net":
            raise NotOurs(folder, f"{place} is mounted in it")
    if not os.path.lexists(folder / RECORD):
        return _unfinished(folder)
    check_ours(folder / RECORD, "file")
    try:
        told = json.loads((folder / RECORD).read_text())
    except ValueError:
        return _unfinished(folder)
    return _told(folder, told)


def _unfinished(folder: Path) -> Entry:
    """One that its runner was killed over, before there was anything in it, or after."""
    others = {path.name for path in folder.iterdir()} - {RECORD, FRESH}
    if others:
        raise NotOurs(folder, f"it has no record of a lab, but {min(others)}")
    return Entry(folder, None)


def _told(folder: Path, told: Any) -> Entry:
    try:
        if told["format"] != FORMAT or told["lab"] != folder.name.lstrip("."):
            raise NotOurs(folder, f"its {RECORD} is of another lab or version")
        known = Identity(int(told["runner"]["pid"]), int(told["runner"]["start"]))
        # A runner of an earlier boot is gone, whoever has its id now.
        runner = known if told["boot"] == boot() else Identity(known.pid, -1)
        return Entry(folder, runner, float(told["made"]), tuple(told["namespaces"]))
    except (KeyError, TypeError, ValueError):
        raise NotOurs(folder, f"its {RECORD} is no record of a lab") from None


def entries() -> Iterator[Entry]:
    """The labs of this machine. Raises NotOurs where the registry itself is not root's alone."""
    for folder in _folders():
        try:
            yield entry(folder)
        except (NotOurs, FileNotFoundError):  # or it went meanwhile
            continue


def doubts() -> Iterator[str]:
    """What lies in the registry and is no lab's, and why it is not believed; a line each."""
    try:
        folders = _folders()
    except NotOurs as why:
        yield str(why)
        return
    for folder in folders:
        try:
            entry(folder)
        except NotOurs as why:
            yield str(why)
        except FileNotFoundError:
            continue


def _folders() -> list[Path]:
    check_registry()
    return sorted(run_dir().iterdir()) if run_dir().exists() else []


def mounted_below(folder: Path) -> list[Path]:
    """The places below a folder where something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [Path(re.sub(r"\\(\d{3})", _octal, line.split()[4])) for line in lines]
    return [place for place in places if folder in place.parents]


def _octal(found: re.Match[str]) -> str:
    return chr(int(found[1], 8))
