# SPDX-License-Identifier: MIT
"""A topology brought to life: its nodes and links, while the block runs."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mininet.net import Mininet

from base.scope import Scope
from topologies.addresses import server_name
from topologies.links import EmulatedLink
from topologies.nodes import LabNode
from topologies.parameter import ParameterError
from topologies.topos import LastMiles


class Network(Scope):
    """Everything that it made ends with the block, whatever ends the block.

    `logs`: where programs of the lab write what they log and count; must exist. `drops`: linkem
    writes a line for each packet that it drops, also without `logs`. A lab whose runner was killed
    is removed by `python -m topologies clean`.
    """

    def __init__(self, topo: LastMiles, *, logs: Path | None = None, drops: bool = False) -> None:
        if logs is not None and not logs.is_dir():
            raise ParameterError("logs", f"{logs} is no folder")
        self.topo = topo
        self.state = topo.state
        self.state.logs = logs.resolve() if logs else None
        self.state.drops = drops
        self._stack = ExitStack()

    def open(self) -> None:
        if os.geteuid() != 0:
            raise PermissionError("a lab needs root: it makes network namespaces")
        if self.state.name is not None:
            raise RuntimeError("this topology is in use by another lab: make another one")
        with ExitStack() as stack:
            stack.callback(self.state.close)
            self.net = Mininet(topo=self.topo, controller=None)
            stack.callback(self.net.stop)
            self.net.start()
            self._stack = stack.pop_all()

    def close(self, error: BaseException | None) -> None:
        self._stack.close()

    @property
    def name(self) -> str:
        """Unique among the labs of this machine."""
        assert self.state.name is not None, "the lab does not run"
        return self.state.name

    @property
    def client(self) -> LabNode:
        return self.net["client"]

    @property
    def rp(self) -> LabNode:
        return self.net["rp"]

    @property
    def server(self) -> LabNode:
        return self.net["server"]

    @property
    def servers(self) -> tuple[LabNode, ...]:
        """All of them, `server` first."""
        return tuple(self.net[server_name(number)] for number in range(self.topo.servers))

    @property
    def links(self) -> dict[str, EmulatedLink]:
        """By name: mile (or mile1 and mile2) and wan, and wan2 and wan3 of more servers."""
        return {link.plan.name: link for link in self.net.links}

    @property
    def miles(self) -> dict[str, EmulatedLink]:
        """The last miles among them."""
        return {name: link for name, link in self.links.items() if name.startswith("mile")}

    def check(self) -> None:
        """Reads all links back once more; raises if one is not what it should be."""
        for link in self.links.values():
            link.check()

    def change(self, link: str = "mile", **changes: Any) -> None:
        """Other parameters for a link while everything runs."""
        if link not in self.links:
            raise ParameterError("link", f"{link!r} is none of {', '.join(self.links)}")
        self.links[link].change(**changes)
