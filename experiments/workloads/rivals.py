# SPDX-License-Identifier: MIT
"""Plain connections of the same client over the same last mile, which began before the pipes did
anything and stay until the run ends."""

from typing import TYPE_CHECKING

from experiments.workloads import traffic
from experiments.workloads.actors import Actor, Bulk
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

HEAD_START_S = 3.0  # until they have the last mile to themselves, and its queue
PARAMETERS = (
    Parameter("rivals", 0, "whole", "plain connections that began before", low=0, high=64),
    Parameter("rival_cc", "cubic", "text", "congestion control of those"),
)


def around_lp(run: "LiveRun") -> None:
    """Plain connections are the same client's, and not redirected. The rule goes with its table."""
    if run.pair is not None:
        rule = ("tcp", "dport", str(traffic.PLAIN_PORT), "return")
        run.lab.client.inside("nft", "insert", "rule", "ip", "tm3", "output", *rule)


def actors(run: "LiveRun", source: str = "") -> dict[str, Actor]:
    """As many as this run has, by name; `source`: the address that they leave from."""
    count = int(run.params["rivals"])  # type: ignore[arg-type]
    if count:
        around_lp(run)
    cc = str(run.params["rival_cc"])
    one = Bulk(port=traffic.PLAIN_PORT, cc=cc, source=source)
    return {f"rival{n}": one for n in range(count)}


def head_start_s(run: "LiveRun") -> float:
    return HEAD_START_S if run.params["rivals"] else 0.0
