# SPDX-License-Identifier: MIT
"""Fig. 15: what a bulk transfer leaves standing in the network, by what bounds the pipes."""

import time
from typing import TYPE_CHECKING, Any

from experiments.causes.dswa import Dswa
from experiments.causes.filled import Filled
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import rates, rivals, standing, traffic
from experiments.workloads.actors import Actor, Bulk
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

SETTLE_S = 3.0
LTE: Params = {"preset": "lte", "cc": "cubic", "way": "pipes", "pipes": 8, "plain": 0}
OFF: Params = {**LTE, "aggregate": "off"}
DELAY: Params = {**LTE, "aggregate": "delay"}
DSWA: Params = {**LTE, "aggregate": "dswa", "lambda": 2.0}
ONE_BBR: Params = {"preset": "lte", "cc": "bbr", "way": "direct", "plain": 0}
PUBLISHED = {"rtt_s": 0.52, "in_flight_bytes": 0.45, "goodput_mbps": 0.95}
NAMES = {
    "rtt_s": "round trip",
    "in_flight_bytes": "bytes in flight",
    "goodput_mbps": "throughput",
}


def dswa_claims() -> tuple[Claim, ...]:
    return tuple(
        Claim(
            row="host-cc",
            where="Fig. 15",
            says=f"DSWA with λ = 2 instead of nothing, {NAMES[metric]}",
            of=DSWA,
            over=OFF,
            metric=metric,
            paper=paper,
            expect="same" if metric == "goodput_mbps" else "less",
            causes=(Filled(),) if metric == "goodput_mbps" else (Dswa(),),
        )
        for metric, paper in PUBLISHED.items()
    )


def instead(other: Params, says: str) -> tuple[Claim, ...]:
    """The pipes' own bound against something else."""
    return tuple(
        Claim(
            row="host-cc",
            where="not published",
            says=f"bound by delay instead of {says}, {NAMES[metric]}",
            of=DELAY,
            over=other,
            metric=metric,
            expect="same" if metric == "goodput_mbps" else "less",
        )
        for metric in PUBLISHED
    )


class HostCc(Experiment):
    name = "host-cc"
    ways = ("pipes", "direct")
    title = "What stands in the network"
    question = "How much waits in the network's queue while a download goes over eight pipes?"
    parameters = (
        Parameter("plain", 0, "whole", "plain connections beside", low=0, high=8),
        Parameter("seconds", 5.0, "number", "measured after the start", low=1),
    )
    metrics = (
        Metric("rtt_s", "round trip that the sender sees", "s", matters=0.1),
        Metric("rtt_p95_s", "round trip, 95th percentile", "s"),
        Metric("in_flight_bytes", "bytes in flight", "bytes", matters=0.1),
        Metric("goodput_mbps", "goodput of the download", "Mbit/s", "more", matters=0.02),
        Metric(
            "share", "share of the download beside plain connections", "", "neither", matters=0.05
        ),
        Metric("total_mbps", "goodput in all", "Mbit/s", "more", matters=0.02),
    )
    grids = (
        {**LTE, "aggregate": ("delay", "off"), "cc": ("cubic", "bbr"), "plain": (0, 1)},
        {**LTE, "aggregate": "dswa", "lambda": (1.0, 2.0, 4.0), "cc": ("cubic", "bbr")},
        {**DSWA, "plain": 1, "cc": ("cubic", "bbr")},
        {**OFF, "pipes": 1, "cc": ("cubic", "bbr")},
        {"preset": "lte", "way": "direct", "cc": ("cubic", "bbr"), "plain": (0, 1)},
    )
    reps = 10
    quick_grids = (
        {**LTE, "aggregate": ("delay", "off")},
        DSWA,
        {"preset": "lte", "way": "direct", "cc": ("cubic", "bbr")},
        {**LTE, "aggregate": ("delay", "off"), "plain": 1},
    )
    quick_reps = 5
    run_seconds = 9.5
    claims = (
        *dswa_claims(),
        *instead(OFF, "nothing"),
        *instead(DSWA, "by DSWA with λ = 2"),
        *instead(ONE_BBR, "one plain connection under BBR"),
        Claim(
            row="host-cc",
            where="not published",
            says="bound by delay, share beside one plain connection, each pipe as one: 0.89",
            of={**DELAY, "plain": 1},
            metric="share",
            unit="share",
            expect="less",
            than=8 / 9,
        ),
    )
    figures = (
        Figure(
            name="standing",
            title="Round trip while a download goes on",
            kind="against",
            y="rtt_s",
            x="aggregate",
            hue="cc",
            where={"plain": 0},
        ),
        Figure(
            name="in-flight",
            title="Bytes in flight while a download goes on",
            kind="against",
            y="in_flight_bytes",
            x="aggregate",
            hue="cc",
            where={"plain": 0},
        ),
        Figure(
            name="goodput",
            title="Goodput of the download",
            kind="against",
            y="goodput_mbps",
            x="aggregate",
            hue="cc",
            where={"plain": 0},
        ),
    )
    notes = (
        "LTE queues half a second. The round trip is TCP's own smoothed one, of the sockets that "
        "send the download: RP's pipes, or the server's connection, which has 4 ms more. Bytes in "
        "flight are of all of them together. Both are medians over samples each tenth of a second, "
        "from three seconds after the start.",
        "A plain connection beside is the same client's, and not redirected; it is under the same "
        "congestion control.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        rivals.around_lp(run)
        seconds, plain = float(run.params["seconds"]), int(run.params["plain"])  # type: ignore[arg-type]
        actors: dict[str, Actor] = {
            f"plain{n}": Bulk(port=traffic.PLAIN_PORT) for n in range(plain)
        }
        with traffic.beside(run, {"download": Bulk(**traffic.way(run)), **actors}) as found:
            time.sleep(SETTLE_S)  # until it has filled what it will fill
            seen = standing.watch(run, seconds)
        end = found["end"]["ended_s"]
        mbps = {
            name: rates.mbps(found[name]["bins"], end - seconds, end) or 0.0
            for name in ("download", *actors)
        }
        total = sum(mbps.values())
        return {
            **seen,
            "goodput_mbps": mbps["download"],
            "share": mbps["download"] / total if plain and total else None,
            "total_mbps": total,
        }
