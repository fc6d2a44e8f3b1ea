# SPDX-License-Identifier: MIT
"""An object by mHTTP's client in a run: by ranges or one plain GET, over one path or both.

Servers and resolvers are kept up. Each last mile's resolver tells a server of its own, where there
are two.
"""

import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import enter
from experiments import machine
from experiments.failure import RunFailed
from experiments.workloads import traffic
from experiments.workloads.replicas import PORT, Replicas, replicas
from experiments.workloads.resolvers import NAME, resolvers
from topologies.addresses import client_address, rp_address

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

Watch = Callable[["subprocess.Popen[bytes]"], None]


def path(number: int, *, local: bool = True) -> tuple[str, str]:
    """Of the client's words: by the last mile `number`, from 0 on; `local`: asking its resolver."""
    resolver = f",{rp_address(number)}" if local else ""
    return "--path", f"{client_address(number)}{resolver}"


def object_of(run: "LiveRun", size: int, *words: str, watch: Watch | None = None) -> dict[str, Any]:
    """The client's account. `watch` sees the client from its start on and returns when it has
    ended, or before. Raises RunFailed, also where the object is another one, and where a connection
    was lost. Where the machine was too slow the run is void."""
    there: Replicas = run.kept("replicas", lambda: replicas(run.lab))
    run.kept("resolvers", lambda: resolvers(run.lab))
    digest = there.digest(size)
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="object-") as name:
        file, account = Path(name) / "object", Path(name) / "account.jsonl"
        told = (
            f"http://{NAME}:{_port(run, there)}/{size}",
            "-o",
            str(file),
            "--account",
            str(account),
        )
        argv = traffic.command("mhttp", *told, *words, packages=True)
        left_s = max(0.1, run.deadline - time.monotonic())
        argv = enter(run.lab.client.namespace, argv)
        meter = machine.Meter()
        with traffic.running(run, argv, "mhttp", left_s) as client:
            if watch is not None:
                watch(client.process)
            client.result()
        run.void(machine.crowded(meter))
        found = json.loads(account.read_text())
        with file.open("rb") as whole:
            right = hashlib.file_digest(whole, "sha256").hexdigest() == digest
    if not right:
        raise RunFailed(f"the object of {size} bytes came as another one")
    check(found)
    run.void(machine.too_slow("client", found["cpu_s"], found["seconds"]))
    return found


def _port(run: "LiveRun", there: Replicas) -> int:
    return there.mptcp[str(run.params["cc"])] if run.params["way"] == "mptcp" else PORT


def check(found: dict[str, Any]) -> None:
    """Raises RunFailed."""
    lost = [f"{it['server']} by {it['path']}: {why}" for it in found["legs"] for why in it["lost"]]
    if lost:
        raise RunFailed(f"a connection was lost: {'; '.join(lost)}")
