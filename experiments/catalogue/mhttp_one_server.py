# SPDX-License-Identifier: MIT
"""One server by two paths: plain HTTP by each, mHTTP, MPTCP, and lp with pipes over both."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.model import Claim, Figure
from experiments.workloads import arrivals, fetch, mptcp
from experiments.workloads.mhttp.experiment import (
    BY_RANGES,
    CHUNK,
    KB,
    MB,
    METRICS_OF_ANY,
    PLAIN,
    RANGES,
    TWO_PATHS,
    MhttpExperiment,
    measures,
    own,
    ranges,
    size_of,
    words,
)
from topologies.addresses import client_address
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "mhttp-one-server"
PUBLISHED = "mHTTP, Fig. 14"
WAYS = ("direct", "pipes", "mptcp")
CHUNKS = (256 * KB, 512 * KB, CHUNK)
SIZES = {16 * MB: "16 MB", 64 * MB: "64 MB"}
PATHS: Params = {**TWO_PATHS, "servers": 1, "rtt_ms": 10.0, "second_rtt_ms": 50.0}
MPTCP: Params = {**PLAIN, "way": "mptcp", "pipes": 0}
PIPES: Params = {"way": "pipes", "pipes": 8}
LP: Params = {**PLAIN, **PIPES}
DIRECT: Params = {"way": "direct", "pipes": 0}
OF_MPTCP = 0.97
USED = 0.01  # of the bytes: less is not a path in use


def mhttp(scheduler: str, chunk: int = CHUNK) -> Params:
    return {**ranges(scheduler, chunk), **DIRECT}


def sized(how: Params, size: int) -> Params:
    return {**how, "size": size}


class MhttpOneServer(MhttpExperiment):
    name = "mhttp-one-server"
    ways = WAYS
    title = "One server by two paths"
    question = "What of two paths to one server do mHTTP, MPTCP and pipes over both use?"
    metrics = METRICS_OF_ANY
    grids = (
        {**PATHS, "size": tuple(SIZES), "fetch": "http", "path": (1, 2)},
        {**PATHS, "size": tuple(SIZES), **RANGES, "scheduler": "T", "chunk": CHUNKS},
        {**PATHS, "size": tuple(SIZES), **ranges("ahead")},
        {**PATHS, "size": tuple(SIZES), "fetch": "http", "way": ("mptcp", "pipes"), "pipes": 8},
        {**PATHS, "size": tuple(SIZES), **ranges("ahead"), **PIPES},
    )
    run_seconds = 9.0
    claims = (
        Claim(
            ROW,
            PUBLISHED,
            "16 MB, ranges of 1024 KB: mHTTP instead of MPTCP",
            sized(mhttp("T"), 16 * MB),
            sized(MPTCP, 16 * MB),
            expect="same",
            causes=(BY_RANGES,),
        ),
        Claim(
            ROW,
            PUBLISHED,
            "64 MB, ranges of 1024 KB: mHTTP instead of MPTCP",
            sized(mhttp("T"), 64 * MB),
            sized(MPTCP, 64 * MB),
            causes=(BY_RANGES,),
        ),
        *(
            Claim(
                ROW,
                PUBLISHED,
                f"{told}, ranges of 1024 KB: mHTTP instead of the better path alone",
                sized(mhttp("T"), size),
                sized({**PLAIN, **DIRECT}, size),
                causes=(BY_RANGES,),
            )
            for size, told in SIZES.items()
        ),
        own(
            ROW,
            "64 MB: goodput, lp over both paths instead of ahead in ranges of 1024 KB",
            sized(LP, 64 * MB),
            sized(mhttp("ahead"), 64 * MB),
            metric="goodput_mbps",
            expect="more",
        ),
        own(
            ROW,
            "64 MB: goodput, lp over both paths instead of MPTCP",
            sized(LP, 64 * MB),
            sized(MPTCP, 64 * MB),
            metric="goodput_mbps",
            expect="more",
            than=OF_MPTCP,
        ),
        own(
            ROW,
            "64 MB: time, ahead in ranges of 1024 KB through lp over both paths instead of a "
            "plain GET through it",
            sized({**ranges("ahead"), **PIPES}, 64 * MB),
            sized(LP, 64 * MB),
            than=1.05,
        ),
    )
    figures = (
        Figure(
            name="chunk",
            title="Goodput by size of the ranges",
            kind="against",
            y="goodput_mbps",
            x="chunk",
            hue="scheduler",
            facet="size",
            where={**RANGES, **DIRECT},
        ),
        Figure(
            name="size",
            title="Goodput over the first path, MPTCP and pipes",
            kind="against",
            y="goodput_mbps",
            x="size",
            where=PLAIN,
        ),
    )
    notes = (
        "After mHTTP (Kim and others): two access networks of 100 Mbit/s, 10 and 50 ms away, and "
        "one server behind both. MPTCP has a subflow by each path; lp has half of its pipes by "
        "each, and the client's connections are redirected to it: mHTTP's ranges, too, in one "
        "configuration, where both of its connections share all pipes. Upstream's MPTCP stands for "
        "version 0.86, both uncoupled, with cubic.",
    )

    def lp_options(self, params: Params, folder: Path) -> Sequence[str]:
        each = max(1, int(params["pipes"]) // 2)  # type: ignore[arg-type]
        names = ("first", "second")
        told = (f"{name},src={client_address(n)},pipes={each}" for n, name in enumerate(names))
        return [word for path in told for word in ("--path", path)]

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        more = []
        if run.params["way"] == "mptcp":
            run.kept("subflows", lambda: mptcp.subflow_by_each_mile(run.lab))
            more = ["--mptcp"]
        received = partial(arrivals.received, run.lab)
        before = received()
        found = fetch.object_of(run, size_of(run.params), *words(run.params), *more)
        came = [now - was for was, now in zip(before, received(), strict=True)]
        told = measures(run.params, found)
        told["second_share"] = came[1] / sum(came)
        if run.params["way"] != "direct" and not USED < told["second_share"] < 1 - USED:
            raise RunFailed(f"the second path carried {told['second_share']:.3f} of the bytes")
        return told
