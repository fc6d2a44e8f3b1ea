# SPDX-License-Identifier: MIT
"""A home router: unbound at the client, which is asked by UDP and keeps one connection upstream.

It has no cache, so each query goes upstream, one behind the other on that connection.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.failure import RunFailed
from experiments.workloads import traffic
from experiments.workloads.dns import unbound, zone
from topologies.addresses import SERVER
from topologies.programs import program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

HERE = "127.0.0.1"
FORWARD_PORT = 5454  # of lp, which relays it to the server
FORWARD = f"--forward={FORWARD_PORT}:{SERVER}:{unbound.PROMPT_PORT}"
UPSTREAMS = {"direct": (SERVER, unbound.PROMPT_PORT), "forward": (HERE, FORWARD_PORT)}
MOST_QUERIES = 1_000_000  # on a connection, before another takes its place
# With an answer from upstream. By itself unbound gives a query up after a few round trips of those
# before, and its connection with it, over TCP as over UDP.
PATIENCE_MS = 30_000


def configuration(folder: Path, upstream: tuple[str, int], port: int = unbound.PORT) -> str:
    address, there = upstream
    lines = [
        *unbound.basis(folder, [f"{HERE}@{port}"]),
        "do-not-query-localhost: no",
        'local-zone: "test." nodefault',
        "outgoing-num-tcp: 1",
        f"max-reuse-tcp-queries: {MOST_QUERIES}",
        f"tcp-reuse-timeout: {unbound.IDLE_MS}",
        f"tcp-auth-query-timeout: {PATIENCE_MS}",
        f"infra-cache-min-rtt: {PATIENCE_MS}",
        "forward-zone:",
        f'name: "{zone.ZONE}."',
        f"forward-addr: {address}@{there}",
        "forward-tcp-upstream: yes",
        "forward-no-cache: yes",
    ]
    return unbound.written(lines)


@contextmanager
def routing(run: "LiveRun", upstream: str) -> Iterator[None]:
    """While the block runs, and its connection is there from the start. Raises RunFailed where it
    was not one connection to the end."""
    with tempfile.TemporaryDirectory(prefix="tm3-router-") as name:
        folder = Path(name)
        argv = unbound.started(folder, configuration(folder, UPSTREAMS[upstream]))
        with program(run.lab.state, "client", "router", argv, ready=unbound.READY):
            asks = traffic.command("dns", HERE, "--queries", "1", packages=True)
            run.lab.client.inside(*asks, seconds=60.0)
            before = _connections(run, upstream)
            yield
            after = _connections(run, upstream)
            if after != before or len(before) != 1:
                raise RunFailed(f"the router has not kept one connection: {before}, {after}")


def _connections(run: "LiveRun", upstream: str) -> list[str]:
    """Of the router, by their addresses and ports."""
    address, port = UPSTREAMS[upstream]
    found = run.lab.client.connections("dst", f"{address}:{port}")
    return sorted(" ".join(it.split()[-2:]) for it in found)
