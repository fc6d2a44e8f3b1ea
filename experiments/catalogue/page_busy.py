# SPDX-License-Identifier: MIT
"""Fig. 13: pages beside a bulk download of the same user, with early binding and with late."""

from typing import Any

from experiments.catalogue import early
from experiments.catalogue.sender_blocking import TABLE, Row
from experiments.causes.fair import Fair
from experiments.model import Claim, Figure
from experiments.workloads.web.busy import FIVE_SITES, TWELVE_SITES, BusyPage
from topologies.parameter import Params

LEAST_GAIN, MOST_GAIN = 0.75, 0.90
SPDY: Params = {"protocol": "http2", "http2_per": "page", "tls": False, "browser": "loader"}
PLACES: dict[str, Params] = {
    "lte": {"preset": "lte", "bottleneck": "network"},
    "wired": {"preset": "wired", "bottleneck": "sender"},
}
EIGHT = tuple(row for row in TABLE if row.pipes == 8)
DEFAULT, LARGEST = EIGHT[0], EIGHT[-1]
LATE = DEFAULT.late()


def grid(place: str, *, pages: tuple[str, ...], **chosen: Any) -> dict[str, Any]:
    return {**SPDY, **PLACES[place], "page": pages, **chosen}


def grids_of(pages: tuple[str, ...], rows: tuple[Row, ...]) -> tuple[dict[str, Any], ...]:
    found = []
    for place in PLACES:
        each = [LATE, *(row.early() for row in rows), {"way": "direct"}]
        found += [grid(place, pages=pages, **params) for params in each]
        found.append(grid(place, pages=pages, **LATE, beside="none"))
    return tuple(found)


def claims_of(place: str, row: Row) -> tuple[Claim, ...]:
    of = {**SPDY, **PLACES[place], "beside": "full", **LATE}
    over = {**of, **row.early()}
    says = f"{place}, {row.says()}: late binding instead of early"
    return (
        Claim(
            row="page-busy",
            where="Fig. 13",
            says=f"{says} (published: 0.10 to 0.25 by page)",
            of=of,
            over=over,
            paper=1 - (LEAST_GAIN + MOST_GAIN) / 2,
            causes=(Fair(others={it.says(): {**of, **it.early()} for it in EIGHT}),),
        ),
        Claim(
            row="page-busy",
            where="§6.4",
            says=f"{says}, goodput of page and download together",
            of=of,
            over=over,
            metric="total_mbps",
            paper=1.0,
            expect="same",
        ),
    )


class PageBusy(BusyPage):
    name = "page-busy"
    title = "Pages beside a bulk download"
    question = "How long does a page take while its user downloads something large?"
    grids = grids_of(TWELVE_SITES, EIGHT)
    reps = 5
    quick_grids = (
        *(
            grid(place, pages=FIVE_SITES, **params)
            for place in PLACES
            for params in (LATE, DEFAULT.early())
        ),
        grid("wired", pages=FIVE_SITES, **LARGEST.early()),
        grid("wired", pages=FIVE_SITES, way="direct"),
    )
    quick_reps = 1  # five pages
    run_seconds = 12.0
    claims = tuple(
        claim for place in PLACES for row in (DEFAULT, LARGEST) for claim in claims_of(place, row)
    )
    figures = (
        Figure(
            name="time",
            title="Page load times beside a bulk download",
            kind="cdf",
            hue="binding",
            facet="preset",
            where={"beside": "full", "app_buffer": None, "pipe_sndbuf": None},
        ),
        Figure(
            name="by-size",
            title="Late binding by size of the page, early = 1",
            kind="normalised",
            x="page_bytes",
            facet="preset",
            where={**LATE, "beside": "full"},
            over=DEFAULT.early(),
        ),
    )
    notes = (
        "HTTP/2 with one connection for all hosts of a page stands for SPDY. The download begins "
        "two seconds before the page. On LTE the network queues half a second, as it does in "
        "reality; wired, the rate limit is in the sender's own queue, as published.",
        "Connections share the rate fairly, so beside one download a page's one connection has "
        "half of it: a page that could fill the link by itself takes twice as long at best.",
        "The paper does not tell the buffers of Fig. 13: the kernel's own stand beside the largest "
        f"of Table 6 ({LARGEST.says()}).",
        early.NOTE,
    )
