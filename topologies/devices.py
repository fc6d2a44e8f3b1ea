# SPDX-License-Identifier: MIT
"""Network devices: offloads turned off and read back, and what a record says of a device."""

import json
from pathlib import Path
from typing import Any

from base.shell import CommandError, enter, run
from topologies.qdisc import show

# With any of these on, loss, rate and queue act on packets of up to 64 KB that no wire carries.
OFFLOADS = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}


class OffloadLeftOn(RuntimeError):
    pass


class SeveralReceivers(RuntimeError):
    """Packets of a device may overtake each other."""


def offloads(namespace: Path, device: str) -> dict[str, bool]:
    """Which are on, by ethtool's short names."""
    text = run(enter(namespace, ["ethtool", "-k", device]))
    on = {
        name.strip(): value.split()[0] == "on"
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if value.strip()
    }
    return {short: on.get(name, False) for short, name in OFFLOADS.items()}


def turn_off_offloads(namespace: Path, device: str) -> None:
    words = [word for short in ("tso", "gso", "gro") for word in (short, "off")]
    run(enter(namespace, ["ethtool", "-K", device, *words]))
    run(enter(namespace, ["ip", "link", "set", "dev", device, "gso_max_segs", "1"]))
    left = [short for short, on in offloads(namespace, device).items() if on]
    if left:
        raise OffloadLeftOn(f"{device}: {', '.join(left)} cannot be turned off")


def receive_in_order(namespace: Path, device: str) -> None:
    """All that a device receives is taken up by one processor.

    A veth hands a packet to the processor that happens to send it. Where two take turns, as a
    sender and netem's timer do, a packet in one's backlog overtakes those in the other's.
    """
    file = f"/sys/class/net/{device}/queues/rx-0/rps_cpus"
    script = f"mount -t sysfs sys /sys && echo 1 >{file} && cat {file}"
    argv = ["unshare", "--mount", "--", "sh", "-c", script]
    found = run(enter(namespace, argv)).strip()
    if int(found.replace(",", ""), 16) != 1:
        raise SeveralReceivers(f"{device}: {file} is {found}, not 1")


def describe(namespace: Path, device: str) -> dict[str, Any]:
    """A device as the kernel has it now."""
    (link,) = json.loads(run(enter(namespace, ["ip", "-d", "-s", "-j", "link", "show", device])))
    try:
        found: dict[str, bool] | str = offloads(namespace, device)
    except CommandError as why:
        found = str(why)
    return {
        "device": device,
        "mtu": link["mtu"],
        "address": link.get("address"),
        "txqlen": link.get("txqlen"),
        "gso_max_segs": link.get("gso_max_segs"),
        "offloads": found,
        "counters": link.get("stats64"),
        "qdiscs": show(namespace, device),
    }
