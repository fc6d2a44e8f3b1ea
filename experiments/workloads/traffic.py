# SPDX-License-Identifier: MIT
"""Transfers between client and server of a run: the server kept up, a client program for each run.

The ways: `pipes` (the client is redirected), `direct`, `haproxy` (rp's host redirects to a proxy
that splits, see topologies/splitter.py), and `mptcp`, which is one connection with eight subflows,
or over several last miles with one by each, see mptcp.py. The programs are the same.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import until
from base.sources import ROOT
from experiments.failure import RunFailed
from experiments.workloads import line, mptcp
from experiments.workloads.actors import Actor, Until
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import Program, program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORT, PLAIN_PORT, MPTCP_PORT = 7000, 7001, 7002
LISTENED = (str(PORT), str(PLAIN_PORT), f"mptcp:{MPTCP_PORT}")
Found = dict[str, dict[str, Any]]


def command(
    module: str, *words: str, python: str = sys.executable, packages: bool = False
) -> list[str]:
    """A program of ours, started without looking for packages, unless it needs some."""
    start = ["env", f"PYTHONPATH={ROOT}", python, *([] if packages else ["-S"]), "-m"]
    return [*start, f"experiments.workloads.{module}", *words]


@contextmanager
def server(lab: Lab) -> Iterator[Program]:
    argv = command("serve", SERVER, *LISTENED)
    with program(lab.state, "server", "traffic", argv, ready=r"^serve: ready") as running:
        yield running


def wait_until_idle(served: Program, seconds: float) -> None:
    """Until the server has ended the connections of the run before, a thread each. That takes it
    longer than the kernel takes to end their sockets."""
    tasks = Path(f"/proc/{served.pid}/task")
    own = 1 + len(LISTENED)
    until("the server to end what it served", lambda: len(list(tasks.iterdir())) <= own, seconds)


def way(run: "LiveRun") -> dict[str, Any]:
    """What an actor is told so that it goes the way of this run; the way is made if need be."""
    if run.params["way"] == "mptcp":
        run.kept("mptcp", lambda: mptcp.subflows(run.lab))
        return {"port": MPTCP_PORT, "mptcp": True}
    return {"port": PORT}


def play(run: "LiveRun", actors: Mapping[str, Actor], name: str = "client") -> Found:
    """The actors together; what each found, by name. Raises RunFailed."""
    with _playing(run, actors, name) as client:
        return json.loads(client.result())


def play_and_go_on(run: "LiveRun", actors: Mapping[str, Actor], name: str) -> None:
    """The same until their work is done. The program that did it is not waited for, but ended:
    what it found is lost. Raises RunFailed."""
    with _playing(run, actors, name) as client:
        if not client.wait_done():
            client.result()


@contextmanager
def beside(run: "LiveRun", actors: Mapping[str, Actor], name: str = "beside") -> Iterator[Found]:
    """The actors, all in the background, while the block runs; what each found, after it."""
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="until-") as folder:
        end = Path(folder) / "end"
        found: Found = {}
        with _playing(run, {**actors, "end": Until(path=str(end))}, name) as client:
            yield found
            end.touch()
            found |= json.loads(client.result())


@contextmanager
def _playing(run: "LiveRun", actors: Mapping[str, Actor], name: str) -> Iterator["Client"]:
    run.kept("traffic", lambda: server(run.lab))
    seconds = max(0.1, run.deadline - time.monotonic())
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="line-") as folder:
        scene = {
            "address": SERVER,
            "cc": run.params["cc"],
            "seed": run.seed,
            "seconds": seconds,
            "line": folder,
            "actors": {name: actor.described() for name, actor in actors.items()},
        }
        python = "python3" if run.params["client"] == "vm" else sys.executable  # a guest's own
        argv = run.lab.state.enter("client", command("play", json.dumps(scene), python=python))
        with running(run, argv, name, seconds, Path(folder)) as client:
            yield client


def finished(run: "LiveRun", argv: list[str], name: str, seconds: float) -> str:
    """Runs a client that knows no start line to its end; what it wrote. Raises RunFailed."""
    with running(run, argv, name, seconds) as client:
        return client.result()


@dataclass(frozen=True)
class Client:
    """A program that runs in the client."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    seconds: float  # that it may take
    line_at: Path | None

    def result(self) -> str:
        """What it wrote, when it has ended. Raises RunFailed."""
        try:
            out, _ = self.process.communicate(timeout=max(0.1, self.seconds))
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{self.name}: not done after {self.seconds:.1f} s") from None
        if self.process.returncode:
            lines = self.log.read_text(errors="replace").strip().splitlines() or ["no word"]
            raise RunFailed(f"{self.name} ended with {self.process.returncode}: {lines[-1]}")
        return out.decode()

    def wait_done(self) -> bool:
        """Of one that knows a start line: whether its work is done."""
        assert self.line_at is not None
        return line.wait_done(self.line_at, self.process, self.seconds)


@contextmanager
def running(
    run: "LiveRun", argv: list[str], name: str, seconds: float, line_at: Path | None = None
) -> Iterator[Client]:
    """A client while the block runs.

    What it said of errors is kept in the folder. One that knows no start line is what the run
    begins with.
    """
    if line_at is None:
        run.begin()
    log = run.folder / f"{name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=run.lab.state.environment(),
        )

    try:
        if line_at is not None:
            run.went = line.start(line_at, process, run.begin)
        yield Client(name, process, log, seconds, line_at)
    finally:
        process.kill()
        process.communicate()
