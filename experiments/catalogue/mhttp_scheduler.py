# SPDX-License-Identifier: MIT
"""mHTTP's schedulers over two paths: the time of an object, and what waits for earlier bytes."""

from experiments.model import Claim, Figure
from experiments.workloads.mhttp.experiment import (
    CHUNK,
    KB,
    MB,
    PLAIN,
    RANGES,
    TWO_PATHS,
    MhttpExperiment,
    own,
    ranges,
)
from experiments.workloads.mhttp.scheduler import SCHEDULERS
from topologies.parameter import Params

ROW = "mhttp-scheduler"
PUBLISHED = "mHTTP, Fig. 11"
CHUNKS = {256 * KB: "256 KB", 512 * KB: "512 KB", CHUNK: "1024 KB"}
ALIKE = "100 Mbit/s, 10 and 50 ms"
TEN_TO_ONE = "20 and 2 Mbit/s"
CASES: dict[str, Params] = {
    ALIKE: {"mbps": 100.0, "second_mbps": 100.0, "rtt_ms": 10.0, "second_rtt_ms": 50.0},
    TEN_TO_ONE: {"mbps": 20.0, "second_mbps": 2.0, "rtt_ms": 50.0, "second_rtt_ms": 50.0},
    "10 and 2 Mbit/s": {"mbps": 10.0, "second_mbps": 2.0, "rtt_ms": 50.0, "second_rtt_ms": 50.0},
}
SIZE: Params = {"size": 16 * MB}
HALF_OF_CASES_MB = 1.0
MOST_MB = 7.0
OF_BETTER = 1.03
THIRD = 1 / 3


def cell(case: str, scheduler: str, chunk: int = CHUNK) -> Params:
    return {**CASES[case], **ranges(scheduler, chunk)}


def claim(says: str, of: Params, over: Params | None = None, **more: object) -> Claim:
    return Claim(ROW, PUBLISHED, says, of, over, **more)  # type: ignore[arg-type]


def published(chunk: int) -> tuple[Claim, ...]:
    t, baseline = cell(ALIKE, "T", chunk), cell(ALIKE, "next", chunk)
    where = f"16 MB, {ALIKE}, ranges of {CHUNKS[chunk]}"
    occupied = "Published of the buffer at any time, ours is the most of a run."
    return (
        claim(f"{where}: time, T instead of next", t, baseline, expect="same"),
        claim(f"{where}: buffer, T instead of next", t, baseline, metric="peak_mb"),
        claim(
            f"{where}: buffer with T in half of the cases",
            t,
            metric="peak_mb",
            than=HALF_OF_CASES_MB,
            unit="MB",
            note=occupied,
        ),
        claim(
            f"{where}: buffer with T at most",
            t,
            metric="peak_mb",
            statistic="worst",
            than=MOST_MB,
            unit="MB",
        ),
    )


def buffers(case: str) -> tuple[Claim, ...]:
    """T's at most next's everywhere; at 10:1 a third of it."""
    return tuple(
        own(
            ROW,
            f"16 MB, {case}, ranges of {told}: buffer, T instead of next",
            cell(case, "T", chunk),
            cell(case, "next", chunk),
            metric="peak_mb",
            than=THIRD if case == TEN_TO_ONE and chunk >= 512 * KB else 1.0,
        )
        for chunk, told in CHUNKS.items()
    )


ALONE: Params = {**CASES[TEN_TO_ONE], **PLAIN}
AGAINST_BETTER = f"16 MB, {TEN_TO_ONE}, ranges of 1024 KB: {{}} instead of the better path alone"


class MhttpScheduler(MhttpExperiment):
    name = "mhttp-scheduler"
    title = "Which range comes next"
    question = "What does the choice of the next range cost in time, and what in the buffer?"
    grids = tuple(
        {**TWO_PATHS, **case, **SIZE, **how}
        for case in CASES.values()
        for how in (
            {"fetch": "http"},
            {**RANGES, "scheduler": tuple(SCHEDULERS), "chunk": tuple(CHUNKS)},
        )
    )
    run_seconds = 9.0
    claims = (
        *(it for chunk in CHUNKS for it in published(chunk)),
        *(it for case in CASES for it in buffers(case)),
        own(
            ROW,
            AGAINST_BETTER.format("deadline"),
            cell(TEN_TO_ONE, "deadline"),
            ALONE,
            than=OF_BETTER,
        ),
        own(
            ROW,
            AGAINST_BETTER.format("T"),
            cell(TEN_TO_ONE, "T"),
            ALONE,
            expect="more",
            note="The bound is deadline's; T is here to stand beside it.",
        ),
    )
    figures = tuple(
        Figure(
            name=f"{what}-{number}",
            title=f"{title}, {case}",
            kind="against",
            y=y,
            x="chunk",
            hue="scheduler",
            where={**its, **RANGES},
        )
        for number, (case, its) in enumerate(CASES.items(), 1)
        for what, title, y in (
            ("time", "16 MB", "completion_s"),
            ("buffer", "Buffer, 16 MB", "peak_mb"),
        )
    )
    notes = (
        "After mHTTP (Kim and others): `next` asks for the first range that nobody was asked for, "
        "`T` for the T-th, T being the largest throughput by the path's own. Ours are `ahead`, "
        "which is `next` a round trip before the last range ends, and `deadline`, which asks for "
        "no range that another path would deliver sooner. Rates of 20 and 2, and of 10 and 2 "
        "Mbit/s were not published; there both round trips are 50 ms.",
        "What is published of the buffer is how large it is at any time of downloads of 16 MB. "
        "Here it is the most in a run, which is more.",
    )
