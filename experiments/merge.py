# SPDX-License-Identifier: MIT
"""Folders of parts of one plan, merged into one: a run of each id, with its logs and captures."""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.folder import KINDS, FolderError, Results
from experiments.machine import VOID


def merge(paths: Sequence[Path], root: Path) -> Results:
    """A new folder below `root`; the others stay as they are. Raises FolderError."""
    parts = [Results.open(path) for path in paths]
    first = parts[0]
    for other in parts[1:]:
        if other.plan != first.plan:
            raise FolderError(f"{other.path} is of another plan than {first.path}")
        if other.meta.get("commit") != first.meta.get("commit"):
            raise FolderError(f"{other.path} is of another commit than {first.path}")
    taken = _taken(parts)
    meta = {
        **first.meta,
        "sessions": [it for part in parts for it in part.meta.get("sessions", [])],
        "labs": {name: lab for part in parts for name, lab in part.meta.get("labs", {}).items()},
        "merged": [f"{part.path.parent.name}/{part.path.name}" for part in parts],
    }
    merged = Results.create(root, first.plan.experiment, first.meta.get("commit"), meta)
    for part, record in taken:
        for source in _folders(part, record):
            shutil.copytree(source, merged.path / source.relative_to(part.path), symlinks=True)
        merged.append(record)
    return merged


def _taken(parts: Sequence[Results]) -> list[tuple[Results, dict[str, Any]]]:
    """The first record of each run, and whose it is; all that lies in its folders can be copied."""
    found: dict[str, tuple[Results, dict[str, Any]]] = {}
    void = {}  # attempts, of which none is the run
    for part in parts:
        for record in part.runs():
            if record["outcome"] == VOID:
                void.setdefault((record["id"], record["started"]), (part, record))
            else:
                found.setdefault(record["id"], (part, record))
    taken = [*void.values(), *found.values()]
    for part, record in taken:
        for folder in _folders(part, record):
            _check_plain(folder)
    return taken


def _folders(part: Results, record: dict[str, Any]) -> list[Path]:
    named = [part.path / record[kind] for kind in KINDS if record.get(kind)]
    return [path for path in named if os.path.lexists(path)]


def _check_plain(path: Path) -> None:
    """Files and folders only: a link may lead to what is not the folder's, a FIFO to no end."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        for inside in path.iterdir():
            _check_plain(inside)
    elif not stat.S_ISREG(mode):
        raise FolderError(f"{path}: neither a file nor a folder, so it is not copied")
