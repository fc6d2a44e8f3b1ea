# SPDX-License-Identifier: MIT
"""Programs inside a lab: started with a log, ready when they say so, stopped by their own id."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from base.shell import until
from base.sources import ROOT
from topologies.registry import LabState


class ProgramError(RuntimeError):
    """A program of the lab did not do what it should; the message holds its log."""


def build_folder() -> Path:
    return Path(os.environ.get("TM3_BUILD") or ROOT / "build")


def built(name: str, folder: Path | None = None) -> Path:
    """A program of the project; `folder`: of another build, say an earlier commit's."""
    path = (folder or build_folder()) / name
    if not path.exists():
        raise ProgramError(f"{path} is not built: make")
    return path


class Program:
    """A process of a lab, in one of its namespaces or (`node` None) beside them."""

    def __init__(
        self, lab: LabState, node: str | None, name: str, argv: Sequence[str | Path]
    ) -> None:
        self.name = name
        self.lab = lab
        self.argv = [str(word) for word in argv]
        self.log_path = lab.log_folder / f"{name}.log"
        self.out_path = lab.log_folder / f"{name}.out"
        command = lab.enter(node, argv) if node else self.argv
        with self.log_path.open("wb") as log, self.out_path.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=lab.environment(),
                start_new_session=True,  # Ctrl-C is for the runner, who then stops us
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    @property
    def out(self) -> str:
        return self.out_path.read_text(errors="replace")

    def running(self) -> bool:
        return self.process.poll() is None

    def expect(self, pattern: str, seconds: float = 10.0) -> str:
        """Waits for a line of the log that matches."""

        def found() -> str | None:
            for line in self.log.splitlines():
                if re.search(pattern, line):
                    return line
            if not self.running():
                raise ProgramError(
                    f"{self.name} ended with {self.process.returncode} "
                    f"before /{pattern}/:\n{self.log[-4000:]}"
                )
            return None

        try:
            line = until(f"/{pattern}/ in the log of {self.name}", found, seconds)
        except TimeoutError as late:
            raise ProgramError(f"{late}\n{self.log[-4000:]}") from None
        assert line is not None
        return line

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 10.0) -> int:
        """Asks it to end, kills it if it does not; its exit status."""
        if self.running():
            self.process.send_signal(number)
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait(timeout=10)
        return status


@contextmanager
def program(
    lab: LabState,
    node: str | None,
    name: str,
    argv: Sequence[str | Path],
    *,
    ready: str | None = None,
    seconds: float = 10.0,
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[Program]:
    """Runs `argv` while the block runs; `ready` is what its log must say first."""
    started = Program(lab, node, name, argv)
    try:
        if ready is not None:
            started.expect(ready, seconds)
        yield started
    finally:
        started.stop(stop)
