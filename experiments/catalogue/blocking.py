# SPDX-License-Identifier: MIT
"""What late binding is held to beside bulk: pipes, rates, queues, losses and loads in turn."""

from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import objects, rivals
from experiments.workloads.rates import FRAME
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PLAIN: Params = {
    "preset": "wired",
    "mbps": 10.0,
    "pipes": 8,
    "cc": "cubic",
    "bulks": 1,
    "bulk_way": "down",
    "rivals": 0,
    "queue_ms": 100.0,
    "rtt_ms": 50.0,
    "loss": 0.0,
    "jitter_ms": 0.0,
    "trace_down": None,
    "wan_mbps": 1000.0,
    "wan_rtt_ms": 4.0,
    "link": "auto",
}
SENDER: Params = {**PLAIN, "bottleneck": "sender"}
NETWORK: Params = {**PLAIN, "bottleneck": "network"}
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
LOSS: Params = {"loss": 0.01}
JITTER: Params = {"jitter_ms": 10.0}
TRACE: Params = {"trace_down": "synthetic-lte"}
RIVAL: Params = {"rivals": 1}
# Each of these last miles with each number of pipes, under each congestion control.
MILES: tuple[Params, ...] = (
    SENDER,
    *({**NETWORK, "queue_ms": queue_ms} for queue_ms in (50.0, 100.0, 500.0)),
    *({**NETWORK, "loss": loss} for loss in (0.005, 0.01, 0.02)),
    {**NETWORK, **JITTER},
    {**NETWORK, **TRACE},
)
CASES: tuple[Params, ...] = tuple(
    {
        str(sorted(case.items())): case
        for case in (
            *({**SENDER, **it} for it in (*VARIED, GIGABIT)),
            *({**NETWORK, **it} for it in VARIED),
            {**NETWORK, **RIVAL},
            *(
                {**mile, "pipes": pipes, "cc": cc}
                for mile in MILES
                for pipes in (4, 8, 16)
                for cc in ("cubic", "bbr")
            ),
        )
    }.values()
)
QUICK: tuple[Params, ...] = (SENDER, NETWORK, {**NETWORK, **LOSS}, {**NETWORK, **TRACE})
PLACES = {"sender": "queue of the sender", "network": "queue in the network"}
LATE: Params = {"binding": "late", "pipe_policy": "soonest"}
EARLY: Params = {"binding": "early", "pipe_policy": "least"}


def words(case: Params) -> str:
    """What differs from the plain case."""
    told = [str(case["trace_down"]) if case["trace_down"] else f"{case['mbps']:g} Mbit/s"]
    told += [f"{case['pipes']} pipe{'s' * (case['pipes'] != 1)}"]
    told += [f"{case['rtt_ms']:g} ms"] * (case["rtt_ms"] != PLAIN["rtt_ms"])
    told += [f"{case['queue_ms']:g} ms deep"] * (case["bottleneck"] == "network")
    told += [f"{float(case['loss']) * 100:g} % loss"] * bool(case["loss"])  # type: ignore[arg-type]
    told += [f"{case['jitter_ms']:g} ms of jitter"] * bool(case["jitter_ms"])
    told += [str(case["cc"])] * (case["cc"] != PLAIN["cc"])
    told += [f"{case['bulks']} bulk connections"] * (case["bulks"] != 1)
    told += ["upwards"] * (case["bulk_way"] == "up")
    told += ["beside a plain connection"] * bool(case["rivals"])
    return f"{PLACES[str(case['bottleneck'])]}, {', '.join(told)}"


def is_clean(case: Params) -> bool:
    return not (case["loss"] or case["jitter_ms"] or case["trace_down"])


def may_wait_s(case: Params) -> float:
    """Of the median object, beyond what it takes alone: three segments, or 5 ms, on clean links."""
    segments_s = 3 * FRAME * 8 / (float(case["mbps"]) * 1e6)  # type: ignore[arg-type]
    return max(0.005, segments_s) if is_clean(case) else 0.01


