# SPDX-License-Identifier: MIT
"""A folder of results: meta.json says what and how, runs.jsonl has a line for each finished run.

A line is written whole and flushed as soon as its run is finished. A folder of another format is
refused, never misread; a line that a crash cut short is no run.

A folder may come from somebody else, and root may be told to resume it: whatever it says of files
must lie within it, and nothing in it may be a symbolic link that we would write or delete through.
"""

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from base import called
from base.jsonl import whole_lines
from base.sources import ROOT
from experiments.machine import ATTEMPTS, attempts
from experiments.plan import Plan
from topologies.parameter import ParameterError

FORMAT = 1
META, RUNS = "meta.json", "runs.jsonl"
KINDS = ("logs", "pcaps")  # of files that a run leaves, each in a folder of its own: KIND/ID
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMMIT = re.compile(r"[A-Za-z0-9]+\+?")


class FolderError(RuntimeError):
    """Not a folder of results, or not one that this version reads."""


class Results:
    """One of them. Use `create` or `open`; writing wants `locked`."""

    def __init__(self, path: Path, meta: dict[str, Any]) -> None:
        self.path = path
        self.meta = meta
        self.made: list[Path] = []  # folders above it that were not there before

    @classmethod
    def create(cls, root: Path, name: str, commit: str | None, meta: dict[str, Any]) -> "Results":
        """A new folder below `root`. Raises FolderError where a name would lead elsewhere."""
        if not _is(_NAME, name):
            raise FolderError(f"{name!r} is no name of an experiment")
        if commit is not None and not _is(_COMMIT, commit):
            raise FolderError(f"{commit!r} is no commit")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        stem = f"{stamp}-{(commit or 'unknown')[:10]}{'+' if (commit or '')[-1:] == '+' else ''}"
        above = [it for it in (root, root / name) if not it.exists()]
        number = 1
        while True:
            path = root / name / (stem if number == 1 else f"{stem}-{number}")
            with suppress(FileExistsError):
                path.mkdir(parents=True)
                break
            number += 1
        found = cls(path, {"format": FORMAT, **meta})
        found.made = above
        found.save()
        (path / RUNS).touch()
        return found

    @classmethod
    def open(cls, path: Path) -> "Results":
        try:
            meta = json.loads((path / META).read_text())
        except FileNotFoundError:
            raise FolderError(f"{path}: no folder of results (it has no {META})") from None
        except (OSError, ValueError) as why:
            raise FolderError(f"{path / META}: {why}") from None
        told = meta.get("format") if isinstance(meta, dict) else None
        if told != FORMAT:
            raise FolderError(f"{path}: format {told!r}; this version reads {FORMAT} only")
        for inside in (*path.iterdir(), *path.glob("plots/*")):
            if inside.is_symlink():
                raise FolderError(f"{inside}: a symbolic link, which results do not have")
        return cls(path, meta)

    @property
    def plan(self) -> Plan:
        try:
            return Plan.from_dict(self.meta["plan"])
        except ParameterError as why:
            raise FolderError(f"{self.path / META}: {why}") from None
        except (KeyError, TypeError) as why:
            raise FolderError(f"{self.path / META}: its plan lacks {why}") from None

    def replan(self, plan: Plan) -> None:
        """To a longer one, in which all its runs have their places. The command becomes the one by
        which all would have been done at once; those of its calls stay."""
        with self.locked():
            told = self.meta.get("command")
            if isinstance(told, list):
                long = {"--reps": plan.reps, "--sessions": plan.sessions}
                long |= {"--apart": plan.apart_s / 60} if plan.sessions > 1 else {}
                given = [word for name, it in long.items() for word in (name, f"{it:g}")]
                self.meta["command"] = [*called.without(told, long), *given]
            self.meta["plan"] = plan.as_dict()
            self.save()

    def save(self) -> None:
        """meta.json, whole at once."""
        fresh = self.path / f"{META}.new"
        fresh.write_text(self._portable(json.dumps(self.meta, indent=1)) + "\n")
        fresh.rename(self.path / META)

    def runs(self) -> list[dict[str, Any]]:
        """The finished ones, in the order in which they ended."""
        return list(_lines(self.path / RUNS))

    def done(self, *, once_more: bool = False) -> set[str]:
        """The ids of those that need not be made. Of void ones those that were tried often enough,
        and with `once_more` none."""
        records = self.runs()
        again = {it for it, n in attempts(records).items() if once_more or n < ATTEMPTS}
        return {run["id"] for run in records} - again

    def unfinished(self) -> int:
        """How many runs of the plan are missing."""
        done = self.done()
        return sum(run.id not in done for run in self.plan.runs())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one writes; what a crash left behind is removed first."""
        with (self.path / RUNS).open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(f"{self.path}: another tm3lab writes to it") from None
            self.mend()
            self.sweep()
            yield

    def mend(self) -> None:
        """Without the line that whoever was killed over it began."""
        with (self.path / RUNS).open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)

    def sweep(self) -> None:
        """Scratch of runs that never finished."""
        done = self.done()
        for kind in KINDS:
            for path in (self.path / kind).glob("*"):
                if path.is_dir() and path.name not in done:
                    shutil.rmtree(path)

    def _portable(self, text: str) -> str:
        """Files of this folder and of the project by their names within: a folder may travel. The
        folder itself, which `resume` was told, as it is named where results go."""
        place = self.path.resolve()
        for folder in (place, self.path, ROOT):
            text = text.replace(f"{folder}/", "")
        said = json.dumps(f"results/{place.parent.name}/{place.name}")
        for folder in (place, self.path):
            text = text.replace(json.dumps(str(folder)), said)
        return text

    def append(self, record: dict[str, Any]) -> None:
        line = self._portable(json.dumps(record, allow_nan=False)) + "\n"
        with (self.path / RUNS).open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def hand_back(self) -> None:
        """What sudo's root wrote belongs to who called sudo."""
        user, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
        if not user or not group:
            return
        for path in (*self.made, *self.path.rglob("*"), self.path):
            with suppress(OSError):
                os.chown(path, int(user), int(group), follow_symlinks=False)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise FolderError(f"{path.parent}: it has no {RUNS}") from None
    for number, line in enumerate(whole_lines(text), 1):
        try:
            record = json.loads(line)
            told, _ = record["format"], record["outcome"]
        except (ValueError, KeyError, TypeError) as why:
            raise FolderError(f"{path}:{number}: no run: {why}") from None
        if told != FORMAT:
            raise FolderError(f"{path}:{number}: format {told!r}; this version reads {FORMAT} only")
        _check_names(record, f"{path}:{number}")
        yield record


def _is(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _check_names(record: dict[str, Any], where: str) -> None:
    """A run's name is that of its folders, which lie in this one."""
    name = record.get("id")
    if not _is(_NAME, name):
        raise FolderError(f"{where}: no run: its id is {name!r}")
    for kind in KINDS:
        told = record.get(kind)
        if told is not None and told != f"{kind}/{name}":
            raise FolderError(f"{where}: its {kind} are in {told!r}, not in {kind}/{name}")


def find(root: Path, name: str) -> list[Path]:
    """The folders of an experiment, the newest first."""
    there = (root / name).glob(f"*/{META}")
    return sorted((path.parent for path in there), reverse=True)
