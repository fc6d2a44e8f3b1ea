# SPDX-License-Identifier: MIT
"""What befalls pipes in a lab: packets that vanish, resets on the way, another address of the host.

It happens where packets come in, at both ends of the last mile: a rule where they go out would tell
the sending TCP. So a pipe that is silenced is so both ways; one that is reset is told by whatever
packet it carries next, as by a middlebox. Pipes are meant by the client's ports: new ones live.
"""

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from topologies.addresses import (
    PIPE_PORTS,
    RP_PORT,
    RP_PORT_EXTENDED,
    SERVER,
    TO_RP,
    client_address,
    rp_address,
)
from topologies.lab import Lab
from topologies.nodes import LabNode

TABLE = "outage"
EVENTS = ("silent", "reset", "resets", "dark", "nat", "address")
APPLICATIONS = "10.0.77.1"
ANOTHER = 77  # of the client's network: the last byte of its other address


def rules(at_rp: bool) -> str:
    """Of one end; each set has ports of pipes at the client, `dark` has rp's."""
    ours, theirs = ("dport", "sport") if at_rp else ("sport", "dport")
    sets = "".join(
        f"\tset {name} {{\n\t\ttype inet_service\n\t}}\n"
        for name in ("silenced", "refused", "dark")
    )
    return (
        f"table ip {TABLE} {{\n{sets}"
        "\tchain arrives {\n"
        "\t\ttype filter hook prerouting priority -300; policy accept;\n"
        f"\t\ttcp {ours} @dark drop\n"
        f"\t\ttcp {ours} {PIPE_PORTS} tcp {theirs} @silenced drop\n"
        f"\t\ttcp {ours} {PIPE_PORTS} tcp {theirs} @refused tcp flags & rst == 0 "
        "reject with tcp reset\n"
        "\t}\n"
        "}\n"
    )


def pipes_of(node: LabNode) -> list[int]:
    """The client's ports of the pipes that are established, by their numbers."""
    return ports_in(node.inside("ss", "-Htn", "state", "established", TO_RP))


def ports_in(listing: str) -> list[int]:
    return sorted(int(port) for port in re.findall(r"^\s*\d+\s+\d+\s+\S+:(\d+)\s", listing, re.M))


@dataclass
class Outage:
    """`dead`: the ports of pipes that something was done to."""

    lab: Lab
    seed: int
    dead: set[int] = field(default_factory=set)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def befall(
        self, event: str, undone: ExitStack, every_s: float, dark_s: float, until: float
    ) -> None:
        """One of EVENTS; experiments/catalogue/recovery.py says what they are. `undone` gets what
        is to be undone; `until`: for how long pipes are reset, one each `every_s`."""
        if event == "silent":
            self.silence(self.one())
        elif event == "reset":
            self.reset(self.one())
        elif event == "resets":
            self.reset_each(every_s, until)
        elif event == "dark":
            self.dark(dark_s)
        elif event == "nat":
            self.silence(self.alive())
        else:
            undone.enter_context(another_address(self.lab))

    def alive(self) -> list[int]:
        return [port for port in pipes_of(self.lab.client) if port not in self.dead]

    def one(self) -> list[int]:
        """Some pipe that lives; none where there is none."""
        alive = self.alive()
        return [self._chance.choice(alive)] if alive else []

    def silence(self, ports: Sequence[int]) -> None:
        self._put("silenced", ports)

    def reset(self, ports: Sequence[int]) -> None:
        self._put("refused", ports)

    def _put(self, name: str, ports: Sequence[int]) -> None:
        self.dead.update(ports)
        if ports:
            self._nft("add", name, ports)

    def reset_each(self, every_s: float, until: float) -> int:
        """One after the other, by the clock of time.monotonic(); how many."""
        due, count = time.monotonic(), 0
        while due < until:
            time.sleep(max(0.0, due - time.monotonic()))
            some = self.one()
            self.reset(some)
            count += len(some)
            due += every_s
        return count

    def dark(self, seconds: float) -> None:
        """Nothing gets through, new pipes included, for so long."""
        both = (RP_PORT, RP_PORT_EXTENDED)
        self._nft("add", "dark", both)
        time.sleep(seconds)
        self._nft("delete", "dark", both)

    def _nft(self, verb: str, name: str, ports: Sequence[int]) -> None:
        told = f"{{ {', '.join(map(str, ports))} }}"
        for node in (self.lab.client, self.lab.rp):
            node.inside("nft", verb, "element", "ip", TABLE, name, told)


@contextmanager
def possible(lab: Lab, seed: int) -> Iterator[Outage]:
    """While the block runs; after it packets pass again, of dead pipes as well."""
    with ExitStack() as stack:
        for node in (lab.client, lab.rp):
            node.inside("nft", "-f", "-", stdin=rules(at_rp=node is lab.rp))
            stack.callback(node.inside, "nft", "delete", "table", "ip", TABLE)
        yield Outage(lab, seed)


@contextmanager
def applications_elsewhere(lab: Lab) -> Iterator[None]:
    """Applications that dial the server do so from an address of their own, which stays. Else they
    would lose theirs with the pipes', and a kernel does not tell who loses its address."""
    own = (f"{APPLICATIONS}/32", "dev", "lo")
    route = (f"{SERVER.rpartition('.')[0]}.0/24", "via", rp_address(), "src", APPLICATIONS)
    client = lab.client
    congctl = client.inside("ip", "route", "show", "default").partition("congctl ")[2].split()[:1]
    client.inside("ip", "address", "add", *own)
    try:
        client.inside("ip", "route", "add", *route, *(("congctl", *congctl) if congctl else ()))
        yield
    finally:
        client.inside("ip", "address", "del", *own)  # and the route with it


@contextmanager
def another_address(lab: Lab) -> Iterator[None]:
    """The client has another address on its (first) last mile instead of its own. It is announced
    by the kernel, as when a host comes into another network."""
    old = client_address()
    new = f"{old.rpartition('.')[0]}.{ANOTHER}"
    device, routes = "client-eth0", lab.client.inside("ip", "route", "show").splitlines()
    mac = lab.client.intf(device).mac
    lab.rp.inside("ip", "neighbour", "replace", new, "lladdr", mac, "dev", "rp-eth0")
    _move(lab.client, device, old, new, routes)
    try:
        yield
    finally:
        _move(lab.client, device, new, old, routes)
        lab.rp.inside("ip", "neighbour", "del", new, "dev", "rp-eth0")


def _move(node: LabNode, device: str, old: str, new: str, routes: Sequence[str]) -> None:
    """The kernel takes the routes with the address away, and knows nothing of what they held; and
    with the device's last one its neighbours, whom to find again would cost a round trip that no
    real last mile has."""
    put = [route.replace(f"src {client_address()}", f"src {new}") for route in routes]
    near = node.inside("ip", "neighbour", "show", "dev", device, "nud", "permanent").splitlines()
    lines = [f"address del {old}/24 dev {device}", f"address add {new}/24 dev {device}"]
    lines += [f"neighbour replace {it} dev {device}" for it in map(_neighbour, near)]
    node.inside(
        "ip", "-batch", "-", stdin="\n".join([*lines, *(f"route replace {it}" for it in put)])
    )


def _neighbour(line: str) -> str:
    """As `ip neighbour show` tells it: 10.0.1.2 lladdr 02:00:00:00:00:01 PERMANENT."""
    address, word, mac, *_ = line.split()
    assert word == "lladdr", line
    return f"{address} lladdr {mac} nud permanent"
