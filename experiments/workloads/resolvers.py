# SPDX-License-Identifier: MIT
"""Resolvers of access networks, an unbound at the far end of each last mile, and a public one.

Each tells another server's address for the same name, as the resolvers of two providers would of
an object that a content network has in both. The public one tells of a third server.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.workloads.dns import unbound
from topologies.addresses import rp_address, server_address, server_name
from topologies.lab import Lab
from topologies.programs import program

NAME = "object.test"


@contextmanager
def resolvers(lab: Lab) -> Iterator[None]:
    """That of last mile n tells the address of server n, or of the only one. Where there are more
    servers than last miles, the last of them has the public one beside it."""
    miles, servers = len(lab.miles), len(lab.servers)
    with tempfile.TemporaryDirectory(prefix="tm3-resolvers-") as name, ExitStack() as stack:
        for mile in range(miles):
            folder = Path(name) / f"mile{mile + 1}"
            told = server_address(min(mile, servers - 1))
            stack.enter_context(_resolver(lab, "rp", folder, rp_address(mile), told))
        if servers > miles:
            own = server_address(servers - 1)
            folder = Path(name) / "public"
            stack.enter_context(_resolver(lab, server_name(servers - 1), folder, own, own))
        yield


@contextmanager
def _resolver(lab: Lab, node: str, folder: Path, address: str, told: str) -> Iterator[None]:
    """In a node, at an address; what it tells."""
    folder.mkdir()
    interface = f"{address}@{unbound.PORT}"
    lines = unbound.plain(folder, [interface], NAME, [(f"{NAME}.", told)])
    argv = unbound.started(folder, unbound.written(lines))
    with program(lab.state, node, f"unbound-{folder.name}", argv, ready=unbound.READY):
        yield
