# SPDX-License-Identifier: MIT
"""Table 5: two pages of images by HTTP/1.1 while packets are lost."""

from typing import Any, ClassVar

from experiments.catalogue.browser import BEFORE_HTML
from experiments.model import Claim, Figure
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.load import PARAMETERS
from topologies.parameter import Params, Value

PAGES = ("medium", "large")
OWN = tuple(it for it in PARAMETERS if it.name not in ("protocol", "http2_per"))
WORDS = {1: "1 pipe", 8: "8 pipes"}
PUBLISHED = {("medium", 1): 2.1, ("medium", 8): 0.95, ("large", 1): 2.9, ("large", 8): 0.99}


def runs(page: str, loss: float, way: str, pipes: int | None = None) -> Params:
    chosen: dict[str, Any] = {"page": page, "loss": loss, "way": way, "browser": "loader"}
    return chosen if pipes is None else {**chosen, "pipes": pipes}


class LossHttp(PageExperiment):
    name = "loss-http"
    title = "Pages by HTTP/1.1 while packets are lost"
    question = "Do pipes stand loss as well as a browser's six connections?"
    parameters = OWN
    fixed: ClassVar[dict[str, Value]] = {"protocol": "http1"}
    grids = (
        {"page": PAGES, "loss": (0.01, 0.02), "way": ("direct", "http2", "mptcp")},
        {"page": PAGES, "loss": (0.01, 0.02), "pipes": (1, 2, 4, 6, 8)},
    )
    reps = 30
    quick_grids = (
        {"page": PAGES, "loss": (0.02,), "way": ("direct", "http2")},
        {"page": PAGES, "loss": (0.02,), "pipes": (1, 8)},
    )
    quick_reps = 5
    run_seconds = 5.0
    claims = tuple(
        Claim(
            row="loss-http",
            where="Table 5",
            says=f"{page} page, {WORDS[pipes]} instead of plain HTTP/1.1, 2 % lost",
            of=runs(page, 0.02, "pipes", pipes),
            over=runs(page, 0.02, "direct"),
            paper=published,
            causes=(BEFORE_HTML,),
            expect="more" if pipes == 1 else "less",
        )
        for (page, pipes), published in PUBLISHED.items()
    )
    figures = (
        Figure(
            name="normalised",
            title="Page load time by pipes, plain HTTP/1.1 = 1",
            kind="normalised",
            hue="page",
            facet="loss",
            where={"way": "pipes"},
            over={"way": "direct"},
        ),
        Figure(
            name="time",
            title="Page load time by pipes",
            kind="against",
            hue="page",
            facet="loss",
            floor="floor_s",
        ),
    )
    notes = (
        "Why eight pipes stay far above RTT + size/rate here: HTTP/1.1 asks for one object at a "
        "time on each of six connections. The large page's 217 objects wait for 37 round trips one "
        "after another, 2.0 s of 54 ms each, whoever carries them.",
        "A browser's six connections are themselves six congestion windows; one pipe is one, and "
        "so is a direct HTTP/2 connection, which stands beside as a baseline.",
    )
