# SPDX-License-Identifier: MIT
"""Small queries one after the other over a fast path that loses packets, by number of pipes."""

from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import rates, traffic
from experiments.workloads.thin import Thin
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PIPES = (1, 2, 4, 8)
ONE: Params = {"way": "pipes", "pipes": 1}
MOST = 1.1  # of one pipe's 99th percentile


def claim(pipes: int) -> Claim:
    return Claim(
        row="thin",
        where="not published",
        says=f"{pipes} pipes instead of 1: 99th percentile of the answers",
        of={"way": "pipes", "pipes": pipes},
        over=ONE,
        metric="answer_p99_s",
        than=MOST,
    )


class ThinStreams(Experiment):
    name = "thin"
    ways = ("pipes", "direct")
    title = "Thin streams over a path that loses packets"
    question = "Do small queries wait longer for their answers when several pipes share them?"
    parameters = (
        Parameter("queries", 300, "whole", "queries of the stream", low=1),
        Parameter("size", 40, "size", "of a query, and of its answer", low=1),
        Parameter("every_ms", 50.0, "number", "between two queries", low=1),
    )
    metrics = (
        Metric("answer_p99_s", "time of an answer, 99th percentile", "s", matters=0.1),
        Metric("answer_p97_s", "time of an answer, 97th percentile", "s", matters=0.1),
        Metric("answer_p50_s", "time of an answer, median", "s"),
    )
    shown = ("answer_p50_s", "answer_p97_s")
    grids = (
        {"preset": ("thin",), "pipes": PIPES},
        {"preset": ("thin",), "way": ("direct",)},
    )
    reps = 20
    quick_grids = ({"preset": ("thin",), "pipes": (1, 8)},)
    quick_reps = 5
    run_seconds = 17.0
    claims = tuple(claim(pipes) for pipes in PIPES if pipes > 1)
    figures = (
        Figure(name="p99", title="Thin streams", kind="against", y="answer_p99_s"),
        Figure(name="p97", title="Thin streams", kind="against", y="answer_p97_s"),
    )
    notes = (
        "100 Mbit/s, 20 ms and 2 % loss each way: published measurements of thin streams were made "
        "so. A query is sent every 50 ms, whether or not the last was answered; all go over one "
        "connection, so an answer also waits for those before it.",
        "Of 300 queries three are above the 99th percentile. What is compared are medians over "
        "runs that met the same losses. The bound is the laboratory's own.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        words: dict[str, Any] = {
            "size": int(run.params["size"]),  # type: ignore[arg-type]
            "count": int(run.params["queries"]),  # type: ignore[arg-type]
            "every_s": float(run.params["every_ms"]) / 1e3,  # type: ignore[arg-type]
        }
        taken = traffic.play(run, {"thin": Thin(**words, **traffic.way(run))})["thin"]["seconds"]
        p50, p97, p99 = (rates.quantile(taken, share) for share in (0.5, 0.97, 0.99))
        return {
            "completion_s": p50,
            "answer_p50_s": p50,
            "answer_p97_s": p97,
            "answer_p99_s": p99,
            "answers_s": [round(each, 5) for each in taken],
        }
