# SPDX-License-Identifier: MIT
"""Table 2: a 4 KB object beside downloads of growing size."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue import early
from experiments.catalogue.object import LATE, PRINTED_S
from experiments.catalogue.object import SHARED as SHARED_4_MB
from experiments.causes.front import Download
from experiments.causes.printed import Printed
from experiments.model import Claim, Experiment, Figure, Metric, as_grid
from experiments.workloads import objects, traffic
from experiments.workloads.actors import Bulk, Objects
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PUBLISHED_S = {0: 0.05, 500_000: 0.45, 1_000_000: 0.94, 2_000_000: 1.75, 4_000_000: 3.33}
PUBLISHED_S |= {8_000_000: 6.70}
BASE = {"bottleneck": ("sender",), "beside": tuple(PUBLISHED_S)}
SHARED = {**SHARED_4_MB, "app_buffer": 8_000_000}
SHARED_GRID = as_grid(SHARED)
BEHIND_S = 0.2  # the object is asked for so long after the download began


class ObjectSize(Experiment):
    name = "object-size"
    title = "A small object beside downloads of growing size"
    question = "From which size on does a download delay what else its user asks for?"
    parameters = (
        Parameter(
            "beside", 500_000, "size", "of the download; 0: none", low=0, noun="download beside it"
        ),
    )
    metrics = (Metric("completion_s", "time of the object", "s", matters=0.05),)
    grids = (
        {**BASE, "way": ("direct",)},
        {**BASE, "pipes": (1, 8), "binding": ("late",)},
        {**BASE, **SHARED_GRID},
    )
    quick_grids = (
        {**BASE, "way": ("direct",)},
        {**BASE, "pipes": (8,), "binding": ("late",)},
        {**BASE, **SHARED_GRID},
    )
    quick_reps = 5
    run_seconds = 1.2
    claims = tuple(
        claim
        for size, seconds in PUBLISHED_S.items()
        if size
        for claim in (
            Claim(
                row="object-size",
                where="Table 2",
                says=f"one shared connection, beside {size / 1e6:g} MB over alone",
                of={**SHARED, "beside": size},
                over={**SHARED, "beside": 0},
                paper=seconds / PUBLISHED_S[0],
                paper_sides=(seconds, PUBLISHED_S[0]),
                expect="more",
                causes=(Download("beside", BEHIND_S, PUBLISHED_S[0]), Printed(PRINTED_S)),
            ),
            Claim(
                row="object-size",
                where="§6.4",
                says=f"late binding instead, beside {size / 1e6:g} MB",
                of={**LATE, "beside": size},
                over={**SHARED, "beside": size},
            ),
        )
    )
    figures = (
        Figure(
            name="by-size",
            title="A 4 KB object beside a download",
            kind="against",
            x="beside",
            hue="binding",
            log=True,
        ),
    )
    notes = (
        "The download begins on a connection of its own, the object is asked for 0.2 s later on "
        "one that is open already. One object a run. One pipe with early binding and a queue of "
        "8 MB in the proxy stands in place of SPDY.",
        early.NOTE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        how = traffic.way(run)
        beside = int(run.params["beside"])  # type: ignore[arg-type]
        actors: dict[str, Any] = {
            "object": Objects(size=objects.OBJECT_BYTES, count=1, wait_s=BEHIND_S, **how)
        }
        if beside:
            actors["download"] = Bulk(size=beside, **how)
        found = traffic.play(run, actors)
        return {"completion_s": found["object"]["seconds"][0]}
