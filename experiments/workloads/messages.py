# SPDX-License-Identifier: MIT
"""Messages of SMT in a run: the server kept up, a client program for each run."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from base.shell import enter, until
from experiments import machine
from experiments.failure import RunFailed
from experiments.workloads import traffic
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import Program, program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORT = 7007
TELLS_S = 10.0


@contextmanager
def server(lab: Lab) -> Iterator[Program]:
    words = ("server", "--address", SERVER, "--port", str(PORT), "--quic")
    argv = traffic.command("smt", *words, packages=True)
    ready = r"^smt: ready"
    with program(lab.state, "server", "smt", argv, ready=ready, seconds=30.0) as running:
        yield running


def send(run: "LiveRun", *words: str) -> dict[str, Any]:
    """What the client told, with what the server told as `server`. Raises RunFailed, also where a
    receiver was not work-conserving. Where the machine was too slow the run is void."""
    served = run.kept("smt", lambda: server(run.lab))
    before = len(served.out.splitlines())
    more = ("--seed", str(run.seed), "--cc", str(run.params["cc"]), *words)
    argv = traffic.command("smt", "client", f"{SERVER}:{PORT}", *more, packages=True)
    left_s = max(0.1, run.deadline - time.monotonic())
    meter = machine.Meter()
    argv = enter(run.lab.client.namespace, argv)
    found = json.loads(traffic.finished(run, argv, "smt-client", left_s))
    run.void(machine.crowded(meter))
    until("the server's account", lambda: len(served.out.splitlines()) > before, TELLS_S)
    found["server"] = json.loads(served.out.splitlines()[before])
    check(found)
    for name, end in ends(found):
        run.void(machine.too_slow(name, end["cpu_s"], found["seconds"]))
    return found


def ends(found: dict[str, Any]) -> tuple[tuple[str, dict[str, Any]], ...]:
    return ("client", found), ("server", found["server"])


def late(found: dict[str, Any]) -> int:
    """Messages that either end delivered at another time than the first possible one."""
    return sum(end["late"] for _, end in ends(found))


def check(found: dict[str, Any]) -> None:
    """Raises RunFailed."""
    for name, end in ends(found):
        if end["late"] != 0:
            raise RunFailed(f"the {name} delivered {end['late']} messages later than it could")
    if found["lost"]:
        raise RunFailed(f"a connection was lost: {'; '.join(found['lost'])}")
