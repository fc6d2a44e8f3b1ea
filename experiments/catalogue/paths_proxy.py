# SPDX-License-Identifier: MIT
"""Files and short flows over two paths to a proxy near or far, and MPTCP to a server near."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_flows import (
    COUNT,
    KB,
    MB,
    PathsFlows,
    by_mptcp,
    load,
    over_pipes,
    spoken,
)
from experiments.causes.otherwise import Otherwise
from experiments.model import Claim, Figure, Grid, Metric, as_grid
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

# Round trips to the proxy over Wi-Fi and over LTE.
PLACES: dict[str, Params] = {
    name: {"rtt_ms": wifi, "second_rtt_ms": lte}
    for name, wifi, lte in (
        ("A", 27.0, 49.0),
        ("B", 44.0, 66.0),
        ("C", 81.0, 100.0),
        ("D", 131.0, 148.0),
    )
}
SMALL = (load(50 * KB), load(50 * KB, COUNT, 5))
LARGE = load(8 * MB)
SIMILAR = 0.1
FRESH = (
    "The windows of these pipes are fresh, as nothing was sent before, so the file takes a second "
    "round trip. Computed with true rates 50 KB by the best split over two fresh windows to C take "
    "0.195 s, 1.37 of what MPTCP to A took, and over grown ones 0.120 s, 0.84 (oracle/optimum.py)."
)


def at(place: str, its: Params) -> Params:
    return {**over_pipes(), **PLACES[place], **its}


def direct(its: Params) -> Params:
    """MPTCP to the server, which is as near as A."""
    return {**by_mptcp("wifi"), **PLACES["A"], **its}


def claim(says: str, of: Params, over: Params, its: Params, **more: Any) -> Claim:
    words = spoken(its["size"], its["count"], its["parallel"])  # type: ignore[arg-type]
    return Claim("paths-proxy", "MPFlex, Fig. 4.8", f"{words}: {says}", of, over, **more)


def nearer(its: Params) -> Otherwise:
    params = at("B", its)
    says = f"With a proxy that is {params['rtt_ms']:g} instead of {PLACES['C']['rtt_ms']:g} ms away"
    return Otherwise(says, params, "less", 1 + SIMILAR)


def claims_of_small(its: Params) -> tuple[Claim, ...]:
    return (
        *(
            claim(
                f"pipes to {place} instead of MPTCP to A (published: better or similar)",
                at(place, its),
                direct(its),
                its,
                than=1 + SIMILAR,
                causes=(nearer(its),) if place == "C" else (),
                note=FRESH if place == "C" and its["count"] == 1 else "",
            )
            for place in ("B", "C")
        ),
        claim(
            "pipes to D instead of MPTCP to A (published: low performance)",
            at("D", its),
            direct(its),
            its,
            expect="more",
        ),
    )


def claims_of_large() -> tuple[Claim, ...]:
    return (
        *(
            claim(
                f"pipes to {place} instead of to A (published: very similar)",
                at(place, LARGE),
                at("A", LARGE),
                LARGE,
                expect="same",
                within=SIMILAR,
            )
            for place in ("B", "C")
        ),
        claim(
            "pipes to A instead of MPTCP to A (published: little benefit)",
            at("A", LARGE),
            direct(LARGE),
            LARGE,
            expect="same",
            within=SIMILAR,
        ),
    )


def grids() -> tuple[Grid, ...]:
    return tuple(
        as_grid(params)
        for its in (*SMALL, LARGE)
        for params in (*(at(place, its) for place in PLACES), direct(its))
    )


class PathsProxy(PathsFlows):
    name = "paths-proxy"
    title = "Files and short flows by where the proxy is"
    question = "How far away may a proxy be until two paths to it are worse than none?"
    metrics = (
        *PathsFlows.metrics,
        Metric("near_ms", "round trip by Wi-Fi", "ms", "neither"),
    )
    grids = grids()
    quick_grids = grids
    run_seconds = 7.0
    claims = (*(it for its in SMALL for it in claims_of_small(its)), *claims_of_large())
    figures = tuple(
        Figure(
            name=name,
            title=title,
            kind="against",
            x="near_ms",  # so that one axis stands for both round trips
            hue="primary",
            where=its,
        )
        for name, title, its in (
            ("small", "One file of 50 KB", SMALL[0]),
            ("flows", f"{COUNT} flows of 50 KB, 5 at a time", SMALL[1]),
            ("large", "One file of 8 MB", LARGE),
        )
    )
    notes = (
        "Four places of the proxy: 27, 44, 81 and 131 ms away by Wi-Fi of 7.04 Mbit/s, and 49, 66, "
        "100 and 148 ms by LTE of 9.185 Mbit/s; the server is 4 ms behind it. Without a proxy the "
        "client has MPTCP to a server as near as the nearest place, and 4 ms. What was published "
        "are bars, and what the text says of them: their sizes are ours.",
        *PathsFlows.notes,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return {**super().measure(run), "near_ms": run.params["rtt_ms"]}
