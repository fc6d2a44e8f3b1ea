# SPDX-License-Identifier: MIT
"""Fig. 12: pages by HTTP/2 over a last mile that loses packets."""

from typing import Any

from experiments.causes.lossy import Lossy
from experiments.model import Claim, Figure
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.pages import SITE_NAMES, TEN_SITES
from topologies.parameter import Params

LOSSES = (0.005, 0.01, 0.015)
PUBLISHED = {0.005: 0.78, 0.01: 0.67, 0.015: 0.58}
WIRED: Params = {"preset": "wired", "protocol": "http2", "http2_per": "page", "tls": False}


def runs(loss: float, way: str, pipes: int | None = None) -> Params:
    chosen: dict[str, Any] = {**WIRED, "browser": "loader", "loss": loss, "way": way}
    return chosen if pipes is None else {**chosen, "pipes": pipes}


class Loss(PageExperiment):
    name = "loss"
    title = "Pages by HTTP/2 while packets are lost"
    question = "What does a lost packet cost a page that comes over one connection, or over pipes?"
    grids = (
        {**WIRED, "page": SITE_NAMES, "loss": (0.0, *LOSSES), "way": "direct"},
        {**WIRED, "page": SITE_NAMES, "loss": (0.0, *LOSSES), "pipes": (1, 8)},
        {**WIRED, "page": SITE_NAMES, "loss": LOSSES, "way": "mptcp"},
    )
    reps = 10
    quick_grids = (
        {**WIRED, "page": TEN_SITES, "loss": LOSSES, "way": "direct"},
        {**WIRED, "page": TEN_SITES, "loss": LOSSES, "pipes": (8,)},
        {**WIRED, "page": TEN_SITES[1::4], "loss": 0.01, "pipes": (1,)},
        {**WIRED, "page": TEN_SITES[1::4], "loss": 0.01, "way": "mptcp"},
    )
    quick_reps = 1  # ten pages meet different losses
    run_seconds = 5.5
    claims = tuple(
        Claim(
            row="loss",
            where="Fig. 12",
            says=f"HTTP/2 over 8 pipes instead of direct, {loss:.1%} lost",
            of=runs(loss, "pipes", 8),
            over=runs(loss, "direct"),
            paper=published,
            causes=(Lossy("page_bytes", "page"),),
        )
        for loss, published in PUBLISHED.items()
    )
    figures = (
        Figure(
            name="gain",
            title="Page load time over 8 pipes, direct = 1",
            kind="cdf",
            hue="loss",
            where={"way": "pipes", "pipes": 8},
            over={"way": "direct"},
        ),
        Figure(
            name="time",
            title="Page load times",
            kind="cdf",
            hue="way",
            facet="loss",
            where=WIRED,
        ),
        Figure(
            name="by-size",
            title="Page load time over 8 pipes by size of the page, direct = 1",
            kind="normalised",
            x="page_bytes",
            hue="loss",
            where={"way": "pipes", "pipes": 8},
            over={"way": "direct"},
        ),
    )
    notes = (
        "Loss is in both directions, as a share of packets. HTTP/2 has one connection for all "
        "hosts of a page, as through the paper's SPDY proxy. MPTCP is the same connection with "
        "eight subflows from end to end.",
        "A single connection shrinks its window at each loss, so large pages have most to gain. "
        "How large the paper's pages were is not told.",
    )
