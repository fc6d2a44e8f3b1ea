# SPDX-License-Identifier: MIT
"""What the last mile of a configuration carries and holds, of user's bytes."""

from experiments.causes.cause import number
from experiments.parameters import miles
from experiments.workloads.rates import FRAME, MSS
from topologies.parameter import Params

USERS = MSS / FRAME  # of what a link counts


def mbps(params: Params) -> float | None:
    """Towards the client, over all last miles; None where a trace has the rate."""
    found = [it.down_mbps for it in miles(params)]
    return None if None in found else USERS * sum(it for it in found if it)


def rtt_s(params: Params) -> float:
    """End to end: the nearer last mile, and what is behind it."""
    return (min(it.rtt_ms for it in miles(params)) + number(params, "wan_rtt_ms")) / 1e3


def queue_bytes(params: Params) -> float:
    """What waits at most before the last mile, be it in the network or in the sender's device."""
    return USERS * sum(it.direction("down").queue_bytes() for it in miles(params))


def loss(params: Params) -> float:
    return max(it.loss_down for it in miles(params))


def pipe_rtt_s(params: Params) -> float:
    """A pipe ends at the remote proxy: what is behind that is none of its round trip."""
    behind_s = number(params, "wan_rtt_ms") / 1e3
    return rtt_s(params) - (behind_s if params.get("way") == "pipes" else 0.0)
