# SPDX-License-Identifier: MIT
"""Thirty pages over Wi-Fi and LTE at once, by what comes next and over which path."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.catalogue.browser import BEFORE_HTML
from experiments.catalogue.paths_file import NAMES, RTTS_MS, PathsFile
from experiments.causes.goes_with import GoesWith
from experiments.causes.otherwise import Otherwise
from experiments.model import OWN, Claim, Figure, Metric
from experiments.workloads import arrivals
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.load import PARAMETERS, SIZES
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
    "srpt+minrtt": {"conn_policy": "srpt", "path_policy": "minrtt"},
    "srpt+ecf": {"conn_policy": "srpt", "path_policy": "ecf"},
}
QUICK = ("drr+minrtt", "drr+dems-f", "las+ecf", "srpt+minrtt", "srpt+ecf")
# Of the ways to know sizes those that are swept.
BY_SIZE = {"srpt+ecf": SIZES.choices, "srpt+minrtt": ("hints",)}
RTTS = RTTS_MS[:2]
PAGES: Params = {
    **{"preset": "wifi-lte", "protocol": "http1", "browser": "loader", "tls": False},
    "http2_per": "page",
}
PIPES: Params = {"way": "pipes", "pipes": 4}
MPTCP: Params = {"way": "mptcp", "pipes": 0}
OVER_MPTCP = (0.80, 0.93)
DEMS_OVER_MINRTT = 0.75
HINTS_OVER_MINRTT = 0.97
WORST_PAGE = 1.05


def runs(policy: str, rtt_ms: float, sizes: str = "none") -> Params:
    return {**PAGES, **PIPES, **POLICIES[policy], "sizes": sizes, "second_rtt_ms": rtt_ms}


def swept(pages: tuple[str, ...], policies: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    each: list[dict[str, Any]] = [
        {**PIPES, **POLICIES[name], "sizes": BY_SIZE.get(name, "none")} for name in policies
    ]
    each.append(dict(MPTCP))
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
        causes=(BEFORE_HTML,),
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
        causes=(GoesWith("far_share", "the bytes over LTE", "page"),),
    )


# What is chosen is two things: whose bytes come next, and over which path.
def order_alone(rtt_ms: float) -> Otherwise:
    return Otherwise(
        "With minrtt in place of ecf, by order alone,",
        runs("srpt+minrtt", rtt_ms, "hints"),
        *("less", HINTS_OVER_MINRTT),
    )


def known(rtt_ms: float) -> Otherwise:
    return Otherwise(
        "With hints in place of Content-Length",
        runs("srpt+ecf", rtt_ms, "hints"),
        *("less", (1 + HINTS_OVER_MINRTT) / 2),
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


def hinted(rtt_ms: float) -> Claim:
    return Claim(
        row="page-paths",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms: srpt+ecf with hints instead of drr+minrtt",
        of=runs("srpt+ecf", rtt_ms, "hints"),
        over=runs("drr+minrtt", rtt_ms),
        than=HINTS_OVER_MINRTT,
        causes=(order_alone(rtt_ms),),
    )


def no_page_worse(rtt_ms: float) -> Claim:
    return Claim(
        row="page-paths",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms: srpt+ecf with hints instead of drr+minrtt, the page that "
        "gains least",
        of=runs("srpt+ecf", rtt_ms, "hints"),
        over=runs("drr+minrtt", rtt_ms),
        statistic="largest",
        settings=len(TEN_SITES),
        than=WORST_PAGE,
    )


def read_off(rtt_ms: float) -> Claim:
    return Claim(
        row="page-paths",
        where=OWN,
        says=f"LTE at {rtt_ms:g} ms: srpt+ecf with sizes from Content-Length instead of "
        "drr+minrtt: half of what hints are to gain",
        of=runs("srpt+ecf", rtt_ms, "http"),
        over=runs("drr+minrtt", rtt_ms),
        than=(1 + HINTS_OVER_MINRTT) / 2,
        causes=(known(rtt_ms),),
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
        SIZES,
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
        make(rtt)
        for make in (
            *(instead_of_mptcp, instead_of_minrtt, no_worse),
            *(hinted, no_page_worse, read_off),
        )
        for rtt in RTTS
    )
    figures = (
        Figure(
            name="gain",
            title="Page load time with drr, minrtt = 1",
            kind="cdf",
            hue="path_policy",
            facet="second_rtt_ms",
            where=PIPES | {"conn_policy": "drr"},
            over={"path_policy": "minrtt"},
        ),
        Figure(
            name="sizes",
            title="Page load times by what rp knows of sizes, srpt+ecf",
            kind="cdf",
            hue="sizes",
            facet="second_rtt_ms",
            where=PIPES | POLICIES["srpt+ecf"],
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
        "Sizes: with hints the loader tells lp of each answer, as it asks for it, how large it is "
        "and how urgent (RFC 9218's urgencies, as Chromium sends them). With http rp reads "
        "Content-Length in the heads of answers, and knows of no urgency. What rp and lp do by "
        "themselves is las+soonest.",
        "Content-Length is to give at least half of what hints gain where bodies are in the clear, "
        "as they are here. A claim compares two configurations, so its bound is half of what hints "
        f"are asked to gain ({(1 + HINTS_OVER_MINRTT) / 2:g} of drr+minrtt's time), not of what "
        "they gained. By what was measured it holds where 1 less the ratio of the claim with "
        "Content-Length is at least half of 1 less the ratio of the claim with hints, at the same "
        "round trip of LTE; their intervals stand beside them.",
    )

    def lp_options(self, params: Params, folder: Path) -> list[str]:
        return PathsFile().lp_options(params, folder) if params["pipes"] else []

    def rp_options(self, params: Params, folder: Path) -> list[str]:
        if not params["pipes"]:
            return []
        more = ("--sizes", "http") if params["sizes"] == "http" else ()
        return [*PathsFile().rp_options(params, folder), *more]

    def controls(self, params: Params) -> bool:
        return params["sizes"] == "hints"

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        received = partial(arrivals.received, run.lab)
        before = received()
        measures = super().measure(run)
        near, far = (now - was for was, now in zip(before, received(), strict=True))
        return {**measures, "far_share": far / (near + far)}
