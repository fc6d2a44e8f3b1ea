# SPDX-License-Identifier: MIT
"""A transfer without end over Wi-Fi and LTE together, and what either carries alone."""

from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_failover import SPOKEN, TRANSFERS
from experiments.catalogue.paths_file import BASE, NAMES
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import account, rates, traffic
from experiments.workloads.actors import Bulk, Pause
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

HOWS = ("both", "each")
PORTS = dict(zip(NAMES, (traffic.PORT, traffic.PLAIN_PORT), strict=True))  # of `each`
SETTLE_S = 5.0
# The preset's LTE by name, so that the two cases can be told apart, and one that is as Wi-Fi is.
LTE: Params = {"second_down_mbps": 9.185, "second_up_mbps": 2.286, "second_rtt_ms": 70.0}
LIKE_WIFI: Params = {
    **{"second_down_mbps": 7.04, "second_up_mbps": 2.02, "second_rtt_ms": 50.0},
    **{"second_queue_down_ms": 50.0, "second_queue_up_ms": 50.0},
}
MOST_ACKS = 0.01  # of the bytes that they acknowledge
CASES = {"Wi-Fi and LTE": (LTE, 0.95), "two paths as Wi-Fi": (LIKE_WIFI, 0.97)}


def of_the_sum(case: str, transfer: str) -> Claim:
    second, least = CASES[case]
    at: Params = {**BASE, **second, "transfer": transfer}
    return Claim(
        row="paths-bulk",
        where=OWN,
        says=f"{case}, {SPOKEN[transfer]}: goodput over both, to the sum of either alone",
        of={**at, "how": "both"},
        over={**at, "how": "each"},
        metric="goodput_mbps",
        expect="more",
        than=least,
    )


def of_acks(case: str, transfer: str) -> Claim:
    second, _ = CASES[case]
    return Claim(
        row="paths-bulk",
        where=OWN,
        says=f"{case}, {SPOKEN[transfer]}: ACKs, to the bytes that they acknowledge",
        of={**BASE, **second, "transfer": transfer, "how": "both"},
        metric="ack_share",
        than=MOST_ACKS,
    )


class PathsBulk(Experiment):
    name = "paths-bulk"
    ways = ("pipes",)
    title = "A transfer without end over two paths"
    question = "How much of what two paths carry alone does one transfer over both get?"
    parameters = (
        Parameter(
            "how",
            "both",
            "text",
            "over both paths at once; or each: over Wi-Fi alone and then over LTE alone, and the "
            "sum of both",
            HOWS,
        ),
        Parameter("transfer", "down", "text", "which way the bytes go", TRANSFERS),
        Parameter("seconds", 10.0, "number", "measured, of each transfer", low=0.5),
    )
    metrics = (
        Metric("goodput_mbps", "goodput", "Mbit/s", "more", matters=0.01),
        Metric("ack_share", "ACKs, to what they acknowledge", "", matters=0.05),
    )
    paths = NAMES
    grids = tuple(
        {**BASE, **second, "how": HOWS, "transfer": TRANSFERS} for second, _ in CASES.values()
    )
    reps = 20
    quick_grids = grids
    quick_reps = 5
    in_all_quick = False
    run_seconds = 27.0
    claims = tuple(
        kind(case, transfer)
        for kind in (of_the_sum, of_acks)
        for case in CASES
        for transfer in TRANSFERS
    )
    figures = (
        Figure(
            name="goodput",
            title="Goodput over both paths, and the sum of either alone",
            kind="against",
            y="goodput_mbps",
            x="how",
            hue="transfer",
            facet="second_rtt_ms",
            joined=False,
        ),
    )
    notes = (
        "Four pipes over each path, both proxies as they are by default. Wi-Fi has 7.04 Mbit/s "
        "down, 2.02 up and 50 ms, LTE 9.185, 2.286 and 70 ms; or the second path is as Wi-Fi is. "
        "Goodput is of ten seconds, from five seconds after a transfer began.",
        "Either alone: two transfers one after the other in one run, each bound to its path by lp "
        "--rule, with the pipes of the other path idle. Bounds are the laboratory's own.",
        "ACKs are messages of the extension, which one end sends by all pipes; TCP's own "
        "acknowledgements are none of them. Their bytes, headers included, over those that the "
        "other end gave to the pipes, in the ten seconds of goodput (of either alone: over LTE).",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        if params["how"] == "both":
            return []
        rules = [f"port {port} paths {name}" for name, port in PORTS.items()]
        return [word for rule in rules for word in ("--rule", rule)]

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        both = run.params["how"] == "both"
        goodput = [carried_mbps(run, port) for port in list(PORTS.values())[: 1 if both else None]]
        return {"goodput_mbps": sum(goodput), "ack_share": ack_share(run)}


def ends_s(run: "LiveRun") -> float:
    """When a transfer was measured for long enough, from its beginning on."""
    return SETTLE_S + float(run.params["seconds"])  # type: ignore[arg-type]


def carried_mbps(run: "LiveRun", port: int) -> float:
    until = ends_s(run)
    bulk = Bulk(port=port, way=run.params["transfer"])  # type: ignore[arg-type]
    found = traffic.play(run, {"bulk": bulk, "clock": Pause(seconds=until)}, f"port-{port}")
    mbps = rates.mbps(found["bulk"]["bins"], SETTLE_S, until)
    if not mbps:
        raise RunFailed(f"nothing came of the transfer to port {port}")
    return mbps


def ack_share(run: "LiveRun") -> float:
    """Of the transfer that ended last."""
    assert run.pair is not None
    until = ends_s(run)
    ends = ("rp", "lp") if run.params["transfer"] == "down" else ("lp", "rp")
    sent, acked = (
        account.grown(run.pair.statistics(who), run.went + SETTLE_S, run.went + until)
        for who in ends
    )
    return acked["tx_ack_bytes"] / sent["tx_bytes"]
