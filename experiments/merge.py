# SPDX-License-Identifier: MIT
"""Folders of parts of one plan, merged into one: a run of each id, with its logs and captures."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from experiments.folder import FolderError, Results


def merge(paths: Sequence[Path], root: Path) -> Results:
    """A new folder below `root`; the others stay as they are. Raises FolderError."""
    parts = [Results.open(path) for path in paths]
    first = parts[0]
    for other in parts[1:]:
        if other.plan != first.plan:
            raise FolderError(f"{other.path} is of another plan than {first.path}")
        if other.meta.get("commit") != first.meta.get("commit"):
            raise FolderError(f"{other.path} is of another commit than {first.path}")
    meta = {
        **first.meta,
        "sessions": [it for part in parts for it in part.meta.get("sessions", [])],
        "labs": {name: lab for part in parts for name, lab in part.meta.get("labs", {}).items()},
        "merged": [str(part.path) for part in parts],
    }
    merged = Results.create(root, first.plan.experiment, first.meta.get("commit"), meta)
    done: set[str] = set()
    for part in parts:
        for record in part.runs():
            if record["id"] not in done:
                done.add(record["id"])
                _take(part, record, merged)
    return merged


def _take(part: Results, record: dict[str, object], merged: Results) -> None:
    for kind in ("logs", "pcaps"):
        if record.get(kind) and (part.path / str(record[kind])).is_dir():
            shutil.copytree(part.path / str(record[kind]), merged.path / str(record[kind]))
    merged.append(record)
