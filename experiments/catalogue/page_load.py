# SPDX-License-Identifier: MIT
"""Fig. 11: thirty pages, by HTTP/1.1 and HTTP/2, with pipes and without."""

from typing import Any

from experiments.catalogue.browser import BEFORE_HTML
from experiments.model import Claim, Figure
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.pages import SITE_NAMES, TEN_SITES
from topologies.parameter import Params

PROTOCOLS = ("http1", "http2")
NAMES = {"http1": "HTTP/1.1", "http2": "HTTP/2"}
PUBLISHED = {"http1": 0.73, "http2": 0.76}
FASTER = 30.0  # Mbit/s
PLAIN: Params = {"browser": "loader", "http2_per": "page", "tls": False}
LTE: Params = {**PLAIN, "preset": "lte", "down_mbps": None}
FASTER_LTE: Params = {**LTE, "down_mbps": FASTER}
EIGHT: Params = {**PLAIN, "way": "pipes", "pipes": 8}


def over_pipes(protocol: str, lte: Params, at: str) -> Claim:
    of: dict[str, Any] = {**lte, "protocol": protocol}
    return Claim(
        row="page-load",
        where="Fig. 11",
        says=f"{NAMES[protocol]} over 8 pipes instead of direct, {at} (published: the mean)",
        of={**of, "way": "pipes", "pipes": 8},
        over={**of, "way": "direct"},
        paper=PUBLISHED[protocol],
        causes=(BEFORE_HTML,),
    )


class PageLoad(PageExperiment):
    name = "page-load"
    title = "Thirty pages"
    question = "How much sooner are pages there over pipes, by HTTP/1.1 and by HTTP/2?"
    grids = (
        {**LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "way": "direct"},
        {**LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "pipes": (1, 8)},
        {**FASTER_LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "way": "direct"},
        {**FASTER_LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "pipes": 8},
        {**LTE, "page": SITE_NAMES, "protocol": "http2", "http2_per": "host", "way": "direct"},
        {**LTE, "page": SITE_NAMES, "protocol": "http2", "http2_per": "host", "pipes": 8},
    )
    reps = 10
    quick_grids = (
        {**LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "way": "direct"},
        {**LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "pipes": 8},
        {**LTE, "page": TEN_SITES[::2], "protocol": PROTOCOLS, "pipes": 1},
        {**FASTER_LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "way": "direct"},
        {**FASTER_LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "pipes": 8},
    )
    quick_reps = 1  # nothing is lost by chance: a page takes the same time again
    run_seconds = 4.0
    claims = (
        *(over_pipes(protocol, LTE, "lte") for protocol in PROTOCOLS),
        *(over_pipes(protocol, FASTER_LTE, "lte of 30 Mbit/s") for protocol in PROTOCOLS),
    )
    figures = (
        Figure(
            name="gain",
            title="Page load time over 8 pipes, direct = 1",
            kind="cdf",
            hue="protocol",
            facet="down_mbps",
            where=EIGHT,
            over={"way": "direct"},
        ),
        Figure(
            name="by-size",
            title="Page load time over 8 pipes by size of the page, direct = 1",
            kind="normalised",
            x="page_bytes",
            hue="protocol",
            facet="down_mbps",
            where=EIGHT,
            over={"way": "direct"},
        ),
        Figure(
            name="time",
            title="Page load times",
            kind="cdf",
            hue="way",
            facet="protocol",
            where=LTE,
        ),
    )
    notes = (
        "The pages are synthetic, drawn after figures of 2024, none a recording. HTTP/2 has one "
        "connection for all hosts of a page, as through the paper's SPDY proxy, and both protocols "
        "are in the clear, so that nothing but themselves differs.",
        "What pipes can save is what a page takes beyond RTT + size/rate. Directly, at the "
        "preset's 9.2 Mbit/s, the median page takes 1.2 times that floor: no proxy could save "
        "more than a sixth. At 30 Mbit/s the median page takes 1.7 times the floor directly. The "
        "paper tells neither its pages' sizes nor its network's rate. Pages with many connections "
        "are the large ones here, which are nearest to the floor.",
    )
