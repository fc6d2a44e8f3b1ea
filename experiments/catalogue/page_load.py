# SPDX-License-Identifier: MIT
"""Fig. 11: thirty pages, by HTTP/1.1 and HTTP/2, with pipes and without."""

from typing import Any

from experiments.model import Claim, Figure, Params
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.pages import SITE_NAMES, TEN_SITES

PROTOCOLS = ("http1", "http2")
NAMES = {"http1": "HTTP/1.1", "http2": "HTTP/2"}
PUBLISHED = {"http1": 0.73, "http2": 0.76}
LTE: Params = {"preset": "lte", "browser": "loader", "http2_per": "page", "tls": False}


def runs(protocol: str, way: str, pipes: int | None = None) -> Params:
    chosen: dict[str, Any] = {**LTE, "protocol": protocol, "way": way}
    return chosen if pipes is None else {**chosen, "pipes": pipes}


class PageLoad(PageExperiment):
    name = "page-load"
    title = "Thirty pages"
    question = "How much sooner are pages there over pipes, by HTTP/1.1 and by HTTP/2?"
    grids = (
        {**LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "way": "direct"},
        {**LTE, "page": SITE_NAMES, "protocol": PROTOCOLS, "pipes": (1, 8)},
        {**LTE, "page": SITE_NAMES, "protocol": "http2", "http2_per": "host", "way": "direct"},
        {**LTE, "page": SITE_NAMES, "protocol": "http2", "http2_per": "host", "pipes": 8},
    )
    reps = 10
    quick_grids = (
        {**LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "way": "direct"},
        {**LTE, "page": TEN_SITES, "protocol": PROTOCOLS, "pipes": (8,)},
        {**LTE, "page": TEN_SITES[1::4], "protocol": PROTOCOLS, "pipes": (1,)},
    )
    quick_reps = 2
    run_seconds = 4.5
    claims = tuple(
        Claim(
            row="page-load",
            where="Fig. 11",
            says=f"{NAMES[protocol]} over 8 pipes instead of direct, lte (published: the mean)",
            of=runs(protocol, "pipes", 8),
            over=runs(protocol, "direct"),
            paper=PUBLISHED[protocol],
        )
        for protocol in PROTOCOLS
    )
    figures = (
        Figure(
            name="cdf",
            title="Page load times",
            kind="cdf",
            x="completion_s",
            hue="way",
            facet="protocol",
            where=LTE,
        ),
    )
