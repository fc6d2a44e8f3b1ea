# SPDX-License-Identifier: MIT
"""Whether the pipes' send buffers are as large as was asked for: the kernel says no silently."""

import re
from typing import TYPE_CHECKING

from experiments.failure import RunFailed
from topologies.addresses import AT_RP

if TYPE_CHECKING:
    from experiments.live_run import LiveRun


def send_buffers(listing: str) -> list[int]:
    """Of each socket in what `ss -m` says: twice SO_SNDBUF, the other half for bookkeeping."""
    return [int(size) // 2 for size in re.findall(r"skmem:\([^)]*\btb(\d+)", listing)]


def check(run: "LiveRun") -> None:
    """Of rp's ends. Raises RunFailed where net.core.wmem_max is in the way."""
    wanted = run.params["pipe_sndbuf"]
    if wanted is None:
        return
    pipes = ("ss", "-Htinm", "state", "established", AT_RP)
    found = send_buffers(run.lab.rp.inside(*pipes))
    if len(found) != run.params["pipes"] or any(size != wanted for size in found):
        raise RunFailed(f"send buffers of the pipes are {found}, not {wanted}: net.core.wmem_max?")
