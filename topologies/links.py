# SPDX-License-Identifier: MIT
"""What the realisations of an emulated link share.

An end A (the client, or the proxy before the server) and an end B; uplink runs from A to B.
The bottleneck sits in the network, inside the emulated link, or with the sender: then a TBF on
the end's own device holds rate and queue, and the link has only loss and delay.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from mininet.link import Intf, Link

from topologies import qdisc, radio
from topologies.mile import Mile
from topologies.nodes import LabNode
from topologies.parameter import ParameterError
from topologies.registry import LabState

# Of the ends' own devices where the bottleneck is elsewhere; as in the published setups.
PLAIN = (["pfifo_fast"], {"kind": "pfifo_fast"})


class LinkMismatch(RuntimeError):
    """The link is not what was asked for."""


@dataclass(frozen=True)
class End:
    """One end of a link: its device, its address with prefix length, its MAC address."""

    device: str
    address: str
    mac: str


@dataclass(frozen=True)
class LinkPlan:
    """Everything a realisation needs to know."""

    name: str
    mile: Mile
    bottleneck: str
    a: End
    b: End


class EmulatedLink(Link):
    """The interface of all: make, check, change, describe, stop."""

    realisation: ClassVar[str]

    def __init__(
        self, node1: LabNode, node2: LabNode, *, plan: LinkPlan, lab: LabState, **_: Any
    ) -> None:
        self.plan = plan
        self.mile = plan.mile
        self.lab = lab
        self.node_a, self.node_b = node1, node2
        self.fast = True
        self.make()
        self.intf1, self.intf2 = (
            Intf(
                name=end.device,
                node=node,
                link=self,
                mac=None,
                moveIntfFn=self._ignore,
                ip=end.address,
            )
            for node, end in ((node1, plan.a), (node2, plan.b))
        )
        self.intf1.mac, self.intf2.mac = plan.a.mac, plan.b.mac
        self.set_queues()
        self.check()

    def ends(self) -> tuple[tuple[LabNode, End, str], ...]:
        return (self.node_a, self.plan.a, "up"), (self.node_b, self.plan.b, "down")

    def set_queues(self) -> None:
        """The ends' own qdiscs: the bottleneck, or nothing that matters."""
        for node, end, way in self.ends():
            qdisc.put(node.namespace, end.device, *self._own_queue(way))

    def _own_queue(self, way: str) -> tuple[list[str], dict[str, Any]]:
        if self.plan.bottleneck == "sender":
            return qdisc.tbf(self.mile.direction(way), self.mile.mtu)  # type: ignore[arg-type]
        return PLAIN

    def check(self) -> None:
        """Reads everything back; LinkMismatch or QdiscMismatch if it is not as declared."""
        for node, end, way in self.ends():
            found = qdisc.show(node.namespace, end.device)
            qdisc.check(found, end.device, self._own_queue(way)[1])
        self.check_emulation()

    def change(self, **changes: Any) -> None:
        """Other parameters while the link runs, by the names of Mile."""
        mile = self.mile.with_(**changes)
        if (mile.mtu, mile.seed) != (self.mile.mtu, self.mile.seed):
            raise ParameterError("mtu or seed", "cannot be changed while the link runs")
        if self.plan.bottleneck == "sender":
            radio.check_bottleneck(mile)
            for way in ("down", "up"):
                qdisc.tbf(mile.direction(way), mile.mtu)  # type: ignore[arg-type]
        impossible = self.refuses(mile)
        if impossible:
            raise ParameterError("link", f"{self.realisation} will not do: {impossible}")
        self.mile = mile
        self.apply()
        self.set_queues()
        self.check()

    def restart(self, seed: int) -> bool:
        """Begins the draw anew, for packets from now on; False where there is no seed to it."""
        return False

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.plan.name,
            "realisation": self.realisation,
            "bottleneck": self.plan.bottleneck,
            "a": vars(self.plan.a) | {"node": self.node_a.name},
            "b": vars(self.plan.b) | {"node": self.node_b.name},
            "mile": self.mile.as_dict(),
            **self.evidence(),
        }

    def stop(self) -> None:
        self.unmake()
        for intf in (self.intf1, self.intf2):
            intf.node.delIntf(intf)

    def refuses(self, mile: Mile) -> str | None:
        """Why this realisation cannot be like that; None if it can."""
        return None

    def make(self) -> None:
        raise NotImplementedError

    def apply(self) -> None:
        raise NotImplementedError

    def check_emulation(self) -> None:
        raise NotImplementedError

    def evidence(self) -> dict[str, Any]:
        """What this realisation itself says is in force and has happened."""
        raise NotImplementedError

    def unmake(self) -> None:
        raise NotImplementedError
