# SPDX-License-Identifier: MIT
"""Pipes that carried traffic before: a download of 1 MB through them, then their windows.

What Linux keeps of it the kernel tells: a connection that was idle for longer than its
retransmission time-out begins with a small window again, but remembers round trip and threshold.
"""

import re
from typing import TYPE_CHECKING, Any

from experiments.workloads import traffic
from experiments.workloads.actors import Transfer
from topologies.lab import Lab
from topologies.proxies import RP_PORT

if TYPE_CHECKING:
    from experiments.bed import Bed

WARM_BYTES = 1_000_000


def windows(lab: Lab) -> dict[str, list[float]]:
    """Of rp's ends of the pipes, from the kernel."""
    text = lab.rp.inside("ss", "-Htin", "state", "established", f"( sport = :{RP_PORT} )")
    return {
        name: [float(value) for value in re.findall(rf"\b{name}:([\d.]+)", text)]
        for name in ("cwnd", "ssthresh", "rtt", "lastsnd")
    }


def up(bed: "Bed") -> dict[str, Any]:
    """Warms the pipes of a bed; what they are like then."""
    traffic.play(bed, {"warm": Transfer(port=traffic.PORT, down=WARM_BYTES)})
    return {"bytes": WARM_BYTES, **windows(bed.lab)}
