# SPDX-License-Identifier: MIT
"""A bulk upload over a radio link without a gate: what waits in the device, and what below it."""

from typing import TYPE_CHECKING, Any

from experiments.causes.drains import Drains, queue_up
from experiments.model import OWN, Claim, Experiment, Figure, Metric, as_grid
from experiments.workloads import radio
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

BASE_MS = 50.0
HOST_KB = 750.0  # of the host's queue at either rate: 3 s at 2 Mbit/s
FIRMWARE_KB = 300.0
PUBLISHED = {  # by rate: round trip below the host's queue, and what is beside it, ms
    2.0: (1300.0, 3000.0),
    8.0: (330.0, 680.0),
}
# As much of an upload goes before what is measured as went before in the published one.
SETTLE_S = {2.0: 20.0, 8.0: 10.0}
PARAMETERS = (
    Parameter("settle_s", 20.0, "number", "of the upload before it is measured", low=0.5),
    Parameter("seconds", 20.0, "number", "for which it is measured", low=1),
)
METRICS = (
    Metric("firmware_ms", "wait in the firmware, median", "ms", matters=0.05),
    Metric("beyond_ms", "round trip from the firmware on, median", "ms", matters=0.05),
    Metric("host_most_ms", "longest wait in the host's queue", "ms", matters=0.1),
    Metric("host_ms", "wait in the host's queue, median", "ms"),
    Metric("link_mbps", "rate that the uplink carried", "Mbit/s", "more", matters=0.02),
    Metric("up_mbps", "goodput of the upload", "Mbit/s", "more"),
    Metric("padded", "share of what was granted that was padding", "", "neither"),
)


def case(mbps: float) -> Params:
    return {
        "preset": "wired",
        "way": "direct",
        "radio": "up",
        "rtt_ms": BASE_MS,
        "up_mbps": mbps,
        "queue_up_ms": HOST_KB * 8 / mbps,
    }


def claims_of(mbps: float) -> tuple[Claim, ...]:
    rtt_ms, host_ms = PUBLISHED[mbps]
    closed_ms = 8 * FIRMWARE_KB / mbps
    return (
        Claim(
            "radio-delay",
            "Fig. 3.7",
            f"{mbps:g} Mbit/s: wait in the firmware",
            case(mbps),
            metric="firmware_ms",
            paper=rtt_ms - BASE_MS,
            unit="ms",
            expect="same",
            than=rtt_ms - BASE_MS,
            causes=(Drains("A firmware", lambda _: FIRMWARE_KB * 1e3),),
        ),
        Claim(
            "radio-delay",
            OWN,
            f"{mbps:g} Mbit/s: wait in the firmware, beside {FIRMWARE_KB:g} KB at the rate",
            case(mbps),
            metric="firmware_ms",
            unit="ms",
            expect="same",
            than=closed_ms,
            within=0.05,
        ),
        Claim(
            "radio-delay",
            "Fig. 3.7",
            f"{mbps:g} Mbit/s: longest wait in the host's queue",
            case(mbps),
            metric="host_most_ms",
            paper=host_ms,
            unit="ms",
            expect="same",
            than=host_ms,
            causes=(Drains("A host's queue", queue_up),),
        ),
    )


class RadioDelay(Experiment):
    name = "radio-delay"
    ways = ("direct", "pipes")
    title = "The queue below the device"
    question = "How long does an upload wait in the host's queue, and how long in the firmware?"
    parameters = PARAMETERS
    metrics = METRICS
    shown = ("host_ms", "link_mbps", "up_mbps")
    grids = tuple(as_grid({**case(mbps), "settle_s": SETTLE_S[mbps]}) for mbps in PUBLISHED)
    reps = 5
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    run_seconds = 40.0
    claims = tuple(it for mbps in PUBLISHED for it in claims_of(mbps))
    figures = (
        Figure(
            name="firmware",
            title="Wait in the firmware",
            kind="against",
            y="firmware_ms",
            x="up_mbps",
            joined=False,  # between them the wait is no straight line
        ),
    )
    notes = (
        "The uplink is a model: 300 KB in the firmware, which empties as a base station grants, "
        "every 5 ms and each grant 8 ms late. The 8 ms are the laboratory's; no figure was "
        "published. topologies/linkem/README.md tells the rules.",
        "The published figures are two uploads of a phone over LTE. What the round trip below the "
        "host's queue has beyond 50 ms is taken for the wait in the firmware.",
        "What came behind a lost packet is had at once when that one is there, at 2 Mbit/s a "
        "megabyte. So a goodput over 20 s may exceed the rate; what the uplink carried may not.",
        "The wait in the host's queue is by construction: its room was not published. Here it is "
        "750 KB at either rate, which at 2 Mbit/s are the 3 s that were seen.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        settle_s = float(run.params["settle_s"])  # type: ignore[arg-type]
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        return radio.upload(run, settle_s, seconds)
