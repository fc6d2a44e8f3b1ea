# SPDX-License-Identifier: MIT
"""A bulk upload over a radio link with a gate above the firmware, and with what else there is."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.radio_delay import FIRMWARE_KB, METRICS, PARAMETERS, case
from experiments.model import OWN, Claim, Experiment, Figure, Grid, as_grid
from experiments.workloads import radio
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "radio-qcut"
THRESHOLDS = {0.8: 2_000, 8.0: 20_000, 20.0: 50_000}  # bytes, the best published, by rate
QCUT_D = "delay:20"
FRAME_BITS = 1514 * 8
SMALL_QUEUE_MS = 50.0  # of the host's queue, at any rate: a round trip
SMALL_BUFFER = 64_000  # of a sender: less than the firmware has room for
# Beside no gate at all. A buffer of the sender's is small in the host's queue, or in TCP, where a
# pipe to which messages are bound early has the parameter for it.
OTHERS: tuple[Params, ...] = (
    {"host": "codel"},
    {"cc": "bbr"},
    {"queue_up_ms": SMALL_QUEUE_MS},
    {"way": "pipes", "pipes": 1, "binding": "early", "pipe_sndbuf": SMALL_BUFFER},
    {"way": "pipes", "pipes": 8},
)
KEEPS = 0.95  # of the throughput without a gate
TWO_LEVELS = (
    "what CoDel leaves is one of two levels, by chance, and what was published is near the upper "
    "one: at 4, 8 and 12 Mbit/s 0.88 to 0.91 in 18 runs, in which the longest wait for the host "
    "was 10 to 29 ms, and 0.66 to 0.70 in 34 runs, in which it was 18 to 79 (2026-12-01, with runs "
    "in which a link was late)"
)


def gated(mbps: float, gate: str = "none", **more: Any) -> Params:
    return {**case(mbps), "gate": gate, "host": "fifo", "cc": "cubic", **more}


def grids_of(rates: tuple[float, ...]) -> tuple[Grid, ...]:
    gates = ("none", *(f"bytes:{it}" for it in THRESHOLDS.values()), QCUT_D)
    params = [gated(mbps, gate) for mbps in rates for gate in gates]
    params += [gated(mbps, **other) for mbps in rates for other in OTHERS]
    return tuple(map(as_grid, params))


def claims_of_threshold(mbps: float) -> tuple[Claim, ...]:
    """The published one keeps the throughput, and the next smaller does not."""
    best = THRESHOLDS[mbps]
    smaller = [it for it in THRESHOLDS.values() if it < best]
    over = gated(mbps)
    words = {"metric": "link_mbps", "than": KEEPS}
    found = [(best, "more", "keeps the throughput")]
    found += [(max(smaller), "less", "costs throughput")] if smaller else []
    return tuple(
        Claim(
            ROW,
            "Fig. 3.16",
            f"{mbps:g} Mbit/s: a threshold of {size / 1e3:g} KB {what}",
            gated(mbps, f"bytes:{size}"),
            over,
            expect=expect,  # type: ignore[arg-type]
            **words,  # type: ignore[arg-type]
        )
        for size, expect, what in found
    )


def claims_of_delay(mbps: float) -> tuple[Claim, ...]:
    of, over = gated(mbps, QCUT_D), gated(mbps)
    closed_ms = 8 * FIRMWARE_KB / mbps
    at = f"{mbps:g} Mbit/s: QCUT-D"
    return (
        Claim(  # published without its rate
            ROW,
            "Fig. 3.22",
            f"{at}: wait in the firmware",
            of,
            over,
            metric="firmware_ms",
            paper=0.04,
            reckoned=f"20 ms are {20 / closed_ms:.0%} of what {FIRMWARE_KB:g} KB take at this "
            "rate.",
        ),
        Claim(
            ROW,
            OWN,
            f"{at}: wait in the firmware, beside 25 ms and a packet's time",
            of,
            metric="firmware_ms",
            unit="ms",
            than=25 + FRAME_BITS / mbps / 1e3,
        ),
        Claim(
            ROW,
            OWN,
            f"{at}: throughput",
            of,
            over,
            metric="link_mbps",
            expect="more",
            than=KEEPS,
        ),
        Claim(
            ROW,
            "Fig. 3.20",
            f"{mbps:g} Mbit/s: CoDel above the firmware: round trip from there on",
            gated(mbps, host="codel"),
            over,
            metric="beyond_ms",
            paper=0.85,
            expect="more",
            than=0.8,
            note=TWO_LEVELS,
        ),
    )


class RadioQcut(Experiment):
    name = "radio-qcut"
    ways = ("direct", "pipes")
    title = "A gate above the queue below the device"
    question = "What keeps an upload from waiting in the firmware, and what does it cost?"
    parameters = PARAMETERS
    metrics = METRICS
    shown = ("host_ms", "link_mbps", "up_mbps")
    grids = grids_of(tuple(THRESHOLDS))
    reps = 5
    quick_grids = grids_of((8.0,))
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    run_seconds = 40.0
    claims = tuple(
        it for mbps in THRESHOLDS for it in (*claims_of_threshold(mbps), *claims_of_delay(mbps))
    )
    figures = (
        Figure(
            name="firmware",
            title="Wait in the firmware, by gate",
            kind="against",
            y="firmware_ms",
            x="gate",
            hue="host",
            facet="up_mbps",
            where={"way": "direct", "cc": "cubic"},
            log=True,
        ),
        Figure(
            name="throughput",
            title="Rate that the uplink carried, by gate",
            kind="against",
            y="link_mbps",
            x="gate",
            hue="host",
            facet="up_mbps",
            where={"way": "direct", "cc": "cubic"},
        ),
    )
    notes = (
        "The uplink is a model (topologies/linkem/README.md): 300 KB in the firmware, grants every "
        "5 ms, each 8 ms late, which is the laboratory's figure. Whoever waits for a grant sends "
        "what was reported 8 ms before, so a gate of N bytes allows N bytes every 10 ms.",
        "Small buffers of the sender are two configurations: a host's queue of "
        f"{SMALL_QUEUE_MS:g} ms, and one pipe whose send buffer is {SMALL_BUFFER / 1e3:g} KB. The "
        "published one is TCP's send buffer, of which only curves were published (Fig. 3.17), so "
        "no claim is made of it; a plain connection has no parameter for it.",
        "The published thresholds are those of a phone at -110, -98 and -85 dBm. Which rates these "
        "were was not told: 0.8, 8 and 20 Mbit/s stand for them here.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        settle_s = float(run.params["settle_s"])  # type: ignore[arg-type]
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        return radio.upload(run, settle_s, seconds)
