# SPDX-License-Identifier: MIT
"""The course's walk-through in a run: its `server` on the server, its `client` on the client."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from base.shell import enter
from experiments.workloads.traffic import command, finished
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import Program, program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORT = 6001


@contextmanager
def server(lab: Lab, count: int) -> Iterator[Program]:
    argv = command("walkthrough", "server", str(PORT), str(count))
    with program(lab.state, "server", "course", argv, ready=r"^server: ready") as running:
        yield running


def walk_through(run: "LiveRun", count: int, up: int, down: int) -> list[float]:
    """When each of the `count` responses was complete, since connect() was called."""
    with server(run.lab, count):
        words = ("client", SERVER, str(PORT), str(count), str(up), str(down), str(run.params["cc"]))
        argv = enter(run.lab.client.namespace, command("walkthrough", *words))
        return json.loads(finished(run, argv, "client", run.deadline - time.monotonic()))
