# SPDX-License-Identifier: MIT
"""Fig. 14: pages beside a download while packets are lost, over pipes of SCTP and of TCP."""

from experiments.causes.in_all import InAll
from experiments.model import Claim, Figure
from experiments.workloads.web.busy import FIVE_SITES, TWELVE_SITES, BusyPage
from topologies.parameter import Params

NAMES = {"http1": "HTTP/1.1", "http2": "HTTP/2"}
# By protocol and pipes: the least and the most that SCTP's pipes took of TCP's time.
PUBLISHED = {
    ("http1", 2): (0.51, 0.68),
    ("http2", 2): (0.49, 0.74),
    ("http1", 8): (0.84, 0.94),
    ("http2", 8): (0.80, 0.94),
}
PLAIN: Params = {"http2_per": "page", "tls": False, "browser": "loader"}
LOSSY: Params = {**PLAIN, "preset": "wired", "loss": 0.01, "beside": "3mbps", "way": "pipes"}


def claim(protocol: str, pipes: int) -> Claim:
    low, high = PUBLISHED[protocol, pipes]
    of: Params = {**LOSSY, "protocol": protocol, "pipes": pipes}
    return Claim(
        row="sctp",
        where="Fig. 14",
        says=f"{NAMES[protocol]} over {pipes} pipes, SCTP instead of TCP "
        f"(published: {low:.2f} to {high:.2f} by page)",
        of={**of, "transport": "sctp"},
        over={**of, "transport": "tcp"},
        paper=round((low + high) / 2, 3),
        causes=(InAll("total_mbps", "page"),),
    )


class Sctp(BusyPage):
    name = "sctp"
    ways = ("pipes",)
    title = "Pipes of SCTP"
    question = "What does it help that a loss blocks only the connection that it hit?"
    grids = (
        {
            **LOSSY,
            "page": TWELVE_SITES,
            "protocol": tuple(NAMES),
            "pipes": (2, 8),
            "transport": ("tcp", "sctp"),
        },
    )
    reps = 5
    quick_grids = ({**grids[0], "page": FIVE_SITES},)
    quick_reps = 1  # five pages
    run_seconds = 12.0
    claims = tuple(claim(*which) for which in PUBLISHED)
    figures = (
        Figure(
            name="time",
            title="Page load times at 1 % loss beside 3 Mbit/s",
            kind="cdf",
            hue="transport",
            facet="protocol",
        ),
        Figure(
            name="gain",
            title="Page load time over SCTP's pipes, TCP's = 1",
            kind="cdf",
            hue="protocol",
            facet="pipes",
            where={"transport": "sctp"},
            over={"transport": "tcp"},
        ),
    )
    notes = (
        "A download of 3 Mbit/s begins two seconds before the page. 1 % of packets is lost each "
        "way.",
        "Both ends of the pipes need a kernel with SCTP. Where this one has none, the whole "
        "laboratory runs in a guest: vm/README.md.",
    )
