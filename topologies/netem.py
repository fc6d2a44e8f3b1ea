# SPDX-License-Identifier: MIT
"""A link by the kernel's netem, on two hops between the ends and never on an end itself.

    client ── gate-a ── gate-b ── rp        (bridges; the ends see one network)

A direction meets loss, rate and queue at the first hop and delay at the second: with all in one
qdisc the queue's limit would count what is only propagating, and a loss on the sender's own
device is told to its TCP.
"""

from pathlib import Path
from typing import Any

from mininet.node import Node

from base.shell import enter, run
from topologies import qdisc
from topologies.devices import OFFLOADS, receive_in_order, turn_off_offloads
from topologies.links import EmulatedLink
from topologies.mile import Mile
from topologies.nodes import NO_IPV6, has_ipv6, set_sysctls
from topologies.registry import LabState

OUTER, INNER = "outer", "inner"  # a gate's devices: towards its end, towards the other gate


class Gate(Node):
    """A hop of the link: two devices and a bridge between them."""

    def __init__(self, name: str, lab: LabState) -> None:
        self.lab = lab
        super().__init__(name)

    def startShell(self, mnopts: str | None = None) -> None:
        super().startShell(mnopts)
        self.lab.add_node(self.name, self.pid)
        if has_ipv6():
            set_sysctls(self.namespace, dict.fromkeys(NO_IPV6, "1"))

    @property
    def namespace(self) -> Path:
        return self.lab.pin(self.name)

    def inside(self, *argv: str) -> str:
        return run(enter(self.namespace, argv))

    def bridge(self) -> None:
        self.inside("ip", "link", "add", "bridge", "type", "bridge", "stp_state", "0")
        for device in (OUTER, INNER):
            self.inside("ip", "link", "set", device, "master", "bridge")
        for device in (OUTER, INNER, "bridge"):
            self.inside("ip", "link", "set", device, "up")

    def terminate(self) -> None:
        super().terminate()
        self.lab.remove_node(self.name)


class NetemLink(EmulatedLink):
    realisation = "netem"

    def refuses(self, mile: Mile) -> str | None:
        return qdisc.why_not_by_netem(mile)

    def make(self) -> None:
        plan = self.plan
        self.gates = [Gate(f"{plan.name}-{side}", self.lab) for side in ("a", "b")]
        gate_a, gate_b = self.gates
        self._pair(self.node_a, plan.a.device, gate_a, OUTER, plan.a.mac)
        self._pair(gate_a, INNER, gate_b, INNER, None)
        self._pair(self.node_b, plan.b.device, gate_b, OUTER, plan.b.mac)
        for gate in self.gates:
            gate.bridge()
        self.apply()

    def _pair(self, left: Any, device: str, right: Gate, peer: str, mac: str | None) -> None:
        """A veth pair made where it belongs: it never lies in the machine's own namespace."""
        mtu = ["mtu", str(self.plan.mile.mtu)]
        address = ["address", mac] if mac else []
        left.inside(
            *("ip", "link", "add", "name", device, *mtu, *address, "type", "veth"),
            *("peer", "name", peer, *mtu, "netns", str(right.pid)),
        )
        for node, name in ((left, device), (right, peer)):
            turn_off_offloads(node.namespace, name)
            receive_in_order(node.namespace, name)
            node.inside("ip", "link", "set", name, "up")

    def hops(self) -> list[tuple[Gate, str, list[str], dict[str, Any]]]:
        """Where each stage sits, and what it is."""
        gate_a, gate_b = self.gates
        inside = self.plan.bottleneck == "network"
        up, down = self.mile.direction("up"), self.mile.direction("down")
        return [
            (gate_a, INNER, *qdisc.netem_gate(self.mile, up, rate=inside)),
            (gate_b, OUTER, *qdisc.netem_line(self.mile, up)),
            (gate_b, INNER, *qdisc.netem_gate(self.mile, down, rate=inside)),
            (gate_a, OUTER, *qdisc.netem_line(self.mile, down)),
        ]

    def apply(self) -> None:
        for gate, device, words, wanted in self.hops():
            qdisc.put(gate.namespace, device, words, wanted)

    def check_emulation(self) -> None:
        for gate, device, _, wanted in self.hops():
            qdisc.check(qdisc.show(gate.namespace, device), device, wanted)

    def evidence(self) -> dict[str, Any]:
        return {
            "seeded": False,
            "offloads_off": list(OFFLOADS),
            "hops": {
                f"{gate.name}:{device}": qdisc.show(gate.namespace, device)
                for gate, device, _, _ in self.hops()
            },
        }

    def unmake(self) -> None:
        for gate in self.gates:
            gate.terminate()
