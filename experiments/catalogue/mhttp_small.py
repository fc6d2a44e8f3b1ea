# SPDX-License-Identifier: MIT
"""Small objects by mHTTP over two paths from two servers, beside plain HTTP over one of them."""

from experiments.model import Claim, Figure
from experiments.workloads.mhttp.experiment import (
    BY_RANGES,
    KB,
    MB,
    PLAIN,
    TWO_PATHS,
    MhttpExperiment,
    own,
    ranges,
)
from topologies.parameter import Params

PUBLISHED = "mHTTP, Fig. 8"
CHUNK = 512 * KB
UP_TO_CHUNK = {8 * KB: "8 KB", 32 * KB: "32 KB", 128 * KB: "128 KB", CHUNK: "512 KB"}
BEYOND = {1 * MB: "1 MB", 2 * MB: "2 MB"}
PATHS: Params = {**TWO_PATHS, "rtt_ms": 50.0, "second_rtt_ms": 50.0}
MOST = 1.03  # of plain HTTP's time, up to a chunk
MHTTP = ranges("T", CHUNK)


def sides(size: int) -> tuple[Params, Params]:
    return {**MHTTP, "size": size}, {**PLAIN, "size": size}


class MhttpSmall(MhttpExperiment):
    name = "mhttp-small"
    title = "Small objects over two paths"
    question = "Does mHTTP do any harm to objects that are smaller than a range, or hardly larger?"
    grids = tuple(
        {**PATHS, **how, "size": (*UP_TO_CHUNK, *BEYOND)} for how in ({"fetch": "http"}, MHTTP)
    )
    run_seconds = 4.0
    claims = (
        *(
            Claim(
                "mhttp-small",
                PUBLISHED,
                f"{told}, ranges of 512 KB: mHTTP instead of plain HTTP",
                *sides(size),
                expect="same",
            )
            for size, told in UP_TO_CHUNK.items()
        ),
        *(
            Claim(
                "mhttp-small",
                PUBLISHED,
                f"{told}, ranges of 512 KB: mHTTP instead of plain HTTP",
                *sides(size),
                causes=(BY_RANGES,),
            )
            for size, told in BEYOND.items()
        ),
        *(
            own(
                "mhttp-small",
                f"{told}, ranges of 512 KB: mHTTP instead of plain HTTP",
                *sides(size),
                than=MOST,
            )
            for size, told in UP_TO_CHUNK.items()
        ),
    )
    figures = (
        Figure(
            name="size",
            title="By size, in ranges of 512 KB",
            kind="against",
            x="size",
            hue="fetch",
            log=True,
        ),
    )
    notes = (
        "After mHTTP (Kim and others): two access networks of 100 Mbit/s and 50 ms each, and "
        "a server behind each. Up to the size of a range the first request is all there is.",
        "Times count from the connection on: the name is looked up before, of plain HTTP by the "
        "first path's resolver, of mHTTP by both.",
    )