def goodput_at_least(case: Params) -> float:
    """Of early binding's."""
    return 0.9 if case["trace_down"] else 0.97


def claims_of(case: Params) -> tuple[Claim, ...]:
    if case["rivals"]:  # whose queue it is nobody can bound: see share
        return ()
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

    longer = "an object beside bulk takes longer than alone"
    rare, name, most = ("90th", "p90", 0.04) if case["loss"] else ("95th", "p95", 0.025)
    found = [
        bound(f"what {longer}, median", "added_s", may_wait_s(case)),
        bound(f"what {longer}, {rare} percentile", f"added_{name}_s", most),
        claim(
            "goodput of the bulk, late binding instead of early",
            "bulk_mbps",
            over={**case, **EARLY},
            expect="more",
            than=goodput_at_least(case),
        ),
        claim("time in which the pipes give way", "yielding", unit="of the time", than=0.02),
    ]
    if case["pipes"] == 8 and case["bulks"] == 1 and is_clean(case):
        found += [
            bound("waiting of a message, 99th percentile", "reorder_p99_s", 0.025),
            bound("the same in the bulk's first second", "reorder_first_p99_s", 0.05),
        ]
    if case["bulks"] != 1:
        says = "Jain's index of what each of them got"
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
        *rivals.PARAMETERS,
        Parameter("bulks", 1, "whole", "connections with a bulk transfer", low=1, high=200),
        Parameter("bulk_way", "down", "text", "which way object and bulk go", ("down", "up")),
    )
    metrics = (
        Metric("added_s", "added to the time of an object", "s", matters=0.05, matters_by=0.001),
        Metric("added_p90_s", "added to the median object's time, 90th percentile", "s"),
        Metric("added_p95_s", "added to the median object's time, 95th percentile", "s"),
        Metric("object_p50_s", "time of an object beside bulk, median", "s", matters=0.1),
        Metric("object_p95_s", "time of an object beside bulk, 95th percentile", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
        Metric("jain", "Jain's index of what each bulk got so far", "", "more", matters=0.02),
        Metric("reorder_p75_s", "waiting of a message, 75th percentile", "s", matters=0.1),
        Metric("reorder_p99_s", "waiting of a message, 99th percentile", "s"),
        Metric(
            "reorder_first_p99_s",
            "waiting of a message in the bulk's first second, 99th percentile",
            "s",
        ),
        Metric("yielding", "share of the time in which the pipes give way", ""),
    )
    shown = ("added_p90_s", "added_p95_s", "bulk_mbps", "reorder_p99_s", "yielding")
    grids = grids_of(CASES)
    reps = 5
    quick_grids = grids_of(QUICK)
    quick_reps = 5
    run_seconds = 11.0
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
        "are open already; what is compared is what they take longer than the median object alone. "
        "The bulk has had three seconds by then.",
        "One thing is varied at a time, from 8 pipes, 10 Mbit/s, 50 ms, CUBIC, one bulk "
        "connection, downwards, 100 ms of queue, no loss; and each last mile is run with 4, 8 and "
        "16 pipes under CUBIC and BBR. Loss is on both ways.",
        "synthetic-lte is a rate that wanders as those of published LTE captures do, drawn from a "
        "seed: experiments/traces.py. No user was captured.",
        "Beside a plain connection, which began before, there is no bound: the queue is its own. "
        "What the pipes' share is then the experiment share bounds.",
        "Where packets are lost or overtake one another a message waits for the one before it, "
        "which TCP has to repair; so the bounds of that waiting are of clean links.",
        "The bounds are the laboratory's own. Three segments, or 4 ms, may wait in a queue by "
        "design. The bulk's first second is a connection of its own, so that what waits at the "
        "receiver at the start is told apart from what waits later.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        bulks, way = int(run.params["bulks"]), run.params["bulk_way"]  # type: ignore[arg-type]
        return objects.alone_then_beside(run, bulks, way)  # type: ignore[arg-type]
