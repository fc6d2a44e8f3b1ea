# SPDX-License-Identifier: MIT
"""Table 1: a 4 KB object alone and beside a bulk download, at three rates."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue import early
from experiments.causes.front import Front
from experiments.causes.printed import Printed, RoundTrip
from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import objects
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

RATES = (5.0, 10.0, 20.0)
# Published seconds beside the bulk by rate: HTTPS (its own connection), SPDY (one shared).
PUBLISHED = {5.0: (0.22, 17.02), 10.0: (0.14, 8.40), 20.0: (0.09, 4.00)}
ALONE_S = 0.05
PRINTED_S = 0.01  # to which Tables 1, 2, 6 and 7 tell times
OBJECT_BITS = 4096 * 8
SHARED: Params = {"way": "pipes", "pipes": 1, **early.EARLY, "app_buffer": 4_000_000}
LATE: Params = {"way": "pipes", "pipes": 8, **early.LATE, "app_buffer": None}
LEFT = (
    "What is left beside bulk was 14, 10 and 9 ms more than alone at 5, 10 and 20 Mbit/s: three "
    "segments, or 4 ms, may wait in the queue by design, so that the link does not run dry."
)
AS_ALONE = Claim(
    row="object-spdy",
    where="§6.4",
    says="8 pipes with late binding, beside bulk over alone, at 10 Mbit/s",
    of={**LATE, "mbps": 10.0, "bulk": True, "bulk_way": "down"},
    over={**LATE, "mbps": 10.0, "bulk": False, "bulk_way": "down"},
    metric="object_p50_s",
    paper=1.0,
    expect="same",
    note=LEFT,
)
BASE: Grid = {"bottleneck": ("sender",), "mbps": RATES, "bulk": (False, True)}
SHARED_GRID = as_grid(SHARED)


def of_rates(which: int) -> dict[float, float]:
    """The published seconds beside the bulk of one way, by rate."""
    return {mbps: seconds[which] for mbps, seconds in PUBLISHED.items()}


def claims_at(mbps: float) -> tuple[Claim, ...]:
    own, shared = PUBLISHED[mbps]
    bulk: Params = {"mbps": mbps, "bulk": True, "bulk_way": "down"}
    alone: Params = {"mbps": mbps, "bulk": False, "bulk_way": "down"}
    at = f"at {mbps:g} Mbit/s"
    return (
        Claim(
            row="object-spdy",
            where="Table 1",
            says=f"connections of their own, alone, {at}",
            of={"way": "direct", **alone},
            metric="object_p50_s",
            paper=ALONE_S,
            unit="s",
            expect="same",
            than=0.054 + OBJECT_BITS / mbps / 1e6,  # round trip and size at the rate
            within=0.15,
            causes=(RoundTrip(PRINTED_S),),
        ),
        Claim(
            row="object-spdy",
            where="Table 1",
            says=f"connections of their own, beside bulk over alone, {at}",
            of={"way": "direct", **bulk},
            over={"way": "direct", **alone},
            metric="object_p50_s",
            paper=own / ALONE_S,
            paper_sides=(own, ALONE_S),
            expect="more",
            causes=(Front(ALONE_S, of_rates(0)), Printed(PRINTED_S)),
        ),
        Claim(
            row="object-spdy",
            where="Table 1",
            says=f"one shared connection over connections of their own, beside bulk, {at}",
            of={**SHARED, **bulk},
            over={"way": "direct", **bulk},
            metric="object_p50_s",
            paper=shared / own,
            paper_sides=(shared, own),
            expect="more",
            causes=(Front(ALONE_S, of_rates(1)),),
        ),
        *((AS_ALONE,) if mbps == 10 else ()),
        Claim(
            row="object-spdy",
            where=OWN,
            says=f"8 pipes with late binding, beside bulk over alone, {at}",
            of={**LATE, **bulk},
            over={**LATE, **alone},
            metric="object_p50_s",
            expect="same",
            within=0.5,
            note=LEFT,
        ),
        Claim(
            row="object-spdy",
            where="§6.4",
            says=f"late binding instead of one shared connection, beside bulk, {at}",
            of={**LATE, **bulk},
            over={**SHARED, **bulk},
            metric="object_p50_s",
        ),
    )


class Object(Experiment):
    name = "object"
    title = "A small object beside a bulk download"
    question = "How long does a 4 KB object take while the same user downloads something large?"
    parameters = (
        Parameter("bulk", True, "truth", "whether a bulk transfer goes on beside it"),
        Parameter("bulk_way", "down", "text", "which way object and bulk go", ("down", "up")),
    )
    metrics = (
        Metric("object_p50_s", "time of an object, median", "s", matters=0.1),
        Metric("object_p95_s", "time of an object, 95th percentile", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
    )
    ways = ("pipes", "direct", "haproxy", "mptcp")
    grids = (
        {**BASE, "way": ("direct", "haproxy", "mptcp"), "bulk_way": ("down", "up")},
        {**BASE, "pipes": (1, 8), "binding": ("late",), "bulk_way": ("down", "up")},
        {
            **BASE,
            **SHARED_GRID,
            "bulk_way": ("down", "up"),
        },
    )
    reps = 10
    quick_grids = (
        {**BASE, "way": ("direct",)},
        {**BASE, "pipes": (8,), "binding": ("late",)},
        {**BASE, **SHARED_GRID, "bulk": (True,)},
    )
    quick_reps = 5
    run_seconds = 4.5
    claims = tuple(claim for mbps in RATES for claim in claims_at(mbps))
    figures = (
        Figure(
            name="by-rate",
            title="A 4 KB object beside a bulk download",
            kind="against",
            y="object_p50_s",
            x="mbps",
            hue="binding",
            where={"bulk": True, "bulk_way": "down"},
            log=True,
        ),
    )
    notes = (
        "The object is asked for on a connection that is open already; the time runs from the "
        "request to the last byte. The rate limit sits in the sender's own queue, as published.",
        "In place of a SPDY server stands one pipe with early binding whose queue in the proxy "
        "holds 4 MB: one connection, with everything of the bulk that fits in front of the object.",
        "The queue is 100 ms deep at each rate. Published times are of one queue of about 100 KB "
        "and of one buffer of about 10 MB, whatever the rate: see object-buffers.",
        early.NOTE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        bulk, way = bool(run.params["bulk"]), run.params["bulk_way"]
        return objects.beside_bulk(run, bulk=bulk, way=way, count=6 if bulk else 4, seconds=3.0)  # type: ignore[arg-type]
