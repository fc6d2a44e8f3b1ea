# SPDX-License-Identifier: MIT
"""Mininet nodes that are pinned in the lab's entry and whose settings are read back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mininet.link import Intf
from mininet.node import Node

from base.shell import enter, run
from topologies.hosts import HostSettings
from topologies.registry import LabState

# What decides how TCP behaves, the same on every machine: Linux' own defaults, which a machine
# may have changed, and no memory of earlier connections.
SYSCTLS: dict[str, str] = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}
NO_IPV6 = ("net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6")
# Told in the record beside what was set.
ALSO_TOLD = (
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
)


class SettingRefused(RuntimeError):
    """The kernel did not take a setting."""


def read_sysctls(namespace: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """What is in force; None where a namespace has no such setting."""
    return sysctls_in(run(enter(namespace, ["sysctl", "--ignore", *keys])), keys)


def sysctls_in(text: str, keys: Sequence[str]) -> dict[str, str | None]:
    """As sysctl tells them."""
    found = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        found[key.strip()] = " ".join(value.split())
    return {key: found.get(key) for key in keys}


def set_sysctls(namespace: Path, settings: Mapping[str, str]) -> None:
    """Sets them and reads them back: some are refused without an error."""
    words = [f"{key}={value}" for key, value in settings.items()]
    run(enter(namespace, ["sysctl", "-q", "-w", *words]))
    found = read_sysctls(namespace, list(settings))
    for key, value in settings.items():
        if found[key] != " ".join(str(value).split()):
            raise SettingRefused(f"{key} is {found[key]!r}, not {value!r}")


def has_ipv6() -> bool:
    return Path("/proc/sys/net/ipv6").exists()


class LabNode(Node):
    """A Node whose namespace is pinned, with IPv6 off and the lab's settings on."""

    def __init__(
        self,
        name: str,
        *,
        lab: LabState,
        settings: HostSettings,
        forward: bool = False,
        routes: Sequence[Sequence[str]] = (),
        **params: Any,
    ) -> None:
        self.lab = lab
        self.settings = settings
        self.forward = forward
        self.routes = routes
        super().__init__(name, **params)

    def startShell(self, mnopts: str | None = None) -> None:
        super().startShell(mnopts)
        self.lab.add_node(self.name, self.pid)
        wanted = {**SYSCTLS, **self.settings.sysctls}
        wanted["net.ipv4.ip_forward"] = str(int(self.forward))
        if has_ipv6():
            wanted.update(dict.fromkeys(NO_IPV6, "1"))
        set_sysctls(self.namespace, wanted)
        self.set_keys = tuple(wanted)

    @property
    def namespace(self) -> Path:
        """A path that means this node's network namespace as long as the lab lives."""
        return self.lab.pin(self.name)

    def inside(self, *argv: str | Path, stdin: str = "", seconds: float = 30.0) -> str:
        """Runs a command inside to its end; unlike cmd(), a failure is an error."""
        return run(enter(self.namespace, argv), stdin=stdin, seconds=seconds)

    def connections(self, *matching: str) -> list[str]:
        """Of TCP, which may still carry something; as ss tells them."""
        words = ("ss", "-Htn", "state", "connected", "exclude", "time-wait", *matching)
        return self.inside(*words).splitlines()

    def config(self, **params: Any) -> dict[str, Any]:
        """Addresses are on the interfaces already; here come neighbours and routes."""
        params.update(ip=None, mac=None)
        result = super().config(**params)
        for intf in self.intfList():
            self._know_neighbour(intf)
            self._fix_route_to(intf)
        for route in self.routes:
            self.inside("ip", *route)
        for line in self._routes():
            self._check_route(line)
        return result

    def _know_neighbour(self, intf: Intf) -> None:
        """No ARP: the first packet pays for nothing, and none is lost to the link's loss."""
        other = intf.link.intf1 if intf.link.intf2 is intf else intf.link.intf2
        self.inside(
            *("ip", "neighbour", "replace", other.ip, "lladdr", other.mac),
            *("dev", intf.name, "nud", "permanent"),
        )

    def _fix_route_to(self, intf: Intf) -> None:
        words = self.settings.route_words()
        if words:
            network = ".".join(intf.ip.split(".")[:3]) + ".0/24"
            self.inside(
                *("ip", "route", "replace", network, "dev", intf.name, "proto", "kernel"),
                *("scope", "link", "src", intf.ip, *words),
            )

    def _routes(self) -> list[str]:
        return self.inside("ip", "route", "show", "table", "all", "type", "unicast").splitlines()

    def _check_route(self, line: str) -> None:
        words = self.settings.route_words()
        for name, value in zip(words[::2], words[1::2], strict=True):
            if f"{name} {value}" not in line:
                raise SettingRefused(f"{self.name}: route without {name} {value}: {line}")

    def kind(self) -> dict[str, Any]:
        """What a record says of a node that is more than a namespace."""
        return {}

    def terminate(self) -> None:
        super().terminate()
        self.lab.remove_node(self.name)

    def sysctls(self) -> dict[str, str | None]:
        return read_sysctls(self.namespace, [*self.set_keys, *ALSO_TOLD])
