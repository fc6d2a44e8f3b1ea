# SPDX-License-Identifier: MIT
"""Room for thousands of connections that nobody reads: descriptors, and small buffers in kernels.

All TCP memory of a machine is one budget (tcp_mem). Four kernel buffers for each of ten thousand
connections, some megabytes each, would exceed it, and then the download beside them waits for the
kernel and not for the proxies. So they are small for who comes later than the download, whose own
have grown by then: with 32 KB it would wait whenever one of the programs is late by a millisecond.
None of the buffers that are made small here carries a pipe's downlink.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from experiments.failure import RunFailed
from experiments.workloads import traffic
from experiments.workloads.descriptors import TooFew, descriptors
from topologies.nodes import LabNode, read_sysctls, set_sysctls

if TYPE_CHECKING:
    from experiments.live_run import LiveRun
    from topologies.lab import Lab

SPARE = 4096  # descriptors for everything else; rp gives one session three quarters of its own
SMALL = "4096 16384 32768"
RCVBUF = 8192  # of a reader
TO_APPLICATIONS = {"net.ipv4.tcp_wmem": SMALL}  # of lp and of the server: the sender's buffer
FROM_SERVERS = {"net.ipv4.tcp_rmem": SMALL}  # of rp


def make_room(run: "LiveRun", connections: int) -> None:
    """Descriptors for all, and a server that is done with those of the run before."""
    assert run.pair is not None
    served = run.kept("traffic", lambda: traffic.server(run.lab))
    traffic.wait_until_idle(served, run.deadline - time.monotonic())
    try:
        for each in (run.pair.rp, run.pair.lp, served):
            descriptors(connections * 4 // 3 + SPARE, each.pid)
    except TooFew as error:
        raise RunFailed(str(error)) from None


@contextmanager
def small_buffers(lab: "Lab") -> Iterator[None]:
    """For connections that come as long as the block runs. What has more keeps it."""
    with ExitStack() as stack:
        stack.enter_context(_set(lab.client, TO_APPLICATIONS))
        stack.enter_context(_set(lab.server, TO_APPLICATIONS))
        stack.enter_context(_set(lab.rp, FROM_SERVERS))
        yield


@contextmanager
def _set(node: LabNode, wanted: Mapping[str, str]) -> Iterator[None]:
    """As long as the block runs. The lab stays up, for runs that want none of this."""
    before = read_sysctls(node.namespace, list(wanted))
    set_sysctls(node.namespace, wanted)
    try:
        yield
    finally:
        set_sysctls(node.namespace, {key: str(value) for key, value in before.items()})
