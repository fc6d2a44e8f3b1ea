# SPDX-License-Identifier: MIT
"""What was in force during a run, read back from where it is in force."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mininet.net import VERSION as MININET_VERSION

from base import called
from base.pressure import OWN_CLOCK
from base.shell import CommandError
from base.sources import commit
from topologies.devices import describe
from topologies.network import Network
from topologies.nodes import LabNode
from topologies.programs import ProgramError, built
from topologies.proxies import Proxies, pipe_controls, version

FORMAT = 1


def _said(argv: Sequence[str]) -> str | None:
    """The first line a program says about itself; None without it."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    lines = (done.stdout + done.stderr).splitlines()
    return lines[0].strip() if lines else None


def _own(name: str) -> str | None:
    try:
        return version(built(name))
    except (ProgramError, CommandError):
        return None


def machine() -> dict[str, Any]:
    memory = next(
        line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line
    )
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "cpu": model[0] if model else None,
        "memory_kib": int(memory.split()[1]),
        "load": os.getloadavg(),
        "own_clock": OWN_CLOCK in os.environ,
    }


def versions() -> dict[str, str | None]:
    return {
        "commit": commit(),
        "rp": _own("rp"),
        "lp": _own("lp"),
        "linkem": _own("linkem"),
        "mininet": MININET_VERSION,
        "python": sys.version.split()[0],
        "iproute2": _said(["ip", "-V"]),
        "nftables": _said(["nft", "--version"]),
        "tcpdump": _said(["tcpdump", "--version"]),
        "haproxy": _said(["haproxy", "-v"]),
    }


def node(it: LabNode) -> dict[str, Any]:
    sysctls = it.sysctls()
    return {
        **it.kind(),
        "addresses": {intf.name: f"{intf.ip}/{intf.prefixLen}" for intf in it.intfList()},
        "sysctls": sysctls,
        "cc_default": sysctls["net.ipv4.tcp_congestion_control"],
        "cc_available": _cc_available(sysctls),
        "cc_of_pipes": pipe_controls(it),
        "routes": json.loads(it.inside("ip", "-d", "-j", "route", "show", "table", "all")),
        "rules": json.loads(it.inside("ip", "-j", "rule")),
        "devices": [describe(it.namespace, intf.name) for intf in it.intfList()],
    }


def _cc_available(sysctls: dict[str, str | None]) -> list[str]:
    """A namespace may not tell; then it is the machine's."""
    told = sysctls["net.ipv4.tcp_available_congestion_control"]
    if told is None:
        told = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
    return told.split()


def of(lab: Network, proxies: Sequence[Proxies]) -> dict[str, Any]:
    """A dict that json can write."""
    topo = lab.topo
    return {
        "format": FORMAT,
        "time": time.time(),
        "command": called.words(),
        "lab": lab.name,
        "topology": type(topo).__name__,
        "preset": topo.preset,
        "miles": [link.mile.as_dict() for link in lab.miles.values()],
        "wan": vars(topo.wan),
        "link": vars(topo.choice),
        "bottleneck": topo.bottleneck,
        "settings": {**vars(topo.settings), "sysctls": dict(topo.settings.sysctls)},
        "machine": machine(),
        "versions": versions(),
        "nodes": {it.name: node(it) for it in (lab.client, lab.rp, *lab.servers)},
        "links": {name: link.describe() for name, link in lab.links.items()},
        "proxies": [pair.describe() for pair in proxies],
    }
