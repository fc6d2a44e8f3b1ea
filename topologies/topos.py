# SPDX-License-Identifier: MIT
"""The topologies: what is connected to what, with which addresses.

    LastMile        client ══ last mile ══ rp ── 4 ms, 1 Gbit/s ── server
    TwoLastMiles    the same with two last miles side by side

Up to three servers each have a wide-area link of their own: server, server2 and server3.
`rp` and the hosts are plain Nodes; rp forwards, so that the client also reaches the server
without any proxy. There is no switch and no controller.
"""

from pathlib import Path
from typing import Any

from mininet.net import Mininet
from mininet.topo import Topo

from topologies import radio
from topologies.addresses import (
    client_address,
    mac,
    rp_address,
    server_address,
    server_name,
    wan_network,
)
from topologies.choice import REALISATION, Choice, choose
from topologies.hosts import HostSettings
from topologies.links import End, LinkPlan
from topologies.mile import Mile
from topologies.nodes import LabNode
from topologies.parameter import Parameter, ParameterError
from topologies.parameters import BOTTLENECK, CLIENT, HOSTS, SERVERS, WAN
from topologies.presets import one_mile, two_miles
from topologies.qdisc import tbf
from topologies.registry import LabState
from topologies.wan import Wan

SECOND_TABLE = "102"  # the client's routes for what is bound to its second address


class LastMiles(Topo):
    """Some last miles side by side; `build` of the two below says which.

    `link`: auto, netem, linkem or veth; `bottleneck`: network or sender; further parameters are
    those of Mile (down_mbps, rtt_ms, ...), Wan and HostSettings by their names. `client` vm: the
    client is a virtual machine (topologies.vmhost), which may write to `shared`, else to the lab's
    logs.
    """

    preset: str | None
    miles: tuple[Mile, ...]
    wan: Wan
    choice: Choice
    bottleneck: str
    settings: HostSettings
    state: LabState

    def compose(
        self,
        miles: tuple[Mile, ...],
        link: str,
        bottleneck: str,
        wan: Wan,
        settings: HostSettings,
        client: str = "namespace",
        shared: Path | None = None,
        servers: int = 1,
    ) -> None:
        BOTTLENECK.check(bottleneck)
        CLIENT.check(client)
        SERVERS.check(servers)
        self.client, self.shared, self.servers = client, shared, servers
        if bottleneck == "sender":
            if client == "vm":
                raise ParameterError("bottleneck", "a virtual machine's own queue is not ours")
            for mile in miles:
                radio.check_bottleneck(mile)
                tbf(mile.direction("down"), mile.mtu)
                tbf(mile.direction("up"), mile.mtu)
        # Mininet would change limits of the whole machine, for networks far larger than these.
        Mininet.inited = True
        self.miles, self.wan, self.settings, self.bottleneck = miles, wan, settings, bottleneck
        if link == "veth" and wan.wan_rtt_ms:
            raise ParameterError("wan_rtt_ms", "a veth pair has none: 0")
        self.choice = choose(link, (*miles, wan.mile()))
        if self.choice.realisation == "veth" and bottleneck != "sender":
            raise ParameterError("bottleneck", "by veth it is the sender's own queue: sender")
        self.state = LabState()
        self._add_nodes()
        for number, mile in enumerate(miles):
            self._add_mile(number, mile)
        for number in range(servers):
            self._add_wan(number)

    def _add_nodes(self) -> None:
        words = self.settings.route_words()
        default = ("route", "replace", "default", "via")
        client: list[tuple[str, ...]] = [(*default, rp_address(), *words)]
        if len(self.miles) > 1:
            client += [
                ("rule", "add", "from", client_address(1), "lookup", SECOND_TABLE),
                (*default, rp_address(1), *words, "table", SECOND_TABLE),
            ]
        nodes: dict[str, tuple[bool, list[tuple[str, ...]]]] = {
            "client": (False, client),
            "rp": (True, []),
        }
        for number in range(self.servers):
            route = (*default, f"10.0.{wan_network(number)}.1", *words)
            nodes[server_name(number)] = (False, [route])
        for name, (forward, routes) in nodes.items():
            more: dict[str, Any] = {"cls": LabNode}
            if name == "client" and self.client == "vm":
                from topologies.vmhost import VMHost

                more = {"cls": VMHost, "shared": self.shared}
            self.addHost(
                name,
                **more,
                lab=self.state,
                settings=self.settings,
                forward=forward,
                routes=routes,
                inNamespace=True,
            )

    def _add_mile(self, number: int, mile: Mile) -> None:
        name = f"mile{number + 1}" if len(self.miles) > 1 else "mile"
        self._connect(
            "client",
            "rp",
            LinkPlan(
                name=name,
                mile=mile,
                bottleneck=self.bottleneck,
                a=End(f"client-eth{number}", f"{client_address(number)}/24", mac(number + 1, 1)),
                b=End(f"rp-eth{number}", f"{rp_address(number)}/24", mac(number + 1, 2)),
            ),
        )

    def _add_wan(self, number: int) -> None:
        device = f"rp-eth{len(self.miles) + number}"
        network, server = wan_network(number), server_name(number)
        plan = LinkPlan(
            name=f"wan{number + 1}" if number else "wan",
            mile=self.wan.mile(),
            bottleneck="network",
            a=End(device, f"10.0.{network}.1/24", mac(network, 1)),
            b=End(f"{server}-eth0", f"{server_address(number)}/24", mac(network, 2)),
        )
        self._connect("rp", server, plan)

    def _connect(self, a: str, b: str, plan: LinkPlan) -> None:
        cls = REALISATION[self.choice.realisation]
        self.addLink(a, b, cls=cls, plan=plan, lab=self.state)


