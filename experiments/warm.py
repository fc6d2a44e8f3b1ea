# SPDX-License-Identifier: MIT
"""Pipes that carried traffic before: a download of 1 MB through them, then their windows.

The client waits at its start line meanwhile, so that the pipes are idle for a few milliseconds
only. After its retransmission time-out (`rto`) without anything to send a connection begins with a
small window again (net.ipv4.tcp_slow_start_after_idle, which is the kernel's default and stays
on: a user's pipes have it, too). How long the pipes were idle is recorded beside their time-out.
"""

import re
import time
from typing import TYPE_CHECKING, Any

from experiments.workloads import traffic
from experiments.workloads.actors import Transfer
from topologies.addresses import AT_RP

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

SYSCTL = "net.ipv4.tcp_slow_start_after_idle"
WARM_BYTES = 1_000_000


def windows(told: str) -> dict[str, list[float]]:
    """Of rp's ends of the pipes, from what ss tells of each on a line; times in ms.

    A pipe on which something was sent just now has no `lastsnd` there.
    """
    found: dict[str, list[float]] = {}
    for line in told.splitlines():
        for name in ("cwnd", "ssthresh", "rtt", "rto", "lastsnd"):
            values = re.findall(rf"\b{name}:([\d.]+)", line) or ["0"] * (name == "lastsnd")
            found.setdefault(name, []).extend(float(value) for value in values)
    return found


def up(run: "LiveRun") -> dict[str, Any]:
    """Warms the pipes of a run; what they are like then, with nothing left to do but begin."""
    slow = {it.name: it.sysctls()[SYSCTL] for it in (run.lab.rp, run.lab.client)}
    transfer = Transfer(port=traffic.PORT, down=WARM_BYTES)
    traffic.play_and_go_on(run, {"warm": transfer}, "warm")
    began = time.monotonic()
    found = windows(run.lab.rp.inside("ss", "-HtinO", "state", "established", AT_RP))
    idle_ms = [last + 1e3 * (time.monotonic() - began) for last in found["lastsnd"]]
    cooled = sum(idle > rto for idle, rto in zip(idle_ms, found["rto"], strict=True))
    return {"bytes": WARM_BYTES, "slow_start_after_idle": slow, **found, "cooled": cooled}
