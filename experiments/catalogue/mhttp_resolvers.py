# SPDX-License-Identifier: MIT
"""mHTTP from a content network of three servers, of which resolvers tell different ones."""

from typing import TYPE_CHECKING, Any

from experiments.causes.ranges import Ranges
from experiments.model import Claim, Figure
from experiments.workloads import fetch
from experiments.workloads.mhttp.experiment import (
    CHUNK,
    KB,
    MB,
    METRICS_OF_ANY,
    MHTTP,
    PARAMETERS,
    PLAIN,
    RANGES,
    TWO_PATHS,
    MhttpExperiment,
    measures,
    paths,
    size_of,
    words,
)
from experiments.workloads.mhttp.experiment import expected_s as without_look_up_s
from topologies.addresses import server_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "mhttp-resolvers"
PUBLISHED = "mHTTP, Fig. 17"
PUBLIC_SERVER, PUBLIC_LINK = 2, "wan3"
CHUNKS = (256 * KB, 512 * KB, CHUNK)
ASKED = ("local", "public", "both")
PATHS: Params = {
    **TWO_PATHS,
    "servers": 3,
    "rtt_ms": 20.0,
    "second_rtt_ms": 20.0,
    "wan_rtt_ms": 10.0,
    "size": 16 * MB,
}
ALONE: Params = {**PLAIN, "resolvers": None}


def cell(asked: str) -> Params:
    return {**RANGES, "scheduler": "T", "chunk": CHUNK, "resolvers": asked}


def expected_s(params: Params, part: float = 1.0) -> float | None:
    """With the look-up, and with the round trip to the servers that were told of; None where
    they are of both resolvers."""
    if params.get("resolvers") == "both":
        return None
    if params.get("resolvers") == "public":
        params = {**params, "wan_rtt_ms": params["public_rtt_ms"]}
    asked_s = max(it.rtt_s for it in paths(params))
    if params.get("resolvers") != "public":
        asked_s -= float(params["wan_rtt_ms"]) / 1e3  # type: ignore[arg-type]
    return part * asked_s + without_look_up_s(params, part)


LOOKED_UP = Ranges(expected_s)


def claim(says: str, of: Params, over: Params, **more: Any) -> Claim:
    return Claim(
        ROW, PUBLISHED, f"16 MB, ranges of 1024 KB: {says}", of, over, causes=(LOOKED_UP,), **more
    )


class MhttpResolvers(MhttpExperiment):
    name = "mhttp-resolvers"
    title = "Whom to ask for addresses"
    question = "Which resolvers tell mHTTP of servers that it gains by?"
    parameters = (
        *PARAMETERS,
        Parameter(
            "resolvers",
            "local",
            "text",
            "that each path asks: its access network's, a public one, or both",
            ASKED,
            needs=MHTTP,
        ),
        Parameter(
            "public_rtt_ms",
            60.0,
            "number",
            "behind the last miles, to the server that the public resolver tells of",
            low=0,
            high=2e4,
        ),
    )
    metrics = METRICS_OF_ANY
    grids = (
        {**PATHS, "fetch": "http", "path": (1, 2)},
        {**PATHS, **RANGES, "scheduler": "T", "chunk": CHUNKS, "resolvers": ASKED},
    )
    run_seconds = 5.0
    claims = (
        *(
            claim(f"mHTTP asking {told} instead of one path alone", cell(asked), ALONE, paper=0.5)
            for asked, told in (("local", "local resolvers"), ("public", "the public resolver"))
        ),
        claim(
            "mHTTP asking the public resolver instead of local ones",
            cell("public"),
            cell("local"),
            expect="same",
        ),
        claim("mHTTP asking both instead of one path alone", cell("both"), ALONE),
    )
    figures = (
        Figure(
            name="time",
            title="16 MB, to the time over one path alone",
            kind="normalised",
            x="chunk",
            hue="resolvers",
            where=RANGES,
            over=ALONE,
        ),
    )
    notes = (
        "After mHTTP (Kim and others), who fetched 16 MB from a content network: there up to half "
        "of the time was saved, and it did not matter whether the local resolvers or a public one "
        "were asked.",
        "Here two access networks have 100 Mbit/s and 20 ms, and each one's resolver tells of a "
        "server 10 ms behind it. The public resolver is beside a third server, 60 ms behind both, "
        "and tells of that. Plain HTTP asks the resolver of its own network. The look-up of the "
        "name is in the times.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        asked, rtt_ms = run.params["resolvers"], run.params["public_rtt_ms"]
        if run.lab.links[PUBLIC_LINK].mile.rtt_ms != rtt_ms:
            run.lab.change(PUBLIC_LINK, rtt_ms=rtt_ms)
        told = words(run.params, local=asked != "public")
        if asked in ("public", "both"):
            told += ["--public", server_address(PUBLIC_SERVER)]
        found = measures(run.params, fetch.object_of(run, size_of(run.params), *told))
        found.pop("over_serial", None)  # round trips are not those of the last miles alone
        found["completion_s"] += found["look_up_s"]
        return found
