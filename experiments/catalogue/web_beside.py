# SPDX-License-Identifier: MIT
"""A page's worth of objects beside a bulk download, on last miles as they are."""

from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import rivals, webs
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

BASE: Params = {
    "preset": "wired",
    "mbps": 10.0,
    "rtt_ms": 60.0,
    "queue_ms": 60.0,
    "wan_rtt_ms": 0.0,
    "link": "auto",
    "bottleneck": "network",
}
LINKS: dict[str, Params] = {
    "clean": {},
    "1 % loss": {"loss": 0.01},
    "jitter of 10 ms": {"jitter_ms": 10.0},
    "shared with a plain connection": {"rivals": 1},
}
PLAIN: Params = {"loss": 0.0, "jitter_ms": 0.0, "rivals": 0}
CCS = ("cubic", "bbr")
PIPES = (4, 8, 16)
LATE: Params = {"binding": "late", "pipe_policy": "soonest"}
EARLY: Params = {"binding": "early", "pipe_policy": "least"}
# Seconds of the page alone, Mbit/s of the bulk, seconds of the page beside it: 1 % loss, 8 pipes.
WANTED = {"cubic": (1.05, 9.0, 1.05), "bbr": (1.05, 9.0, 1.10)}


def case(link: str, cc: str, pipes: int) -> Params:
    """All of one congestion control: pipes, rivals, and the plain connection compared with."""
    return {**BASE, **PLAIN, **LINKS[link], "cc": cc, "rival_cc": cc, "pipes": pipes}


def grids_of(
    links: tuple[str, ...], ccs: tuple[str, ...], pipes: tuple[int, ...]
) -> tuple[Grid, ...]:
    """Each link late and early."""
    return tuple(
        as_grid(how, case(link, cc, n))
        for link in links
        for cc in ccs
        for n in pipes
        for how in (LATE, EARLY)
    )


def claims_of(link: str, cc: str, pipes: int) -> tuple[Claim, ...]:
    of: Params = {**case(link, cc, pipes), **LATE}
    early: Params = {**case(link, cc, pipes), **EARLY}
    shared = bool(of["rivals"])

    def claim(says: str, metric: str, **more: Any) -> Claim:
        text = f"{link}, {cc}, {pipes} pipes: {says}"
        return Claim("web-beside", "not published", text, of, metric=metric, **more)

    over, beside = (
        ("web_over_plain", "over one plain connection") if shared else ("web_ratio", "alone")
    )
    found = [
        claim(f"the page beside bulk, to the page {beside}", over, unit="times", than=1.1),
        claim(
            "goodput of the bulk, late binding instead of early",
            "bulk_mbps",
            over=early,
            expect="more",
            than=0.93,
        ),
    ]
    if not shared:
        found.append(
            claim("time in which the pipes give way", "yielding", unit="of the time", than=0.02)
        )
    if link == "1 % loss" and pipes == 8:
        alone_s, bulk_mbps, beside_s = WANTED[cc]
        found += [
            claim("the page alone", "web_alone_s", unit="s", than=alone_s),
            claim("the bulk", "bulk_mbps", unit="Mbit/s", expect="more", than=bulk_mbps),
            claim("the page beside bulk", "web_beside_s", unit="s", than=beside_s),
        ]
    return tuple(found)


class WebBeside(Experiment):
    name = "web-beside"
    ways = ("pipes",)
    title = "A page beside a bulk download, link by link"
    question = (
        "Does a page take longer beside a bulk download where the last mile loses packets, delays "
        "them unevenly or is shared?"
    )
    parameters = (
        *rivals.PARAMETERS,
        Parameter("rounds", 3, "whole", "pages alone, and pages beside the bulk", low=1, high=20),
        Parameter("bulk_s", 4.0, "number", "for which the bulk alone is measured", low=0.5),
    )
    metrics = (
        Metric("web_beside_s", "time of a page beside bulk", "s", matters=0.05),
        Metric("web_alone_s", "time of a page alone", "s"),
        Metric("web_ratio", "time of a page beside bulk, over alone", "", matters=0.05),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
        Metric("web_plain_s", "time of a page over one plain connection", "s", "neither"),
        Metric("web_over_plain", "time of a page beside bulk, over one plain connection's", ""),
        Metric("rivals_mbps", "goodput of the rivals", "Mbit/s", "neither"),
        Metric("yielding", "share of the time in which the pipes give way", ""),
    )
    shown = ("web_alone_s", "bulk_mbps", "web_plain_s", "rivals_mbps", "yielding")
    grids = grids_of(tuple(LINKS), CCS, PIPES)
    reps = 10
    quick_grids = grids_of(tuple(LINKS), ("cubic",), (8,))
    quick_reps = 5
    run_seconds = 16.0
    claims = tuple(
        claim
        for link in LINKS
        for cc in CCS
        for pipes in PIPES
        for claim in claims_of(link, cc, pipes)
    )
    figures = (
        Figure(
            name="by-link",
            title="A page beside a bulk download",
            kind="against",
            y="web_ratio",
            hue="cc",
            where={"binding": "late"},
        ),
    )
    notes = (
        "A page is 40 objects of 20 KB, six at a time, each on a connection of its own. Each run "
        "fetches pages alone, then starts the download, measures its goodput, and fetches pages "
        "beside it. One page comes before those that are counted, so that windows have grown.",
        "10 Mbit/s, 60 ms in all, a queue of one bandwidth-delay product. Rivals are plain "
        "connections of the same client, which began three seconds before. One plain connection "
        "fetches the same page with six requests under way at a time, while the pipes are idle.",
        "The bounds are the laboratory's own.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        late = run.params["binding"] == "late"  # early binding's page is slow: once is enough
        rounds = int(run.params["rounds"]) if late else 1  # type: ignore[arg-type]
        return webs.alone_then_beside(run, rounds, float(run.params["bulk_s"]))  # type: ignore[arg-type]
