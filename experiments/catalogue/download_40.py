# SPDX-License-Identifier: MIT
"""Fig. 9 on LTE of a rate at which the floor leaves room for what was published."""

from experiments.catalogue.download import LTE, PIPES, SIZES, Download, by_pipes
from experiments.model import Figure

MBPS = 40.0


class Download40(Download):
    """By itself: a sweep of `download` that is asked for has one rate, as its presets have."""

    name = "download-40"
    title = f"One file over one connection, LTE of {MBPS:g} Mbit/s"
    grids = ({"preset": LTE, "down_mbps": MBPS, "size": SIZES, "pipes": PIPES, "warm": False},)
    quick_grids = (
        {"preset": LTE, "down_mbps": MBPS, "size": SIZES, "pipes": (1, 8), "warm": False},
    )
    claims = tuple(by_pipes(LTE, size, f" of {MBPS:g} Mbit/s", down_mbps=MBPS) for size in SIZES)
    figures = (
        Figure(
            name="normalised",
            title="Completion time, 1 pipe = 1",
            kind="normalised",
            hue="size",
            where={"way": "pipes"},
            over={"pipes": 1},
        ),
        Figure(
            name="time",
            title="Completion time by pipes",
            kind="against",
            hue="size",
            floor="floor_s",
            log=True,
        ),
    )
    notes = (
        "The published figures are LTE's of 2015, whose rate was not published. At 9.2 Mbit/s and "
        "70 ms eight pipes could take at most 49, 28 and 7.5 % off 50 KB, 300 KB and 2 MB over "
        "one, which is less than published; at 40 Mbit/s 59, 48 and 25 %.",
    )
