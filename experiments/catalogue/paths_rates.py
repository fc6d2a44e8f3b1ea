# SPDX-License-Identifier: MIT
"""One file over two paths of each rate: what DEMS gains where."""

from typing import ClassVar

from experiments.catalogue.paths_file import BASE, HELD_WHOLE, KIB, MIB, PathsFile, told
from experiments.catalogue.paths_split import REST_S, SETTINGS
from experiments.causes.optimum import Optimum
from experiments.model import OWN, Claim, Figure, Metric
from experiments.workloads import kernel
from topologies.parameter import Params

ROW = "paths-rates"
RATES_MBPS = (2.5, 7.5, 12.5, 17.5, 22.5, 27.5)
QUICK_RATES_MBPS = (2.5, 12.5, 27.5)
CORNERS = tuple((wifi, lte) for wifi in (2.5, 27.5) for lte in (2.5, 27.5))
# Of the time of minrtt, in the cell where that is least.
PUBLISHED = {256 * KIB: 0.26, MIB: 0.43, 4 * MIB: 0.79}
POLICIES = ("minrtt", "dems-f")
WARM_BYTES = 2 * MIB
GROWN: Params = {**BASE, "warm": True, "warm_size": WARM_BYTES, "idle_s": REST_S}


def runs(policy: str, size: int, **more: float) -> Params:
    return {**BASE, "warm": True, "path_policy": policy, "size": size, **more}


def gains_most(size: int) -> Claim:
    return Claim(
        row=ROW,
        where="DEMS, Fig. 5.13",
        says=f"{told(size)}, 36 pairs of rates, dems-f instead of minrtt, where that gains most",
        of=runs("dems-f", size),
        over=runs("minrtt", size),
        statistic="least",
        settings=len(RATES_MBPS) ** 2,
        paper=PUBLISHED[size],
        causes=(Optimum("furthest"),),
    )


def loses_nowhere(size: int) -> Claim:
    return Claim(
        row=ROW,
        where=OWN,
        says=f"{told(size)}, 36 pairs of rates, dems-f instead of minrtt, where that gains least",
        of=runs("dems-f", size),
        over=runs("minrtt", size),
        statistic="largest",
        settings=len(RATES_MBPS) ** 2,
        than=1.1,
    )


def no_worse(size: int, wifi_mbps: float, lte_mbps: float) -> Claim:
    rates: Params = {"down_mbps": wifi_mbps, "second_down_mbps": lte_mbps}
    return Claim(
        row=ROW,
        where=OWN,
        says=f"{told(size)}, Wi-Fi of {wifi_mbps:g} and LTE of {lte_mbps:g} Mbit/s: dems-f instead "
        "of minrtt",
        of={**runs("dems-f", size), **rates},
        over={**runs("minrtt", size), **rates},
        than=1.1,
    )


def grid(rates_mbps: tuple[float, ...], sizes: tuple[int, ...]) -> dict[str, object]:
    return {
        **GROWN,
        "path_policy": POLICIES,
        "size": sizes,
        "down_mbps": rates_mbps,
        "second_down_mbps": rates_mbps,
    }


class PathsRates(PathsFile):
    name = "paths-rates"
    title = "One file over two paths, by the rate of either"
    question = "At which rates of two paths is a file there sooner by DEMS than by minrtt?"
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric(
            "over_optimum",
            "completion time over the least possible",
            "",
            matters=0.05,
            is_ratio=True,
        ),
        Metric("far_share", "share of the bytes over LTE", "", "neither"),
        Metric("reinjected_share", "share of the file that went over both paths", ""),
        Metric("ends_apart_s", "between the ends of the paths", "s", matters=0.05),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    settings: ClassVar[kernel.Settings] = SETTINGS
    grids = (grid(RATES_MBPS, tuple(PUBLISHED)),)  # type: ignore[assignment]
    reps = 10
    quick_grids = (grid(QUICK_RATES_MBPS, (256 * KIB,)),)  # type: ignore[assignment]
    quick_reps = 5
    run_seconds = 6.0
    claims = (
        *(make(size) for make in (gains_most, loses_nowhere) for size in PUBLISHED),
        *(no_worse(size, *rates) for size in PUBLISHED for rates in CORNERS),
    )
    figures = (
        Figure(
            name="gain",
            title="dems-f instead of minrtt; Wi-Fi is the first, LTE the second",
            kind="heat",
            x="down_mbps",
            hue="second_down_mbps",
            where={"path_policy": "dems-f"},
            over={"path_policy": "minrtt"},
        ),
        Figure(
            name="over-optimum",
            title="Over the least possible; Wi-Fi is the first, LTE the second",
            kind="heat",
            y="over_optimum",
            x="down_mbps",
            hue="second_down_mbps",
            facet="path_policy",
        ),
    )
    notes = (
        "Four pipes over each path: Wi-Fi with a round trip of 50 ms and a queue of 50 ms, LTE "
        "with 70 and 500 ms, both as published. Grown windows carried 2 MiB just before, by the "
        "same policy, and then rest for 0.3 s (net.ipv4.tcp_slow_start_after_idle is 0); whether "
        "the published ones were grown was not told.",
        "Published is how much sooner the file was there in the best of the 36 cells; the cells "
        "themselves are a picture, and none of them is claimed.",
        "The least possible is computed: both paths at their rates with grown windows, and what "
        "the request and rp's connection to the server take before. " + HELD_WHOLE,
    )
