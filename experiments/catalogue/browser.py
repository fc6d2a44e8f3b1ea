# SPDX-License-Identifier: MIT
"""Fig. 11 once more, by a real browser."""

from typing import Any

from experiments.causes.before import Before
from experiments.model import Claim, Figure
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.pages import TEN_SITES
from topologies.parameter import Params

BEFORE_HTML = Before("html_s", "page")
FIVE_SITES = TEN_SITES[:9:2]
NAMES = {"http1": "HTTP/1.1", "http2": "HTTP/2 under TLS"}
PUBLISHED = {"http1": 0.73, "http2": 0.76}
HTTP1: Params = {"browser": "chromium", "protocol": "http1", "tls": False, "http2_per": "page"}
HTTP2: Params = {**HTTP1, "protocol": "http2", "tls": True}
BOTH = {"http1": HTTP1, "http2": HTTP2}


def runs(protocol: str, way: str, pipes: int | None = None) -> Params:
    chosen: dict[str, Any] = {**BOTH[protocol], "preset": "lte", "way": way}
    return chosen if pipes is None else {**chosen, "pipes": pipes}


class Browser(PageExperiment):
    name = "browser"
    title = "Pages in a real browser"
    question = "How much sooner does Chromium have a page over pipes?"
    grids = tuple(
        {**of_protocol, "preset": "lte", "page": TEN_SITES, **way}
        for of_protocol in BOTH.values()
        for way in ({"way": "direct"}, {"pipes": (1, 8)})
    )
    reps = 10
    quick_grids = tuple(
        {**of_protocol, "preset": "lte", "page": FIVE_SITES, **way}
        for of_protocol in BOTH.values()
        for way in ({"way": "direct"}, {"pipes": 8})
    )
    quick_reps = 2
    run_seconds = 4.0
    packages = (*PageExperiment.packages, "chromium")
    claims = tuple(
        Claim(
            row="page-load",
            where="Fig. 11",
            says=f"Chromium: {NAMES[protocol]} over 8 pipes instead of direct, lte "
            "(published: the mean)",
            of=runs(protocol, "pipes", 8),
            over=runs(protocol, "direct"),
            paper=PUBLISHED[protocol],
            causes=(BEFORE_HTML,),
        )
        for protocol in BOTH
    )
    figures = (
        Figure(
            name="gain",
            title="Page load time over 8 pipes, direct = 1",
            kind="cdf",
            hue="protocol",
            where={"way": "pipes", "pipes": 8},
            over={"way": "direct"},
        ),
        Figure(
            name="time",
            title="Page load times in Chromium",
            kind="cdf",
            hue="way",
            facet="protocol",
        ),
    )
    notes = (
        "Debian's Chromium, headless, with a fresh profile in each run; the time is Navigation "
        "Timing's, from fetchStart to loadEventStart. It speaks HTTP/2 only under TLS, so HTTP/2 "
        "is under TLS here and HTTP/1.1 is not. Every body is compared after the load.",
        "The browser's own work shares the machine's cores with the emulator and the proxies: on a "
        "busy machine it is most of the time, and of its spread. The loader's page-load is the "
        "experiment for the network's part.",
    )
