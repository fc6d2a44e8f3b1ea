# SPDX-License-Identifier: MIT
"""Programs that run in the background of a measurement, each on its core."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import accounts

READY_SECONDS = 15.0
STOP_SECONDS = 5.0
POLL_SECONDS = 0.005


class Trouble(Exception):
    """Something did not run as it should; the text says what was waited for."""


@dataclass(frozen=True)
class Program:
    """One process of a relay. Ready when it listens on `port` and has said `says`."""

    role: str
    argv: tuple[str, ...]
    core: int | None = None
    port: int | None = None
    says: str | None = None

    def pinned(self) -> list[str]:
        pin = [] if self.core is None else ["taskset", "-c", str(self.core)]
        return pin + list(self.argv)


@dataclass(frozen=True)
class Running:
    program: Program
    process: subprocess.Popen[bytes]
    log: Path

    def ready(self) -> bool:
        says, port = self.program.says, self.program.port
        if says is not None and says not in self.log.read_text(errors="replace"):
            return False
        return port is None or port in accounts.listening_ports()


def wait_until(condition: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Trouble(f"waited {seconds:g} s for {what}")
        time.sleep(POLL_SECONDS)


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def wait_ready(running: Running) -> None:
    role = running.program.role

    def ready_or_gone() -> bool:
        if running.process.poll() is not None:
            raise Trouble(f"{role} ended at once: {last_line(running.log)}")
        return running.ready()

    wait_until(ready_or_gone, f"{role} to be ready", READY_SECONDS)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(programs: list[Program], directory: Path) -> Iterator[list[Running]]:
    """Starts them one after the other, each when the one before is ready."""
    with contextlib.ExitStack() as stack:
        started = []
        for program in programs:
            log = directory / f"{program.role}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    program.pinned(), stdin=subprocess.DEVNULL, stdout=out, stderr=out
                )
            stack.callback(stop, process)
            started.append(Running(program, process, log))
            wait_ready(started[-1])
        yield started
