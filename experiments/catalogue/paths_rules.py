# SPDX-License-Identifier: MIT
"""Small objects beside a bulk download, over Wi-Fi and LTE at once, with and without rules."""

from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import account, objects, rates, traffic
from experiments.workloads.actors import Bulk, Objects
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

NAMES = ("wifi", "lte")
RTTS_MS = (70.0, 270.0, 470.0)
BULK = f"port {traffic.PLAIN_PORT} paths lte"
OBJECTS = f"port {traffic.PORT} paths wifi"
# What lp is told with --rule.
RULES = {"none": (), "bulk": (BULK,), "both": (BULK, OBJECTS)}
BASE: Params = {"preset": "wifi-lte", "pipes": 4, "way": "pipes"}
LTE_MBPS = 9.185
# Of the link's rate, what is left for the application's bytes behind headers.
USED = 0.85


def runs(rules: str, rtt_ms: float) -> Params:
    return {**BASE, "rules": rules, "second_rtt_ms": rtt_ms}


def sooner(rules: str, rtt_ms: float) -> Claim:
    return Claim(
        row="paths-rules",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms, rules for {rules} instead of none: an object, median",
        of=runs(rules, rtt_ms),
        over=runs("none", rtt_ms),
        metric="object_p50_s",
        expect="less",
        than=1.05,
    )


def on_lte_alone(rtt_ms: float) -> Claim:
    return Claim(
        row="paths-rules",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms, the bulk bound to it: what it carries",
        of=runs("bulk", rtt_ms),
        metric="bulk_mbps",
        expect="more",
        than=USED * LTE_MBPS,
    )


class PathsRules(Experiment):
    name = "paths-rules"
    ways = ("pipes",)
    title = "Rules that bind connections to paths"
    question = "What does a small object gain if the bulk beside it is kept on the other path?"
    parameters = (
        Parameter(
            "rules",
            "bulk",
            "text",
            "what lp is told: nothing, that the bulk goes over LTE, or the objects over Wi-Fi, too",
            tuple(RULES),
        ),
        Parameter("seconds", 6.0, "number", "for which objects are asked for", low=0.1),
    )
    metrics = (
        Metric("object_p50_s", "time of an object, median", "s", matters=0.05),
        Metric("object_p95_s", "time of an object, 95th percentile", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.05),
        Metric("wifi_bytes", "bytes that rp sent over Wi-Fi", "B", "neither"),
    )
    paths = NAMES
    grids = ({**BASE, "rules": tuple(RULES), "second_rtt_ms": RTTS_MS},)
    reps = 20
    quick_grids = grids
    quick_reps = 5
    in_all_quick = False
    run_seconds = 10.0
    claims = (
        *(sooner(rules, rtt) for rules in ("bulk", "both") for rtt in RTTS_MS),
        *(on_lte_alone(rtt) for rtt in RTTS_MS),
    )
    figures = (
        Figure(
            name="objects",
            title="A 4 KB object beside a bulk download",
            kind="against",
            y="object_p50_s",
            x="second_rtt_ms",
            hue="rules",
            log=True,
        ),
        Figure(
            name="bulk",
            title="The bulk beside it",
            kind="against",
            y="bulk_mbps",
            x="second_rtt_ms",
            hue="rules",
        ),
    )
    notes = (
        "Four pipes over each path: Wi-Fi of 7.04 Mbit/s and 50 ms, LTE of 9.185 Mbit/s. The "
        "object is asked for on a connection that is open already. Objects and bulk go to two "
        "ports of one server, which is what the rules tell them apart by.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        return [word for rule in RULES[str(params["rules"])] for word in ("--rule", rule)]

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        found = traffic.play(
            run,
            {
                "objects": Objects(
                    port=traffic.PORT,
                    size=objects.OBJECT_BYTES,
                    count=20,
                    seconds=float(run.params["seconds"]),  # type: ignore[arg-type]
                    way="down",
                    wait_s=objects.SETTLE_S,
                    pause_s=0.1,
                ),
                "bulk": Bulk(port=traffic.PLAIN_PORT, way="down"),
            },
        )
        of = found["objects"]
        told = account.account(run, connections=2)
        written = {it["path"]: it["written"] for it in told.of("rp", "path")}
        return {
            **objects.summary(of["seconds"]),
            "bulk_mbps": rates.mbps(found["bulk"]["bins"], of["began_s"], of["ended_s"]),
            "wifi_bytes": written.get(0),
        }
