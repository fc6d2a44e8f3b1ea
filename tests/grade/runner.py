# SPDX-License-Identifier: MIT
"""Runs checks, each in a process and network namespace of its own, and outlives all of them."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from . import namespace
from .failure import CannotRun, Failure
from .lab import PORT, Lab
from .registry import Check

PASS, FAIL, NOT_RUN = "pass", "FAIL", "not run"
# Beyond a check's own deadline, before its process is killed from outside.
GRACE_S = 5.0


@dataclass(frozen=True)
class Result:
    name: str
    level: int
    title: str
    status: str
    seen: str
    seconds: float = 0.0
    output: str = ""  # the end of what RP printed


@dataclass(frozen=True)
class Settings:
    command: list[str]
    patience: float
    jobs: int
    isolated: bool


def in_child(work: Callable[[], dict]) -> tuple[int, int]:
    """Do work in a process of its own; its pid, and where its answer can be read."""
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return pid, read_end
    status = 1
    try:
        namespace.die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(read_end)
        with os.fdopen(write_end, "w") as answer:
            json.dump(work(), answer)
        status = 0
    finally:
        os._exit(status)


def probe_namespace() -> tuple[str, str]:
    """How namespaces are to be had, or else why not."""

    def probe() -> dict:
        try:
            return {"how": namespace.enter(), "why_not": ""}
        except OSError as err:
            return {"how": "", "why_not": str(err)}

    pid, answer = in_child(probe)
    with os.fdopen(answer) as stream:
        found = json.load(stream)
    os.waitpid(pid, 0)
    return found["how"], found["why_not"]


def port_is_taken() -> bool:
    """Only asked where checks run on the host itself."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("0.0.0.0", PORT))
        except OSError:
            return True
    return False


def raise_limits() -> None:
    """Thousands of connections need descriptors, here and in RP, which inherits the limit."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 20000
    if hard == resource.RLIM_INFINITY or hard > enough:
        hard = enough
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )


def run_here(check: Check, settings: Settings) -> dict:
    """One check, in this process, which is nothing but this check's."""
    namespace.adopt_orphans()
    raise_limits()
    started = time.monotonic()
    lab = None
    output = ""
    try:
        if settings.isolated:
            namespace.enter()
        lab = Lab(settings.command, check.seconds, settings.patience, settings.isolated)
        status, seen = PASS, check.run(lab)
    except Failure as failure:
        status, seen = FAIL, str(failure)
    except CannotRun as reason:
        status, seen = NOT_RUN, str(reason)
    except Exception as err:  # the grader's own mistake must not look like RP's
        status, seen = FAIL, f"the grader itself failed: {type(err).__name__}: {err}"
        output = traceback.format_exc()
    finally:
        if lab:
            lab.close()
    if lab and lab.remote:
        output += lab.remote.output_text()
        lab.remote.close()
    return asdict(_result(check, status, seen, time.monotonic() - started, output))


def _result(check: Check, status: str, seen: str, seconds: float = 0.0, out: str = "") -> Result:
    return Result(check.name, check.level, check.title, status, seen, round(seconds, 3), out)


def not_run(check: Check, why: str) -> Result:
    return _result(check, NOT_RUN, why)


class Running:
    """A check under way in its child process."""

    def __init__(self, check: Check, settings: Settings) -> None:
        self.check = check
        self.end = time.monotonic() + check.seconds * settings.patience + GRACE_S
        self.started = time.monotonic()
        self.answer = b""
        self.pid, self.fd = in_child(lambda: run_here(check, settings))

    def read(self) -> bool:
        """False at the end of the answer."""
        chunk = os.read(self.fd, 1 << 16)
        self.answer += chunk
        return bool(chunk)

    def finish(self) -> Result:
        os.close(self.fd)
        _pid, status = os.waitpid(self.pid, 0)
        try:
            return Result(**json.loads(self.answer))
        except ValueError:
            seen = f"the grader's own process for this check ended (wait status {status})"
            return _result(self.check, FAIL, seen, time.monotonic() - self.started)

    def kill(self) -> None:
        # RP dies with it (PR_SET_PDEATHSIG).
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def kill_late(self) -> Result:
        self.kill()
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self.started
        return _result(self.check, FAIL, f"was not over after {seconds:.0f} s", seconds)


def run_all(
    checks: Iterable[Check], settings: Settings, report: Callable[[Result], None]
) -> list[Result]:
    """Run them, so many at a time as there are jobs; results in the order of the checks."""
    waiting = list(checks)
    order = [check.name for check in waiting]
    running: dict[int, Running] = {}
    results: dict[str, Result] = {}

    def done(result: Result) -> None:
        results[result.name] = result
        report(result)

    try:
        while waiting or running:
            while waiting and len(running) < settings.jobs:
                check = waiting.pop(0)
                if check.needs_namespace and not settings.isolated:
                    done(not_run(check, "needs a network namespace"))
                    continue
                started = Running(check, settings)
                running[started.fd] = started
            for result in _collect(running):
                done(result)
    finally:
        for left in running.values():
            left.kill()
    return [results[name] for name in order]


def _collect(running: dict[int, Running]) -> Iterable[Result]:
    """Wait for one to answer or to be late."""
    if not running:
        return
    timeout = max(0.0, min(check.end for check in running.values()) - time.monotonic())
    for fd in select.select(list(running), [], [], timeout)[0]:
        if not running[fd].read():
            yield running.pop(fd).finish()
    for fd in [fd for fd, check in running.items() if time.monotonic() > check.end]:
        yield running.pop(fd).kill_late()
