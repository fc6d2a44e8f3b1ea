# SPDX-License-Identifier: MIT
"""mHTTP over two paths of which the second one gets longer in the middle of the object."""

from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Figure, Metric
from experiments.workloads import arrivals, fetch
from experiments.workloads.mhttp.experiment import (
    CHUNK,
    MB,
    METRICS,
    PARAMETERS,
    PLAIN,
    RANGES,
    TWO_PATHS,
    MhttpExperiment,
    measures,
    ranges,
    size_of,
    words,
)
from topologies.parameter import SHARE, Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "mhttp-event"
RATES, TIMES = "mHTTP, Fig. 18(a)", "mHTTP, Fig. 18(b)"
PATHS: Params = {**TWO_PATHS, "rtt_ms": 50.0, "second_rtt_ms": 50.0, "size": 64 * MB}
SECOND: Params = {**PLAIN, "path": 2}
T = ranges("T", CHUNK)
CHANGED = "mile2"


class MhttpEvent(MhttpExperiment):
    name = "mhttp-event"
    title = "A path that gets longer on the way"
    question = "What does an object lose over both paths when the second one gets longer?"
    parameters = (
        *PARAMETERS,
        Parameter(
            "at_share",
            0.3,
            "number",
            "of the object, after which the second path changes",
            low=0,
            high=1,
            unit=SHARE,
        ),
        Parameter(
            "then_rtt_ms",
            100.0,
            "number",
            "round trip of the second last mile from then on",
            low=0,
            high=2e4,
        ),
    )
    metrics = (
        *METRICS,
        Metric("kept", "rate after the event / rate before", "", "more", matters=0.05),
        Metric(
            "second_kept",
            "rate of the second path after the event / rate before",
            "",
            "more",
            matters=0.05,
        ),
        Metric(
            "kept_to_second",
            "ratio of what both paths keep / of what the second keeps",
            "",
            "more",
            matters=0.05,
        ),
    )
    shown = ("goodput_mbps", "kept", "second_kept")
    grids = (
        {**PATHS, "fetch": "http", "path": (1, 2)},
        {**PATHS, **RANGES, "scheduler": ("T", "ahead"), "chunk": CHUNK},
    )
    run_seconds = 9.0
    claims = (
        Claim(
            ROW,
            RATES,
            "64 MB, ranges of 1024 KB: what both paths keep of their rate to what the second keeps",
            T,
            metric="kept_to_second",
            expect="more",
        ),
        Claim(
            ROW, TIMES, "64 MB, ranges of 1024 KB: mHTTP instead of the first path alone", T, PLAIN
        ),
        Claim(
            ROW,
            TIMES,
            "64 MB, ranges of 1024 KB: mHTTP instead of the second path alone",
            T,
            SECOND,
        ),
    )
    figures = (
        Figure(
            name="time",
            title="64 MB, the second path gets longer on the way",
            kind="cdf",
            hue="scheduler",
        ),
        Figure(
            name="series",
            title="What arrives by each path",
            kind="series",
            y="series_together_mbps",
            where=RANGES,
        ),
    )
    notes = (
        "After mHTTP (Kim and others): two access networks of 100 Mbit/s and 50 ms, and a server "
        "behind each. When 30 % of the object have come (published: after 3 s of a transfer whose "
        "rate is not told), the second network's round trip becomes 100 ms, of plain HTTP by the "
        "first path, too, which does not use it.",
        "Rates are of what the client took in by each last mile: before, from a tenth of the "
        "object on; after, from 0.2 s behind the event until nine tenths have come.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        change = partial(run.lab.change, CHANGED, rtt_ms=run.params["then_rtt_ms"])
        share = float(run.params["at_share"])  # type: ignore[arg-type]
        size = size_of(run.params)
        seen = arrivals.Arrivals(size, share, change, partial(arrivals.received, run.lab))
        found = fetch.object_of(run, size, *words(run.params), watch=seen.watch)
        told = measures(run.params, found)
        if run.params["fetch"] == "mhttp":
            kept, second = seen.kept()
            told |= {"kept": kept, "second_kept": second, "kept_to_second": kept / second}
            told |= seen.series()
        return told
