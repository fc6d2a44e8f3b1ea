# SPDX-License-Identifier: MIT
"""A link that emulates nothing: a veth pair whose ends' own qdiscs hold rate and queue.

For rates at which an emulator would take the processors from those who are measured.
"""

from typing import Any

from topologies import qdisc
from topologies.devices import OFFLOADS, offloads, receive_in_order, turn_off_offloads
from topologies.links import PLAIN, EmulatedLink, LinkMismatch
from topologies.mile import Mile

EMULATED = ("rtt_ms", "loss_down", "loss_up", "jitter_ms", "reorder", "duplicate")


def why_not_by_veth(mile: Mile) -> str | None:
    """What of a last mile a pair of devices cannot do."""
    for name in EMULATED:
        if getattr(mile, name):
            return f"{name}: a veth pair has none"
    if mile.trace_down or mile.trace_up:
        return "trace: a veth pair replays none"
    if mile.delay_trace:
        return "delay_trace: a veth pair has no delay"
    if mile.loss_model == "list":
        return "loss_model: a veth pair loses nothing"
    if mile.aqm != "tail":
        return f"aqm: the ends' own queues have no {mile.aqm}"
    if mile.radio != "none":
        return "radio: a veth pair has no queue below a device"
    return None


class VethLink(EmulatedLink):
    realisation = "veth"

    def make(self) -> None:
        plan = self.plan
        mtu = ["mtu", str(plan.mile.mtu)]
        self.node_a.inside(
            *("ip", "link", "add", "name", plan.a.device, *mtu, "address", plan.a.mac),
            *("type", "veth", "peer", "name", plan.b.device, *mtu, "address", plan.b.mac),
            *("netns", str(self.node_b.pid)),
        )
        for node, end, _ in self.ends():
            turn_off_offloads(node.namespace, end.device)
            receive_in_order(node.namespace, end.device)
            node.inside("ip", "link", "set", end.device, "up")

    def refuses(self, mile: Mile) -> str | None:
        return why_not_by_veth(mile)

    def _own_queue(self, way: str) -> tuple[list[str], dict[str, Any]]:
        direction = self.mile.direction(way)  # type: ignore[arg-type]
        return PLAIN if direction.mbps is None else qdisc.tbf(direction, self.mile.mtu)

    def apply(self) -> None:
        """All there is are the ends' own queues."""

    def check_emulation(self) -> None:
        for node, end, _ in self.ends():
            left = [name for name, on in offloads(node.namespace, end.device).items() if on]
            if left:
                raise LinkMismatch(f"{self.plan.name}: {end.device}: {', '.join(left)} on")

    def evidence(self) -> dict[str, Any]:
        return {"seeded": False, "offloads_off": list(OFFLOADS)}

    def unmake(self) -> None:
        self.node_a.inside("ip", "link", "del", self.plan.a.device)
