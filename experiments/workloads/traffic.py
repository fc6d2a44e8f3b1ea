# SPDX-License-Identifier: MIT
"""Transfers between client and server of a bed: the server kept up, a client program for each run.

The ways: `pipes` (the client is redirected), `direct`, and `mptcp`, which is one connection with
eight subflows, see mptcp.py. The programs are the same.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from experiments.model import RunFailed
from experiments.workloads import mptcp
from experiments.workloads.actors import Actor
from topologies.lab import Lab
from topologies.programs import ROOT, Program, program
from topologies.shell import enter
from topologies.topos import SERVER

if TYPE_CHECKING:
    from experiments.bed import Bed

PORT, PLAIN_PORT, MPTCP_PORT = 7000, 7001, 7002
Found = dict[str, dict[str, Any]]


def command(module: str, *words: str) -> list[str]:
    """A program of ours, started without looking for packages that it does not need."""
    python = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-S", "-m"]
    return [*python, f"experiments.workloads.{module}", *words]


@contextmanager
def server(lab: Lab) -> Iterator[Program]:
    ports = (str(PORT), str(PLAIN_PORT), f"mptcp:{MPTCP_PORT}")
    argv = command("serve", SERVER, *ports)
    with program(lab.state, "server", "traffic", argv, ready=r"^serve: ready") as running:
        yield running


def way(bed: "Bed") -> dict[str, Any]:
    """What an actor is told so that it goes the way of this run; the way is made if need be."""
    if bed.params["way"] == "mptcp":
        bed.kept("mptcp", lambda: mptcp.several_subflows(bed.lab))
        return {"port": MPTCP_PORT, "mptcp": True}
    return {"port": PORT}


def play(
    bed: "Bed", actors: Mapping[str, Actor], first: Mapping[str, Actor] | None = None
) -> Found:
    """The actors together, after those of `first`; what each found, by name. Raises RunFailed."""
    bed.kept("traffic", lambda: server(bed.lab))
    seconds = bed.deadline - time.monotonic()
    scene = {
        "address": SERVER,
        "cc": bed.params["cc"],
        "seed": bed.seed,
        "seconds": max(0.1, seconds),
        "first": {name: actor.described() for name, actor in (first or {}).items()},
        "actors": {name: actor.described() for name, actor in actors.items()},
    }
    argv = enter(bed.lab.client.namespace, command("play", json.dumps(scene)))
    return json.loads(finished(bed, argv, "client", seconds))


def finished(bed: "Bed", argv: list[str], name: str, seconds: float) -> str:
    """Runs a client to its end; what it wrote. What it said of errors is kept in the folder."""
    log = bed.folder / f"{name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=bed.lab.state.environment(),
        )
        try:
            out, _ = process.communicate(timeout=max(0.1, seconds))
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{name}: not done after {seconds:.1f} s") from None
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        lines = log.read_text(errors="replace").strip().splitlines() or ["no word"]
        raise RunFailed(f"{name} ended with {process.returncode}: {lines[-1]}")
    return out.decode()
