# SPDX-License-Identifier: MIT
"""Objects by HTTP/3 in a run: the server kept up, a client program for each run.

Both are of aioquic, which only they import. It has two congestion controls, CUBIC and Reno: where a
run has another one, QUIC has CUBIC.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import enter
from experiments.workloads import certificate, rates, traffic
from experiments.workloads.association import Entry
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORTS = {"cubic": 443, "reno": 444}  # a server has one congestion control
NAME = "objects.test"  # on the server's certificate
SIZE = 20_000
EVERY_S = 0.5


@contextmanager
def server(lab: Lab) -> Iterator[Path]:
    """Ready, while the block runs; its certificate."""
    with tempfile.TemporaryDirectory(prefix="tm3-http3-") as name:
        shown, key = Path(name) / "certificate.pem", Path(name) / "key.pem"
        certificate.make(shown, key, [NAME])
        ports = [f"{cc}:{port}" for cc, port in PORTS.items()]
        words = (SERVER, str(shown), str(key), *ports)
        argv = traffic.command("http3_server", *words, packages=True)
        with program(lab.state, "server", "http3", argv, ready=r"^http3: ready", seconds=30.0):
            yield shown


def fetch(run: "LiveRun", entry: Entry, seconds: float) -> dict[str, Any]:
    """An object every so often for so long, each on a connection of its own. What a client that
    ends by itself says about it is told as RunFailed."""
    authority = run.kept("http3", lambda: server(run.lab))
    cc = str(run.params["cc"]) if run.params["cc"] in PORTS else "cubic"
    left_s = max(0.1, run.deadline - time.monotonic())
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="line-") as folder:
        told = {
            "address": SERVER,
            "port": PORTS[cc],
            "name": NAME,
            "authority": str(authority),
            "cc": cc,
            "entry": entry,
            "seed": run.seed,
            "size": SIZE,
            "every_s": EVERY_S,
            "seconds": seconds,
            "limit_s": left_s,
        }
        words = (json.dumps(told), folder)
        command = traffic.command("http3_client", *words, packages=True)
        argv = enter(run.lab.client.namespace, command)
        with traffic.running(run, argv, "http3-client", left_s, Path(folder)) as client:
            return json.loads(client.result())


def measures_of(found: dict[str, Any]) -> dict[str, Any]:
    """The times of objects in milliseconds, from before the first datagram to the last byte."""
    return {
        "http3_p50_ms": rates.quantile(found["seconds"], 0.5) * 1e3,
        "http3_p90_ms": rates.quantile(found["seconds"], 0.9) * 1e3,
        "http3_connect_ms": rates.quantile(found["connect_s"], 0.5) * 1e3,
        "http3_objects": len(found["seconds"]),
        "http3_sent": found["sent"],
    }
