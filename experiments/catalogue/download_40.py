# SPDX-License-Identifier: MIT
"""Fig. 9 on LTE of a rate at which the floor leaves room for what was published."""

from experiments.catalogue.download import LTE, PIPES, PUBLISHED, SIZES, Download, by_pipes, runs
from experiments.causes.otherwise import Otherwise
from experiments.model import Claim, Figure
from topologies.parameter import Params

MBPS = 40.0
WINDOWS: Params = {"extend": "auto"}
NO_WINDOWS: Params = {"extend": "never"}


def of_size(size: int) -> Claim:
    by_the_baseline = Otherwise(
        "By the baseline, where no window of a connection bounds what is under way,",
        runs(LTE, size, 8, down_mbps=MBPS, **NO_WINDOWS),
        "less",
        PUBLISHED[size] ** (1 - Claim.margin),
    )
    at = f" of {MBPS:g} Mbit/s"
    return by_pipes(LTE, size, at, (by_the_baseline,), down_mbps=MBPS, **WINDOWS)


class Download40(Download):
    """By itself: a sweep of `download` that is asked for has one rate, as its presets have."""

    name = "download-40"
    title = f"One file over one connection, LTE of {MBPS:g} Mbit/s"
    grids = (
        {"preset": LTE, "down_mbps": MBPS, "size": SIZES, "pipes": PIPES, "warm": False},
        {"preset": LTE, "down_mbps": MBPS, "size": SIZES, "pipes": 8, "warm": False, **NO_WINDOWS},
    )
    quick_grids = (
        {"preset": LTE, "down_mbps": MBPS, "size": SIZES, "pipes": (1, 8), "warm": False},
        {
            "preset": LTE,
            "down_mbps": MBPS,
            "size": SIZES[1:],
            "pipes": 8,
            "warm": False,
            **NO_WINDOWS,
        },
    )
    quick_reps = 5
    claims = tuple(of_size(size) for size in SIZES)
    figures = (
        Figure(
            name="normalised",
            title="Completion time, 1 pipe = 1",
            kind="normalised",
            hue="size",
            where={"way": "pipes", **WINDOWS},
            over={"pipes": 1},
        ),
        Figure(
            name="time",
            title="Completion time by pipes",
            kind="against",
            hue="size",
            where=WINDOWS,
            floor="floor_s",
            log=True,
        ),
    )
    notes = (
        "The published figures are LTE's of 2015, whose rate was not published. At 9.2 Mbit/s and "
        "70 ms eight pipes could take at most 49, 28 and 7.5 % off 50 KB, 300 KB and 2 MB over "
        "one, which is less than published; at 40 Mbit/s 59, 48 and 25 %.",
    )
