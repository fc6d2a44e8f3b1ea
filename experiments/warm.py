# SPDX-License-Identifier: MIT
"""Pipes that carried traffic before: a download through them, then their windows.

It is 1 MB, unless the experiment has a parameter `warm_size`.

The client waits at its start line meanwhile, so that the pipes are idle for a few milliseconds
only, or for as long as the run wants them to be (`idle_s`): a user's pipes live long and rest
between two pages. After its retransmission time-out (`rto`) without anything to send a connection
begins with a small window again, halved for each time-out that passed, when it next sends
(net.ipv4.tcp_slow_start_after_idle, which is the kernel's default and stays on: a user's pipes have
it, too). It knows still where its window met a limit (`ssthresh`), which a fresh one does not. How
long the pipes were idle is recorded beside their time-out.
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


def rest_ms(last_sent: float, since_warm: float) -> float:
    """The longer of a pipe's rests before and after what it sent last: on an idle pipe of the
    extension that is a PING, each 15 s."""
    return max(last_sent, since_warm - last_sent)


def up(run: "LiveRun") -> dict[str, Any]:
    """Warms the pipes of a run, and lets them rest; what they are like then, with nothing left to
    do but begin. `cooled`: of how many the window is small again."""
    slow = {it.name: it.sysctls()[SYSCTL] for it in (run.lab.rp, run.lab.client)}
    size = int(run.params.get("warm_size") or WARM_BYTES)
    transfer = Transfer(port=traffic.PORT, down=size)
    traffic.play_and_go_on(run, {"warm": transfer}, "warm")
    warmed, idle_s = time.monotonic(), float(run.params["idle_s"] or 0)  # type: ignore[arg-type]
    time.sleep(idle_s)
    began = time.monotonic()
    found = windows(run.lab.rp.inside("ss", "-HtinO", "state", "established", AT_RP))
    now = time.monotonic()
    rests = [rest_ms(last + 1e3 * (now - began), 1e3 * (now - warmed)) for last in found["lastsnd"]]
    cooled = sum(rest > rto for rest, rto in zip(rests, found["rto"], strict=True))
    told = {"bytes": size, "idle_s": idle_s, "slow_start_after_idle": slow}
    return {**told, **found, "cooled": cooled}
