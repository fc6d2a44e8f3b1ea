# SPDX-License-Identifier: MIT
"""Large objects by mHTTP over two paths from two servers, beside plain HTTP over each of them."""

from typing import Any

from experiments import parameters
from experiments.model import Claim, Figure
from experiments.workloads.mhttp import begun, serial
from experiments.workloads.mhttp.experiment import (
    BY_RANGES,
    CHUNK,
    KB,
    MB,
    PARAMETERS,
    PLAIN,
    RANGES,
    TWO_PATHS,
    MhttpExperiment,
    own,
    paths,
    ranges,
)
from topologies.parameter import Params

ROW = "mhttp-large"
PUBLISHED = "mHTTP, Fig. 9"
SIZES = {4 * MB: "4 MB", 16 * MB: "16 MB", 64 * MB: "64 MB"}
LARGER = {size: told for size, told in SIZES.items() if size > 4 * MB}
CHUNKS = {256 * KB: "256 KB", 512 * KB: "512 KB", CHUNK: "1024 KB"}
PATHS: Params = {**TWO_PATHS, "rtt_ms": 10.0, "second_rtt_ms": 50.0}
OVER_SERIAL = 1.10
OF_BOTH = 0.9


def cell(size: int, chunk: int = CHUNK, scheduler: str = "T") -> Params:
    return {**ranges(scheduler, chunk), "size": size}


def claim(says: str, of: Params, over: Params) -> Claim:
    return Claim(ROW, PUBLISHED, says, of, over, causes=(BY_RANGES,))


def served() -> list[serial.Served]:
    """By both paths."""
    return paths(parameters.complete(PARAMETERS, PATHS))


def at_least(size: int) -> str:
    """How much of the bound slow start takes by itself, in words."""
    both = served()
    serial_s, begun_s = (it(both, CHUNK, size) for it in (serial.seconds, begun.seconds))
    least = begun_s / serial_s
    text = (
        f"The time of serial requests ({serial_s:.3g} s) has no slow start. With the windows of "
        f"new connections the same requests take {begun_s:.3g} s, {least:.3f} of it"
    )
    if least > OVER_SERIAL:
        return f"{text}: below that, and so below {OVER_SERIAL:g}, no new connections can be."
    return f"{text}, which leaves {OVER_SERIAL - least:.3f} for all else."


def which_sum() -> str:
    """What `ahead` is compared with, and what it could be compared with."""
    mbps = sum(it.rate for it in served()) * 8 / 1e6
    return (
        f"What both paths carry is the sum of their rates less the headers, {mbps:.4g} Mbit/s from "
        "the first moment on, although new connections have round trips and slow start before "
        "they carry as much. Beside the goodput of plain GETs of the same size over each path "
        "alone in the same runs, which have them too, the share would be the goodput with ahead, "
        "over the sum of those with fetch http, path 1 and fetch http, path 2."
    )


class MhttpLarge(MhttpExperiment):
    name = "mhttp-large"
    title = "Large objects over two paths"
    question = "How much sooner is an object there over both paths than over the better one?"
    grids: tuple[dict[str, Any], ...] = (
        {**PATHS, "size": tuple(SIZES), "fetch": "http", "path": (1, 2)},
        {**PATHS, "size": tuple(SIZES), **RANGES, "scheduler": "T", "chunk": tuple(CHUNKS)},
        {**PATHS, "size": tuple(SIZES), **ranges("ahead")},
    )
    run_seconds = 7.0
    claims = (
        *(
            claim(
                f"{told}, ranges of 1024 KB: mHTTP instead of the better path alone",
                cell(size),
                {**PLAIN, "size": size},
            )
            for size, told in SIZES.items()
        ),
        *(
            claim(
                f"{told}: ranges of 1024 KB instead of {CHUNKS[chunk]}",
                cell(size),
                cell(size, chunk),
            )
            for size, told in SIZES.items()
            for chunk in CHUNKS
            if chunk != CHUNK
        ),
        *(
            own(
                ROW,
                f"{told}, ranges of 1024 KB: time to that of serial requests",
                cell(size),
                metric="over_serial",
                than=OVER_SERIAL,
                reckoned=at_least(size),
            )
            for size, told in LARGER.items()
        ),
        own(
            ROW,
            "64 MB, ranges of 1024 KB, ahead: goodput to what both paths carry",
            cell(64 * MB, scheduler="ahead"),
            metric="of_paths",
            expect="more",
            than=OF_BOTH,
            reckoned=which_sum(),
        ),
    )
    figures = (
        Figure(
            name="time",
            title="By size of the ranges, to the better path alone",
            kind="normalised",
            x="chunk",
            hue="scheduler",
            facet="size",
            where=RANGES,
            over=PLAIN,
        ),
        Figure(
            name="goodput",
            title="Goodput by size of the ranges",
            kind="against",
            y="goodput_mbps",
            x="chunk",
            hue="scheduler",
            facet="size",
            where=RANGES,
        ),
    )
    notes = (
        "After mHTTP (Kim and others): two access networks of 100 Mbit/s, 10 and 50 ms away, "
        "and a server behind each. The scheduler is T, the published one; `ahead` is ours and asks "
        "for a range a round trip before the last one ends.",
        "Time of serial requests: each path has one range at a time, which takes a round trip and "
        "its bytes at the path's rate, without slow start; the second path is connected when the "
        "first range is whole. What both paths carry: their rates less the headers.",
    )
