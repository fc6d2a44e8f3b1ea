# SPDX-License-Identifier: MIT
"""What befalls one of several last miles: its device goes down, or packets vanish without a word.

What this needs of the client's routes is here too: a device takes its routes and neighbours with
it, and the kernel brings back but one of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.topos import SECOND_TABLE

APPLICATIONS = "10.0.77.1"
TABLES = ("main", SECOND_TABLE)


@contextmanager
def applications_on_loopback(lab: Lab) -> Iterator[None]:
    """Connections to the server leave by loopback, where they are redirected, from an address that
    is no device's: as a host has it whose default route goes by a device that is up."""
    own = (f"{APPLICATIONS}/32", "dev", "lo")
    lab.client.inside("ip", "address", "add", *own)
    try:
        network = f"{SERVER.rpartition('.')[0]}.0/24"
        lab.client.inside("ip", "route", "add", network, "dev", "lo", "src", APPLICATIONS)
        yield
    finally:
        lab.client.inside("ip", "address", "del", *own)  # and the route with it


@contextmanager
def device_down(lab: Lab, mile: int) -> Iterator[None]:
    """The client's device of a last mile, until the block ends; the kernel tells who listens."""
    client, device = lab.client, f"client-eth{mile}"
    routes = [
        f"route replace {route} dev {device} table {table}"
        for table in TABLES
        for route in client.inside("ip", "route", "show", "table", table, "dev", device).split("\n")
        if route.strip()
    ]
    shown = client.inside("ip", "neighbour", "show", "dev", device, "nud", "permanent")
    near = [line.split() for line in shown.splitlines()]
    neighbours = [
        f"neighbour replace {address} lladdr {mac} dev {device} nud permanent"
        for address, _, mac, *_ in near
    ]
    client.inside("ip", "link", "set", device, "down")
    try:
        yield
    finally:
        client.inside("ip", "link", "set", device, "up")
        client.inside("ip", "-batch", "-", stdin="\n".join([*neighbours, *routes]))


@contextmanager
def silent(lab: Lab, mile: int) -> Iterator[None]:
    """Every packet of a last mile vanishes both ways, until the block ends; nobody is told."""
    link = list(lab.miles.values())[mile]
    before = {name: getattr(link.mile, name) for name in ("loss_down", "loss_up")}
    link.change(loss_down=1.0, loss_up=1.0)
    try:
        yield
    finally:
        link.change(**before)
