# SPDX-License-Identifier: MIT
"""A thin stream beside a bulk download: on the same pipes, on a connection of its own, alone."""

from typing import TYPE_CHECKING, Any

from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import thin_beside
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "thin-beside"
PIPES = (1, 8)
PATH: Params = {"preset": "thin", "wan_rtt_ms": 0.0}
# Without loss a bulk takes all of the rate: for 100 Mbit/s two cores are too slow that have both
# proxies, the emulator and the client.
RATES_MBPS = {0.0: (20.0, 100.0), 0.02: (100.0,)}  # by loss
MOST_ADDED_MS = 10.0  # of the 99th percentile, by a bulk on the same pipes, without loss
LEAST_KEPT = 0.97  # of the bulk's rate


def over(pipes: int, bulk: str, loss: float, mbps: float = 100.0) -> Params:
    """0 pipes: direct."""
    way: Params = {"way": "pipes" if pipes else "direct", "pipes": pipes}
    return {**PATH, **way, "bulk": bulk, "loss": loss, "mbps": mbps}


def told(pipes: int) -> str:
    return "1 pipe" if pipes == 1 else f"{pipes} pipes"


def claims_without_loss(pipes: int, mbps: float) -> tuple[Claim, ...]:
    same = over(pipes, "same", 0.0, mbps)
    at = f"{mbps:g} Mbit/s, {told(pipes)}, nothing is lost: a bulk on the same"
    return (
        Claim(
            ROW,
            OWN,
            f"{at}: what the 99th percentile is more than alone",
            same,
            over(pipes, "none", 0.0, mbps),
            metric="answer_p99_ms",
            compared="difference",
            than=MOST_ADDED_MS,
        ),
        Claim(
            ROW,
            OWN,
            f"{at}: what it keeps of its rate",
            same,
            metric="bulk_kept",
            expect="more",
            than=LEAST_KEPT,
        ),
    )


def claims_with_loss(pipes: int) -> tuple[Claim, ...]:
    """What was proposed: who always has something to send tells the other of its losses."""
    same = over(pipes, "same", 0.02)
    return tuple(
        Claim(
            ROW,
            "§5.1.2",
            f"{told(pipes)}, 2 % lost: 99th percentile beside a bulk on the same, to {what}",
            same,
            other,
            metric="answer_p99_ms",
        )
        for what, other in (
            ("alone", over(pipes, "none", 0.02)),
            ("beside one that is apart", over(pipes, "apart", 0.02)),
        )
    )


def grids_of(way: Grid) -> tuple[Grid, ...]:
    return tuple(
        {**as_grid(PATH), "loss": (loss,), "mbps": rates, **way}
        for loss, rates in RATES_MBPS.items()
    )


def spread(name: str, title: str, where: Params) -> Figure:
    """Of all answers."""
    return Figure(
        name=name,
        title=title,
        kind="ccdf",
        y="answer_p99_ms",
        x="answers_s",
        hue="bulk",
        facet="loss",
        where=where,
    )


class ThinBeside(Experiment):
    name = ROW
    ways = ("pipes", "direct")
    title = "A thin stream beside a bulk download"
    question = "Does a bulk on the same pipes help a thin stream to repair its losses, or delay it?"
    parameters = (
        Parameter(
            "bulk",
            "same",
            "text",
            "none, over the same pipes, or by a connection of its own that goes around them",
            thin_beside.BULKS,
            noun="bulk",
        ),
        Parameter("queries", 1000, "whole", "queries of the thin stream", low=1),
        Parameter("every_ms", 50.0, "number", "between two queries", low=1, noun="interval"),
    )
    metrics = (
        Metric(
            "answer_p99_ms",
            "time of an answer, 99th percentile",
            "ms",
            matters=0.1,
            matters_by=1.0,
        ),
        Metric("answer_p999_ms", "time of an answer, 99.9th percentile", "ms", matters=0.1),
        Metric("answer_p97_ms", "time of an answer, 97th percentile", "ms", matters=0.1),
        Metric("answer_p50_ms", "time of an answer, median", "ms"),
        Metric("bulk_mbps", "goodput of the bulk meanwhile", "Mbit/s", "more", matters=0.02),
        Metric("bulk_kept", "goodput of the bulk / goodput before", "", "more", matters=0.02),
    )
    shown = ("answer_p50_ms", "answer_p97_ms", "answer_p999_ms", "bulk_mbps", "bulk_kept")
    grids = (
        *grids_of({"pipes": PIPES, "bulk": thin_beside.BULKS}),
        *grids_of({"way": ("direct",), "bulk": ("none", "apart")}),
    )
    reps = 8
    quick_grids = grids_of({"pipes": PIPES, "bulk": thin_beside.BULKS, "queries": (400,)})
    quick_reps = 5
    in_all_quick = False  # a run takes as long as its queries
    run_seconds = 60.0
    claims = (
        *(
            it
            for mbps in RATES_MBPS[0.0]
            for pipes in PIPES
            for it in claims_without_loss(pipes, mbps)
        ),
        *(it for pipes in PIPES for it in claims_with_loss(pipes)),
    )
    figures = (
        spread("one", "Times of answers over 1 pipe", {"way": "pipes", "pipes": 1}),
        spread("eight", "Times of answers over 8 pipes", {"way": "pipes", "pipes": 8}),
        Figure(
            name="p99",
            title="Times of answers, 99th percentile",
            kind="against",
            y="answer_p99_ms",
            x="bulk",
            hue="pipes",
            facet="loss",
        ),
        Figure(
            name="kept",
            title="What the bulk keeps of its rate beside a thin stream",
            kind="against",
            y="bulk_kept",
            x="loss",
            hue="pipes",
            where={"bulk": "same"},
        ),
    )
    notes = (
        "100 Mbit/s, and 20 where nothing is lost, 20 ms; 40 bytes every 50 ms on one connection, "
        "answered by as many, whether or not those before were. The bulk is a download, so answers "
        "compete with it; it begins 7 s before the first query, and its rate in the last 4 of "
        "these is what it keeps a share of. A bulk that is apart shares the last mile and its "
        "queue, and no pipe.",
        "That bulk and thin streams help each other was proposed and not measured: who always has "
        "something to send learns of a loss within a round trip. There is no published value, "
        "only the direction. What was proposed besides, room in the window that a bulk leaves "
        "free, is not in the proxies (docs/decisions/0012-one-decision.md).",
        "The bounds without loss are the laboratory's own.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return thin_beside.ask(
            run,
            str(run.params["bulk"]),
            int(run.params["queries"]),  # type: ignore[arg-type]
            float(run.params["every_ms"]) / 1e3,  # type: ignore[arg-type]
        )
