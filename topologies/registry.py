# SPDX-License-Identifier: MIT
"""What each lab made, written down where it survives the lab's runner: /run/tm3/NAME/.

A lab makes namespaces and processes, nothing else: every device lies inside one of its
namespaces. Each namespace is pinned by a mount in the lab's folder, so that its inode cannot
come to mean another one while we know it; whoever is in it is the lab's. Processes outside
carry the lab's name in their environment. So `clean` ends what is a lab's own and nothing else,
also if the runner was killed at the worst moment.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from topologies.processes import (
    Identity,
    end,
    environment_has,
    everybody,
    identify,
    network_of,
    start_of,
)
from topologies.shell import CommandError, enter, run, until

FORMAT = 1
MARK = "TM3_LAB"


def run_dir() -> Path:
    return Path(os.environ.get("TM3_RUN", "/run/tm3"))


@dataclass
class LabState:
    """One lab's entry. Opened with the first node, closed after the last."""

    name: str | None = None
    logs: Path | None = None  # where programs of the lab write; the entry's folder if None
    namespaces: dict[str, int] = field(default_factory=dict)  # node's name: its shell's id
    processes: dict[str, Identity] = field(default_factory=dict)
    made: float = 0.0
    doors: dict[str, Any] = field(default_factory=dict)  # of nodes that are virtual machines

    @property
    def folder(self) -> Path:
        assert self.name is not None, "the lab is not open"
        return run_dir() / self.name

    @property
    def log_folder(self) -> Path:
        return self.logs or self.folder

    def environment(self) -> dict[str, str]:
        """For everything that the lab starts."""
        assert self.name is not None, "the lab is not open"
        return {**os.environ, MARK: self.name}

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
        self.made = time.time()
        number = 1
        while True:
            name = f"{os.getpid()}-{number}"
            fresh = run_dir() / f".{name}"
            try:
                fresh.mkdir()
                self.name = name
                (fresh / "state.json").write_text(self._text())
                fresh.rename(run_dir() / name)
            except OSError:  # of this process, or of a dead one with its id
                if not fresh.exists() and not (run_dir() / name).exists():
                    raise
                shutil.rmtree(fresh, ignore_errors=True)
                number += 1
                continue
            OURS[name] = self
            return

    def _text(self) -> str:
        runner = identify(os.getpid())
        assert runner is not None
        return json.dumps(
            {
                "format": FORMAT,
                "lab": self.name,
                "made": self.made,
                "runner": vars(runner),
                "command": sys.argv,
                "namespaces": self.namespaces,
                "processes": {name: vars(p) for name, p in self.processes.items()},
            },
            indent=1,
        )

    def save(self) -> None:
        fresh = self.folder / "state.json.new"
        fresh.write_text(self._text())
        fresh.rename(self.folder / "state.json")

    def add_node(self, node: str, pid: int) -> None:
        if self.name is None:
            self.open()
        pin = self.pin(node)
        pin.touch()
        run(["mount", "--bind", f"/proc/{pid}/ns/net", pin])
        self.namespaces[node] = pid
        self.save()

    def remove_node(self, node: str) -> None:
        """Ends who is still in there; the entry goes with its last node."""
        if self.name is None or node not in self.namespaces:
            return
        pins = {self.pin(node)}
        end(lambda: inside(pins))
        unpin(self.pin(node))
        del self.namespaces[node]
        self.save()
        if not self.namespaces:
            self.close()

    def add_process(self, name: str, pid: int) -> None:
        found = identify(pid)
        if found:
            self.processes[name] = found
            self.save()

    def remove_process(self, name: str) -> None:
        self.processes.pop(name, None)
        if self.name:
            self.save()

    def close(self) -> None:
        """Ends all that is left of the lab. Doing it twice does no harm."""
        if self.name is None:
            return
        remove(self.folder)
        OURS.pop(self.name, None)
        self.name = None
        self.namespaces.clear()
        self.processes.clear()


OURS: dict[str, LabState] = {}  # what this process has open


@dataclass(frozen=True)
class Entry:
    """A lab as its folder tells it."""

    folder: Path
    state: dict[str, Any]

    @property
    def runner(self) -> Identity | None:
        known = self.state.get("runner")
        return Identity(**known) if known else None

    def running(self) -> bool:
        if self.runner:
            return self.runner.alive()
        # A folder without its record was never finished; its name tells whose it is.
        pid = self.folder.name.lstrip(".").split("-")[0]
        return pid.isdigit() and start_of(int(pid)) is not None


def entries() -> Iterator[Entry]:
    if not run_dir().is_dir():
        return
    for folder in sorted(run_dir().iterdir()):
        if folder.is_dir():
            try:
                state = json.loads((folder / "state.json").read_text())
            except (OSError, ValueError):
                state = {}
            yield Entry(folder, state)


def inside(pins: set[Path]) -> set[Identity]:
    """Who is in one of these namespaces; never anybody of the machine's own or of ours."""
    machine = {network_of("self"), network_of(1)}
    wanted = set()
    for pin in pins:
        with contextlib.suppress(OSError):
            status = pin.stat()
            wanted.add((status.st_dev, status.st_ino))
    wanted -= machine
    if not wanted:
        return set()
    return {process for process in everybody() if network_of(process.pid) in wanted}


def of_lab(folder: Path) -> set[Identity]:
    """Every process of a lab that is alive."""
    found = inside(set(folder.glob("*.net")))
    mark = f"{MARK}={folder.name}"
    found |= {process for process in everybody() if environment_has(process.pid, mark)}
    try:
        known = json.loads((folder / "state.json").read_text()).get("processes", {})
    except (OSError, ValueError):
        known = {}
    found |= {process for process in (Identity(**p) for p in known.values()) if process.alive()}
    return {process for process in found if process.pid != os.getpid()}


def unpin(pin: Path) -> None:
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
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def clean(*, living: bool = False) -> list[str]:
    """Removes labs whose runner is gone, or all there are; returns their names."""
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


def clean_ours() -> None:
    """Removes the labs of this process; mn calls it in place of its own cleaning."""
    for state in list(OURS.values()):
        state.close()
