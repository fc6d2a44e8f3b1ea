# SPDX-License-Identifier: MIT
"""MPTCP as a baseline: the nearest that a kernel has to pipes, from end to end.

One connection with eight subflows (the kernel's most) between the same two hosts, over the same
last mile. A path manager opens a subflow for each address, so the client gets seven more of its
last mile's network; each subflow has a congestion window of its own (nothing is coupled), like each
of eight pipes. It differs from pipes in that the subflows begin after the first handshake, reach to
the server, and end with each connection.

Over two last miles to one server a connection has a subflow by each.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from topologies.addresses import client_address
from topologies.lab import Lab

SUBFLOWS = 8
FIRST_HOST = 101  # 10.0.1.101 to 10.0.1.107


def subflows(lab: Lab) -> AbstractContextManager[None]:
    """As many as this lab's last miles ask for, while the block runs."""
    return subflow_by_each_mile(lab) if len(lab.miles) > 1 else several_subflows(lab)


@contextmanager
def several_subflows(lab: Lab) -> Iterator[None]:
    """Addresses, endpoints and limits, while the block runs; no packet is needed to find them."""
    intf = next(it for it in lab.client.intfList() if it.name == "client-eth0")
    network = intf.ip.rpartition(".")[0]
    addresses = [f"{network}.{FIRST_HOST + n}" for n in range(SUBFLOWS - 1)]
    _allow(lab)
    neighbour = ("lladdr", intf.mac, "dev", "rp-eth0", "nud", "permanent")
    for address in addresses:
        lab.client.inside("ip", "address", "add", f"{address}/24", "dev", intf.name)
        lab.client.inside("ip", "mptcp", "endpoint", "add", address, "dev", intf.name, "subflow")
        lab.rp.inside("ip", "neighbour", "replace", address, *neighbour)
    try:
        yield
    finally:
        lab.client.inside("ip", "mptcp", "endpoint", "flush")
        for address in addresses:
            lab.client.inside("ip", "address", "del", f"{address}/24", "dev", intf.name)
            lab.rp.inside("ip", "neighbour", "del", address, "dev", "rp-eth0")


@contextmanager
def subflow_by_each_mile(lab: Lab, first: int = 1) -> Iterator[None]:
    """Endpoints and limits, while the block runs. `first`: 0 where a connection may begin on any
    of them; the kernel opens no second subflow from the address that it has already."""
    _allow(lab)
    for number in range(first, len(lab.miles)):
        endpoint = (client_address(number), "dev", f"client-eth{number}", "subflow")
        lab.client.inside("ip", "mptcp", "endpoint", "add", *endpoint)
    try:
        yield
    finally:
        lab.client.inside("ip", "mptcp", "endpoint", "flush")


def _allow(lab: Lab) -> None:
    most = ("ip", "mptcp", "limits", "set", "subflows", str(SUBFLOWS), "add_addr_accepted", "0")
    lab.server.inside(*most)
    lab.client.inside(*most)
