# SPDX-License-Identifier: MIT
"""What late binding is held to beside bulk: every number of pipes, rate, queue and load in turn."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.sender_blocking import as_grid
from experiments.model import Claim, Experiment, Figure, Grid, Metric, Parameter, Params
from experiments.workloads import account, objects
from experiments.workloads.rates import MSS

if TYPE_CHECKING:
    from experiments.bed import Bed

MAY_WAIT_BITS = (objects.OBJECT_BYTES + 3 * MSS) * 8
PLAIN: Params = {
    "preset": "wired",
    "mbps": 10.0,
    "pipes": 8,
    "cc": "cubic",
    "bulks": 1,
    "bulk_way": "down",
    "queue_ms": 100.0,
    "rtt_ms": 50.0,
    "wan_mbps": 1000.0,
    "wan_rtt_ms": 4.0,
    "link": "auto",
}
VARIED: tuple[Params, ...] = (
    {},
    *({"pipes": pipes} for pipes in (1, 2, 4, 16)),
    *({"mbps": mbps} for mbps in (5.0, 20.0, 100.0)),
    {"cc": "bbr"},
    {"bulks": 50},
    {"bulk_way": "up"},
)
# An emulator at that rate would take the processors from those who are measured.
GIGABIT: Params = {
    "mbps": 1000.0,
    "rtt_ms": 0.0,
    "wan_rtt_ms": 0.0,
    "wan_mbps": 10_000.0,
    "link": "veth",
}
QUEUES: tuple[Params, ...] = ({"queue_ms": 50.0}, {"queue_ms": 500.0})
CASES: tuple[Params, ...] = (
    *({**PLAIN, **it, "bottleneck": "sender"} for it in (*VARIED, GIGABIT)),
    *({**PLAIN, **it, "bottleneck": "network"} for it in (*VARIED, *QUEUES)),
)
QUICK: tuple[Params, ...] = (
    {**PLAIN, "bottleneck": "sender"},
    {**PLAIN, "bottleneck": "sender", "pipes": 1},
    {**PLAIN, "bottleneck": "network"},
    {**PLAIN, "bottleneck": "network", "bulks": 50},
)
PLACES = {"sender": "queue of the sender", "network": "queue in the network"}
LATE: Params = {"binding": "late", "pipe_policy": "soonest"}
EARLY: Params = {"binding": "early", "pipe_policy": "least"}


def words(case: Params) -> str:
    """What differs from the plain case."""
    told = [f"{case['mbps']:g} Mbit/s", f"{case['pipes']} pipe{'s' * (case['pipes'] != 1)}"]
    told += [f"{case['rtt_ms']:g} ms"] * (case["rtt_ms"] != PLAIN["rtt_ms"])
    told += [f"{case['queue_ms']:g} ms deep"] * (case["bottleneck"] == "network")
    told += [str(case["cc"])] * (case["cc"] != PLAIN["cc"])
    told += [f"{case['bulks']} bulk connections"] * (case["bulks"] != 1)
    told += ["upwards"] * (case["bulk_way"] == "up")
    return f"{PLACES[str(case['bottleneck'])]}, {', '.join(told)}"


def may_wait(case: Params) -> float:
    """Beyond what the object takes alone."""
    if case["bottleneck"] == "network":
        return 0.025
    return max(0.01, MAY_WAIT_BITS / (float(case["mbps"]) * 1e6))  # type: ignore[arg-type]


def claims_of(case: Params) -> tuple[Claim, ...]:
    late: Params = {**case, **LATE}

    def claim(says: str, metric: str, **more: Any) -> Claim:
        return Claim(
            row="blocking",
            where="not published",
            says=f"{words(case)}: {says}",
            of=late,
            metric=metric,
            **more,
        )

    def bound(says: str, metric: str, most: float) -> Claim:
        return claim(says, metric, unit="s", expect="less", than=most)

    found = [
        bound("what an object beside bulk takes longer than alone", "added_s", may_wait(case)),
        claim(
            "goodput of the bulk, late binding instead of early",
            "bulk_mbps",
            over={**case, **EARLY},
            expect="more",
            than=0.97 if case["bottleneck"] == "sender" else 0.95,
        ),
    ]
    if case["pipes"] in (4, 8) and case["cc"] == "cubic":
        found += [
            bound("waiting of a message, 75th percentile", "reorder_p75_s", 0.005),
            bound("waiting of a message, 99th percentile", "reorder_p99_s", 0.025),
        ]
    if case["bulks"] != 1:
        says = "Jain's index of their goodputs"
        found.append(claim(says, "jain", unit="index", expect="more", than=0.95))
    return tuple(found)


def grids_of(cases: tuple[Params, ...]) -> tuple[Grid, ...]:
    """Each case late and early."""
    return tuple(as_grid(how, case) for case in cases for how in (LATE, EARLY))


class Blocking(Experiment):
    name = "blocking"
    ways = ("pipes",)
    title = "Freedom from blocking, case by case"
    question = "What does a small object wait for beside bulk, and what does that freedom cost?"
    parameters = (
        Parameter("bulks", 1, "whole", "connections with a bulk transfer", low=1, high=200),
        Parameter("bulk_way", "down", "text", "which way object and bulk go", ("down", "up")),
    )
    metrics = (
        Metric("added_s", "added to the time of an object", "s"),
        Metric("object_p50_s", "time of an object beside bulk, median", "s"),
        Metric("object_p95_s", "time of an object beside bulk, 95th percentile", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more"),
        Metric("jain", "Jain's index of the bulk connections", "", "more"),
        Metric("reorder_p75_s", "waiting of a message, 75th percentile", "s"),
        Metric("reorder_p99_s", "waiting of a message, 99th percentile", "s"),
    )
    grids = grids_of(CASES)
    reps = 10
    quick_grids = grids_of(QUICK)
    quick_reps = 5
    run_seconds = 8.0
    claims = tuple(claim for case in CASES for claim in claims_of(case))
    figures = tuple(
        Figure(
            name=f"by-{name}-{place}",
            title=f"A 4 KB object beside bulk, {PLACES[place]}",
            kind="against",
            y="added_s",
            x=name,
            hue="binding",
            where={**{k: v for k, v in PLAIN.items() if k != name}, "bottleneck": place},
            log=True,
        )
        for place in PLACES
        for name in ("pipes", "mbps")
    )
    notes = (
        "Each run asks for objects of 4 KB alone first, then beside the bulk, on connections that "
        "are open already; what is compared are the medians of the two. The bulk has had two "
        "seconds by then.",
        "One thing is varied at a time, from 8 pipes, 10 Mbit/s, 50 ms, CUBIC, one bulk "
        "connection, downwards, 100 ms of queue.",
        "The bounds are the laboratory's own. Three segments, or 4 ms, may wait in a queue by "
        "design. What waits at the receiver includes the start of the bulk.",
    )

    def measure(self, bed: "Bed") -> dict[str, Any]:
        bulks, way = int(bed.params["bulks"]), bed.params["bulk_way"]  # type: ignore[arg-type]
        found = objects.alone_then_beside(bed, bulks, way)  # type: ignore[arg-type]
        return found | account.account(bed, connections=2 + bulks).measures(way)  # type: ignore[arg-type]
