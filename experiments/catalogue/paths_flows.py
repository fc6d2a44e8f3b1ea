# SPDX-License-Identifier: MIT
"""One file, and many short flows, over Wi-Fi and LTE at once: pipes over both, and MPTCP."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_file import NAMES, TOLD
from experiments.causes.split import Split
from experiments.failure import RunFailed
from experiments.model import Claim, Experiment, Figure, Grid, Metric
from experiments.workloads import arrivals, mptcp, rates, traffic
from experiments.workloads.actors import Churn
from topologies.addresses import client_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

KB, MB = 1000, 1_000_000
BASE: Params = {"preset": "wifi-lte", "wan_rtt_ms": 4.0}
PIPES: Params = {"way": "pipes", "pipes": 1}
MPTCP: Params = {"way": "mptcp", "pipes": 0}
RTTS: Params = {"rtt_ms": 50.0, "second_rtt_ms": 70.0}
APART: Params = {"rtt_ms": 20.0, "second_rtt_ms": 70.0}
FILES = (20 * KB, 50 * KB, 200 * KB, MB, 4 * MB)
SMALL = FILES[:3]
FLOWS = (10 * KB, 50 * KB)
COUNT = 20
PARALLEL = (1, 5, 10)
BOTH = "both"
MOST_BY_TXDELAY = 0.79  # of minrtt's time: published are 0.46 to it


def told(size: int) -> str:
    return f"{size // MB} MB" if size >= MB else f"{size // KB} KB"


def load(size: int, count: int = 1, parallel: int = 1) -> Params:
    return {"size": size, "count": count, "parallel": parallel}


def over_pipes(policy: str = "minrtt") -> Params:
    return {**BASE, **PIPES, "primary": BOTH, "path_policy": policy}


def by_mptcp(primary: str) -> Params:
    return {**BASE, **MPTCP, "primary": primary}


def spoken(size: int, count: int, parallel: int) -> str:
    if count == 1:
        return f"one file of {told(size)}"
    at_a_time = "one after the other" if parallel == 1 else f"{parallel} at a time"
    return f"{count} flows of {told(size)}, {at_a_time}"


def instead_of_mptcp(primary: str, its: Params) -> Claim:
    """`its`: size, count, parallel."""
    single = its["count"] == 1
    where, published = ("Fig. 4.3", "0.51 to 0.89") if single else ("Fig. 4.4", "0.37 to 0.87")
    words = spoken(its["size"], its["count"], its["parallel"])  # type: ignore[arg-type]
    return Claim(
        row="paths-flows" if single else "paths-short-flows",
        where=f"MPFlex, {where}",
        says=f"{words}: pipes instead of MPTCP that begins on {TOLD[primary]} (published, instead "
        f"of the better of the two: {published})",
        of={**over_pipes(), **RTTS, **its},
        over={**by_mptcp(primary), **RTTS, **its},
    )


# Of the sizes for which txdelay has nothing to gain.
NOTHING_TO_GAIN = {
    200 * KB: "By round trips the far path is left idle for twice as many bytes as by delays. "
    "Computed with true rates, 200 KB take 1.02 of minrtt's time as a fluid under txdelay, and "
    "0.99 in packets over fresh windows, where ecf takes 0.93 (oracle/packets.py)."
}


def txdelay(size: int) -> Claim:
    return Claim(
        row="paths-txdelay",
        where="MPFlex, Fig. 4.7",
        says=f"one file of {told(size)}, 20 and 70 ms: txdelay instead of minrtt (published: 0.46 "
        "to 0.79)",
        of={**over_pipes("txdelay"), **APART, **load(size)},
        causes=(Split("size", "far_share", MOST_BY_TXDELAY),),
        over={**over_pipes("minrtt"), **APART, **load(size)},
        note=NOTHING_TO_GAIN.get(size, ""),
    )


def grids_of(files: Sequence[int], flows: Sequence[int], parallel: Sequence[int]) -> list[Grid]:
    loads: list[dict[str, Any]] = [
        {"size": files, "count": 1, "parallel": 1},
        {"size": flows, "count": COUNT, "parallel": parallel},
    ]
    return [
        *({**over_pipes(), **RTTS, **each} for each in loads),
        *({**by_mptcp("wifi"), "primary": NAMES, **RTTS, **each} for each in loads),
        {**over_pipes(), "path_policy": ("minrtt", "txdelay"), **APART, **load(0), "size": SMALL},
    ]


class PathsFlows(Experiment):
    name = "paths-flows"
    ways = ("pipes", "mptcp")
    title = "One file, and many short flows, over two paths: pipes and MPTCP"
    question = "How much sooner are short flows done if nothing is dialled over either path?"
    parameters = (
        Parameter("size", 50 * KB, "size", "of each flow", low=1),
        Parameter("count", 1, "whole", "how many flows", low=1, high=1000),
        Parameter("parallel", 1, "whole", "of them at a time", low=1, high=64),
        Parameter(
            "path_policy",
            "minrtt",
            "text",
            "which path carries the next bytes, at both proxies",
            ("minrtt", "txdelay", "ecf", "soonest"),
            needs=(("way", "pipes"),),
        ),
        Parameter(
            "primary",
            BOTH,
            "text",
            "the path on which MPTCP begins; pipes are over both before",
            (*NAMES, BOTH),
        ),
    )
    metrics = (
        Metric("completion_s", "time until all flows are done", "s", matters=0.05),
        Metric("flow_p50_s", "time of a flow, median", "s", matters=0.05),
        Metric("far_share", "share of the bytes over LTE", "", "neither"),
    )
    shown = ("flow_p50_s", "far_share")
    paths = NAMES
    grids = tuple(grids_of(FILES, FLOWS, PARALLEL))
    reps = 20
    quick_grids = grids
    quick_reps = 5
    in_all_quick = False
    run_seconds = 5.0
    claims = (
        *(instead_of_mptcp(primary, load(size)) for size in FILES for primary in NAMES),
        *(
            instead_of_mptcp(primary, load(size, COUNT, parallel))
            for size in FLOWS
            for parallel in PARALLEL
            for primary in NAMES
        ),
        *(txdelay(size) for size in SMALL),
    )
    figures = (
        Figure(
            name="file",
            title="One file",
            kind="against",
            x="size",
            hue="primary",
            where={"count": 1, **RTTS},
            log=True,
        ),
        Figure(
            name="flows",
            title=f"{COUNT} short flows",
            kind="against",
            x="parallel",
            hue="primary",
            facet="size",
            where={"count": COUNT, **RTTS},
        ),
        Figure(
            name="txdelay",
            title="One file over pipes, round trips of 20 and 70 ms",
            kind="against",
            x="size",
            hue="path_policy",
            where={"count": 1, "way": "pipes", **APART},
        ),
    )
    notes = (
        "One pipe over each path, as MPFlex has one connection, under minrtt and without warming. "
        "Wi-Fi of 7.04 Mbit/s, LTE of 9.185 Mbit/s; 4 ms from rp to the server. MPTCP is "
        "upstream's with cubic and its default scheduler, from end to end, without a proxy; "
        "published is v0.90 by a proxy. It begins on the path that is named and has a second "
        "subflow by the other.",
        "A flow is dialled, asks with 200 bytes, and is done with its last byte. Published are the "
        "ranges that the text tells; sizes and patterns are in bars alone, and those here are "
        "ours.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        return ["--path-policy", str(params["path_policy"])] if params["pipes"] else []

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        return self.lp_options(params, folder)

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        received = partial(arrivals.received, run.lab)
        before = received()
        size, count, parallel = (int(run.params[it]) for it in ("size", "count", "parallel"))  # type: ignore[arg-type]
        flows = Churn(down=size, count=count, parallel=parallel, **way(run))
        found = traffic.play(run, {"flows": flows})["flows"]
        near, far = (now - was for was, now in zip(before, received(), strict=True))
        return {
            "completion_s": found["took_s"],
            "flow_p50_s": rates.median(found["seconds"]),
            "far_share": far / (near + far),
        }


def way(run: "LiveRun") -> dict[str, Any]:
    """Where a flow goes, and with MPTCP from which address it begins."""
    primary = str(run.params["primary"])
    if (primary == BOTH) != (run.pair is not None):
        raise RunFailed(f"primary {primary}: {BOTH} goes with pipes, and a path with MPTCP")
    if run.pair is not None:
        return {"port": traffic.PORT}
    run.kept("mptcp", lambda: mptcp.subflow_by_each_mile(run.lab, first=0))
    source = client_address(NAMES.index(primary))
    return {"port": traffic.MPTCP_PORT, "mptcp": True, "source": source}
