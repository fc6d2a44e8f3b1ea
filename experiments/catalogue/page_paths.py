# SPDX-License-Identifier: MIT
"""Thirty pages over Wi-Fi and LTE at once, by what comes next and over which path."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_file import NAMES, RTTS_MS, PathsFile
from experiments.model import OWN, Claim, Figure, Metric
from experiments.workloads import arrivals
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.load import PARAMETERS
from experiments.workloads.web.pages import SITE_NAMES, TEN_SITES
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

# Whose bytes come next, and over which path: a list to be added to.
POLICIES: dict[str, Params] = {
    "drr+minrtt": {"conn_policy": "drr", "path_policy": "minrtt"},
    "drr+ecf": {"conn_policy": "drr", "path_policy": "ecf"},
    "drr+dems-f": {"conn_policy": "drr", "path_policy": "dems-f"},
    "las+minrtt": {"conn_policy": "las", "path_policy": "minrtt"},
    "las+ecf": {"conn_policy": "las", "path_policy": "ecf"},
    "las+soonest": {"conn_policy": "las", "path_policy": "soonest"},
}
QUICK = ("drr+minrtt", "drr+ecf", "drr+dems-f", "las+minrtt", "las+ecf")
RTTS = RTTS_MS[:2]
PAGES: Params = {
    **{"preset": "wifi-lte", "protocol": "http1", "browser": "loader", "tls": False},
    "http2_per": "page",
}
PIPES: Params = {"way": "pipes", "pipes": 4}
MPTCP: Params = {"way": "mptcp", "pipes": 0}
OVER_MPTCP = (0.80, 0.93)
DEMS_OVER_MINRTT = 0.75


def runs(policy: str, rtt_ms: float) -> Params:
    return {**PAGES, **PIPES, **POLICIES[policy], "second_rtt_ms": rtt_ms}


def swept(pages: tuple[str, ...], policies: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    each = [PIPES | POLICIES[name] for name in policies] + [MPTCP]
    return tuple({**PAGES, "page": pages, "second_rtt_ms": RTTS, **how} for how in each)


def instead_of_mptcp(rtt_ms: float) -> Claim:
    least, most = OVER_MPTCP
    return Claim(
        row="page-paths",
        where="MPFlex, Fig. 4.5",
        says=f"LTE at {rtt_ms:g} ms: pipes, drr+minrtt, instead of MPTCP (published: {least:.2f} "
        f"to {most:.2f} by page)",
        of=runs("drr+minrtt", rtt_ms),
        over={**PAGES, **MPTCP, "second_rtt_ms": rtt_ms},
        paper=round((least + most) / 2, 3),
    )


def instead_of_minrtt(rtt_ms: float) -> Claim:
    return Claim(
        row="page-paths",
        where="DEMS, Fig. 5.19",
        says=f"LTE at {rtt_ms:g} ms: drr+dems-f instead of drr+minrtt (published: 0.57 to 0.94 by "
        "page)",
        of=runs("drr+dems-f", rtt_ms),
        over=runs("drr+minrtt", rtt_ms),
        paper=DEMS_OVER_MINRTT,
    )


def no_worse(rtt_ms: float) -> Claim:
    return Claim(
        row="page-paths",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms: las+ecf instead of drr+minrtt",
        of=runs("las+ecf", rtt_ms),
        over=runs("drr+minrtt", rtt_ms),
        than=1.05,
    )


class PagePaths(PageExperiment):
    name = "page-paths"
    ways = ("pipes", "mptcp")
    title = "Thirty pages over two paths"
    question = "How much sooner is a page there if what comes next and over which path is chosen?"
    parameters = (
        *PARAMETERS,
        *(
            replace(it, needs=(("way", "pipes"),))
            for it in PathsFile.parameters
            if it.name == "path_policy"
        ),
    )
    metrics = (
        *PageExperiment.metrics,
        Metric("far_share", "share of the bytes over LTE", "", "neither"),
    )
    paths = NAMES
    grids = swept(SITE_NAMES, tuple(POLICIES))
    reps = 10
    quick_grids = swept(TEN_SITES, QUICK)
    quick_reps = 1  # ten pages
    in_all_quick = False
    run_seconds = 6.0
    claims = tuple(
        make(rtt) for make in (instead_of_mptcp, instead_of_minrtt, no_worse) for rtt in RTTS
    )
    figures = (
        Figure(
            name="gain",
            title="Page load time, minrtt = 1",
            kind="cdf",
            hue="path_policy",
            facet="second_rtt_ms",
            where=PIPES,
            over={"path_policy": "minrtt"},
        ),
        Figure(
            name="time",
            title="Page load times",
            kind="cdf",
            hue="path_policy",
            facet="second_rtt_ms",
        ),
    )
    notes = (
        "Four pipes over each path: Wi-Fi of 7.04 Mbit/s and 50 ms, LTE of 9.185 Mbit/s. MPTCP has "
        "a subflow of each connection by each path, upstream's own with its default scheduler. The "
        "pages are synthetic, by HTTP/1.1 in the clear.",
        "MPFlex is published with its own default, minrtt, and its pages came from the Internet. "
        "Those of DEMS were replayed by a server near its proxy, for Chrome on a phone over real "
        "Wi-Fi and LTE.",
    )

    def lp_options(self, params: Params, folder: Path) -> list[str]:
        return PathsFile().lp_options(params, folder) if params["pipes"] else []

    def rp_options(self, params: Params, folder: Path) -> list[str]:
        return PathsFile().rp_options(params, folder) if params["pipes"] else []

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        received = partial(arrivals.received, run.lab)
        before = received()
        measures = super().measure(run)
        near, far = (now - was for was, now in zip(before, received(), strict=True))
        return {**measures, "far_share": far / (near + far)}