def _take(wanted: tuple[Parameter, ...], parameters: dict[str, Any]) -> dict[str, Any]:
    return {it.name: parameters.pop(it.name) for it in wanted if it.name in parameters}


def _apart(parameters: dict[str, Any]) -> tuple[Wan, HostSettings, dict[str, Any]]:
    """Sorts parameters into those of the wide-area link, of the hosts and of the last mile."""
    rest = dict(parameters)
    wan = Wan(**_take(WAN, rest))
    more = {"sysctls": rest.pop("sysctls")} if "sysctls" in rest else {}
    settings = HostSettings(**_take(HOSTS, rest), **more)
    if isinstance(rest.get("jitter_reorder"), str):  # from a command line
        words = {"yes": True, "no": False}
        rest["jitter_reorder"] = words.get(rest["jitter_reorder"], rest["jitter_reorder"])
    return wan, settings, rest


def _no_preset_beside(given: object, preset: object, rest: dict[str, Any], name: str) -> None:
    if given is not None and preset is not None:
        raise ParameterError("preset", f"either a preset or {name}")
    if given is not None and rest:
        raise ParameterError(next(iter(rest)), f"put it into {name}")


class LastMile(LastMiles):
    """client, last mile, rp, server. LastMile("lte"), LastMile("wired", loss=0.01, seed=3)."""

    def build(
        self,
        preset: str | None = None,
        *,
        mile: Mile | None = None,
        link: str = "auto",
        bottleneck: str = "network",
        client: str = "namespace",
        shared: Path | None = None,
        servers: int = 1,
        **parameters: Any,
    ) -> None:
        wan, settings, rest = _apart(parameters)
        _no_preset_beside(mile, preset, rest, "mile")
        self.preset = None if mile else preset or "wired"
        chosen = mile or one_mile(preset or "wired", **rest)
        self.compose((chosen,), link, bottleneck, wan, settings, client, shared, servers)


class TwoLastMiles(LastMiles):
    """The same with two: TwoLastMiles("mobile-dsl"), TwoLastMiles(miles=(Mile(...), Mile(...))).

    A parameter beside the preset acts on both, one with second_ before its name (second_rtt_ms) on
    the second alone; their seeds are one apart.
    """

    def build(
        self,
        preset: str | None = None,
        *,
        miles: tuple[Mile, Mile] | None = None,
        link: str = "auto",
        bottleneck: str = "network",
        client: str = "namespace",
        shared: Path | None = None,
        servers: int = 1,
        **parameters: Any,
    ) -> None:
        wan, settings, rest = _apart(parameters)
        _no_preset_beside(miles, preset, rest, "miles")
        self.preset = None if miles else preset or "mobile-dsl"
        pair = miles or two_miles(preset or "mobile-dsl", **rest)
        if len(pair) != 2:
            raise ParameterError("miles", f"{len(pair)} last miles, not two")
        self.compose(tuple(pair), link, bottleneck, wan, settings, client, shared, servers)
