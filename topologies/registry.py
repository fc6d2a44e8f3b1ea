# SPDX-License-Identifier: MIT
"""What each lab made, written down where it survives the lab's runner: /run/tm3/NAME/.

A lab makes namespaces and processes, nothing else: every device lies inside one of its
namespaces. Each namespace is pinned by a mount in the lab's folder, so that its inode cannot
come to mean another one while we know it; whoever is in it is the lab's. Processes outside
carry the lab's folder in their environment. So `clean` ends what is a lab's own and nothing else,
also if the runner was killed at the worst moment. The record names nobody whom to end but the
runner, and that only for `clean --all`; which records are believed, entry.py tells.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base.processes import Identity, end, environment_has, everybody, identify, network_of
from base.shell import CommandError, enter, run, until
from topologies.entry import FORMAT, FRESH, RECORD, boot, check_registry, entries, run_dir

MARK = "TM3_LAB"


@dataclass
class LabState:
    """One lab's entry. Opened with the first node, closed after the last."""

    path: Path | None = None  # the entry's folder, once it is open
    logs: Path | None = None  # where programs of the lab write; the entry's folder if None
    drops: bool = False  # links tell of each packet that they drop, also without `logs`
    namespaces: dict[str, int] = field(default_factory=dict)  # node's name: its shell's id
    made: float = 0.0
    doors: dict[str, Any] = field(default_factory=dict)  # of nodes that are virtual machines

    @property
    def name(self) -> str | None:
        """Unique among the labs of a registry; None while the lab is not open."""
        return self.path.name if self.path else None

    @property
    def folder(self) -> Path:
        assert self.path is not None, "the lab is not open"
        return self.path

    @property
    def log_folder(self) -> Path:
        return self.logs or self.folder

    def environment(self) -> dict[str, str]:
        """For everything that the lab starts."""
        return {**os.environ, MARK: str(self.folder)}

    def pin(self, node: str) -> Path:
        return self.folder / f"{node}.net"

    def enter(self, node: str, argv: Sequence[str | Path]) -> list[str]:
        """The command that runs `argv` in a node, whatever sort of node it is."""
        if node in self.doors:
            return self.doors[node].enter(argv)
        return enter(self.pin(node), argv)

    def open(self) -> None:
        """Makes the entry, whole at once: it is renamed into place."""
        run_dir().mkdir(mode=0o755, parents=True, exist_ok=True)
        check_registry()
        self.made = time.time()
        number = 1
        while True:
            name = f"{os.getpid()}-{number}"
            fresh = run_dir() / f".{name}"
            try:
                fresh.mkdir(mode=0o755)
                self._write(fresh / RECORD, name)
                fresh.rename(run_dir() / name)
            except OSError:  # of this process, or of a dead one with its id
                if not fresh.exists() and not (run_dir() / name).exists():
                    raise
                shutil.rmtree(fresh, ignore_errors=True)
                number += 1
                continue
            self.path = run_dir() / name
            OURS[self.path] = self
            return

    def _write(self, path: Path, name: str) -> None:
        """For root to write to, whatever its umask is."""
        runner = identify(os.getpid())
        assert runner is not None
        told = {
            "format": FORMAT,
            "lab": name,
            "boot": boot(),
            "made": self.made,
            "runner": vars(runner),
            "command": sys.argv,
            "namespaces": self.namespaces,
        }
        path.touch(mode=0o644)
        path.write_text(json.dumps(told, indent=1))

    def save(self) -> None:
        fresh = self.folder / FRESH
        self._write(fresh, self.folder.name)
        fresh.rename(self.folder / RECORD)

    def add_node(self, node: str, pid: int) -> None:
        if self.path is None:
            self.open()
        pin = self.pin(node)
        pin.touch()
        run(["mount", "--bind", f"/proc/{pid}/ns/net", pin])
        self.namespaces[node] = pid
        self.save()

    def remove_node(self, node: str) -> None:
        """Ends who is still in there; the entry goes with its last node."""
        if self.path is None or node not in self.namespaces:
            return
        pins = {self.pin(node)}
        end(lambda: inside(pins))
        unpin(self.pin(node))
        del self.namespaces[node]
        self.save()
        if not self.namespaces:
            self.close()

    def close(self) -> None:
        """Ends all that is left of the lab. Doing it twice does no harm."""
        if self.path is None:
            return
        remove(self.path)
        OURS.pop(self.path, None)
        self.path = None
        self.namespaces.clear()


OURS: dict[Path, LabState] = {}  # what this process has open


def inside(pins: set[Path]) -> set[Identity]:
    """Who is in one of these namespaces; never anybody of the machine's own or of ours."""
    machine = {network_of("self"), network_of(1)}
    wanted = set()
    for pin in pins:
        with contextlib.suppress(OSError):
            status = pin.lstat()  # what a symbolic link leads to is no pin
            wanted.add((status.st_dev, status.st_ino))
    wanted -= machine
    if not wanted:
        return set()
    return {process for process in everybody() if network_of(process.pid) in wanted}


def of_lab(folder: Path) -> set[Identity]:
    """Every process of a lab that is alive: who is in its namespaces, and who carries its mark."""
    mark = f"{MARK}={folder}"
    found = inside(set(folder.glob("*.net")))
    found |= {process for process in everybody() if environment_has(process.pid, mark)}
    return {process for process in found if process.pid != os.getpid()}


def unpin(pin: Path) -> None:
    if not pin.is_symlink():
        with contextlib.suppress(CommandError):  # not mounted: the pin was never finished
            run(["umount", "--lazy", pin])
    pin.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Ends a lab's processes and takes its folder away, its namespaces with it."""
    end(lambda: of_lab(folder))
    for pin in folder.glob("*.net"):
        unpin(pin)
    until(f"{folder} to go", lambda: _gone(folder), 5.0)


def _gone(folder: Path) -> bool:
    """The record goes last: what is left when we are killed here is still known for a lab's."""
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder.iterdir(), key=lambda it: it.name == RECORD):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def clean(*, living: bool = False) -> list[str]:
    """Removes labs whose runner is gone, or all there are; returns their names.

    Raises NotOurs where the registry is not root's alone."""
    removed = []
    for entry in entries():
        if entry.running() and not living:
            continue
        if living and entry.runner and entry.runner.pid != os.getpid():
            runner = entry.runner
            end(lambda runner=runner: {runner} if runner.alive() else set())
        remove(entry.folder)
        removed.append(entry.folder.name)
    return removed


def folders_of(runner: Identity) -> list[Path]:
    """Of the labs that this process runs, or ran."""
    return [it.folder for it in entries() if it.runner == runner or it.of_unknown(runner.pid)]


def clean_of(runner: Identity) -> None:
    """Removes the labs of a process that is gone."""
    for folder in folders_of(runner):
        remove(folder)


def clean_ours() -> None:
    """Removes the labs of this process; mn calls it in place of its own cleaning."""
    for state in list(OURS.values()):
        state.close()
