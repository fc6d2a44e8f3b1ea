# SPDX-License-Identifier: MIT
"""How far the rate of an upload, as seen above the radio, is from what the radio sends."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.radio_delay import case
from experiments.causes.bursts import Bursts, OfBoth
from experiments.causes.otherwise import Otherwise
from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import radio_error
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "radio-error"
RATES = (2.0, 8.0, 20.0)
TRACE = "synthetic-lte"
LAYERS = {"app": "the application", "tcp": "TCP", "host": "the host's queue"}
WHOSE = {"app": "the application's", "tcp": "TCP's", "host": "the host's"}
PUBLISHED = {"app": 1.41, "tcp": 1.36, "host": 0.70}  # root mean square, at 100 ms


def constant(mbps: float) -> Params:
    """The host's queue has room for as many milliseconds at each rate."""
    return {**case(8.0), "up_mbps": mbps, "trace_up": None}


LINKS: dict[str, Params] = {
    "8 Mbit/s": constant(8.0),
    "an LTE-like trace": {**case(8.0), "trace_up": TRACE},
}


AT_CONSTANT = Otherwise("At a rate that does not change", LINKS["8 Mbit/s"], "more", 1.0)


def grids_of(rates: tuple[float, ...]) -> tuple[Grid, ...]:
    params = [constant(mbps) for mbps in rates]
    params.append(LINKS["an LTE-like trace"])
    return tuple(map(as_grid, params))


def claims_of(name: str) -> tuple[Claim, ...]:
    link = LINKS[name]
    sizes = [
        Claim(
            ROW,
            "Fig. 3.10",
            f"{name}: error of the rate that {LAYERS[layer]} sees, at 100 ms",
            link,
            metric=f"{layer}_100",
            paper=paper,
            expect="same",
            than=paper,
            causes=(Bursts(0.1, f"{layer}_20", 0.02),),
        )
        for layer, paper in PUBLISHED.items()
    ]
    higher = [
        Claim(
            ROW,
            "Fig. 3.10",
            f"{name}: error of {LAYERS[upper]} to that of {LAYERS[lower]}, at 100 ms",
            link,
            metric=f"{upper}_to_{lower}",
            paper=PUBLISHED[upper] / PUBLISHED[lower],
            unit="times",
            expect="more",
            causes=(OfBoth({f"{it}_100": PUBLISHED[it] for it in (upper, lower)}),),
        )
        for upper, lower in (("app", "tcp"), ("tcp", "host"))
    ]
    shorter = [
        Claim(
            ROW,
            "Fig. 3.10",
            f"{name}: error of {says}, at 20 ms to at 100 ms",
            link,
            metric=f"{layer}_shorter",
            unit="times",
            expect="more",
            causes=(AT_CONSTANT,) if link["trace_up"] else (),
        )
        for layer, says in LAYERS.items()
    ]
    return (*sizes, *higher, *shorter)


def by_rate(layer: str, ms: int) -> Figure:
    return Figure(
        name=f"{layer}-{ms}",
        title=f"Error of {WHOSE[layer]} rate, windows of {ms} ms",
        kind="against",
        y=f"{layer}_{ms}",
        x="up_mbps",
        hue="trace_up",
    )


class RadioError(Experiment):
    name = ROW
    ways = ("direct", "pipes")
    title = "The rate of an upload, seen above the radio"
    question = "How wrong is a rate that the application, TCP or the host's queue measures?"
    parameters = (
        Parameter("settle_s", 10.0, "number", "of the upload before it is measured", low=0.5),
        Parameter("seconds", 20.0, "number", "for which it is measured", low=1),
    )
    metrics = (
        *(
            Metric(f"{layer}_{ms}", f"error of {says}, windows of {ms} ms", "", matters=0.1)
            for ms in reversed(radio_error.WINDOWS_MS)
            for layer, says in LAYERS.items()
        ),
        Metric(
            "app_to_tcp",
            "error of the application / of TCP, 100 ms",
            "times",
            "neither",
            is_ratio=True,
        ),
        Metric(
            "tcp_to_host",
            "error of TCP / of the host's queue, 100 ms",
            "times",
            "neither",
            is_ratio=True,
        ),
        *(
            Metric(
                f"{layer}_shorter",
                f"error of {says}, 20 ms / 100 ms",
                "times",
                "neither",
                is_ratio=True,
            )
            for layer, says in LAYERS.items()
        ),
        Metric("firmware_ms", "wait in the firmware, median", "ms", "neither"),
        Metric("host_ms", "wait in the host's queue, median", "ms", "neither"),
        Metric("link_mbps", "rate that the uplink carried", "Mbit/s", "neither"),
    )
    shown = ("tcp_100", "host_100", "app_20", "tcp_20", "host_20", "link_mbps")
    grids = grids_of(RATES)
    reps = 5
    quick_grids = grids_of((8.0,))
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    run_seconds = 45.0
    claims = tuple(it for name in LINKS for it in claims_of(name))
    figures = (
        Figure(
            name="rates",
            title="Rates by layer, in windows of 100 ms",
            kind="series",
            y="series_radio_mbps",
        ),
        *(by_rate(layer, ms) for ms in radio_error.WINDOWS_MS for layer in LAYERS),
    )
    notes = (
        "An error is the root mean square of rate / rate of the radio - 1 over windows that slide "
        "by 5 ms; the radio's rate is what was granted less the padding. The application counts "
        "what the kernel took, with headers; TCP what the device took; the host's queue what the "
        "firmware took. Windows in which the radio sent less than a packet are left out.",
        "The uplink is a model (topologies/linkem/README.md), at a rate that does not change and "
        "with a trace like LTE's. In it the firmware takes a packet as soon as it has room for "
        "one, so once it is full the host's queue leaves at the rate of the grants: what is left "
        "of its error is packets that are larger than a part of a window. A real device has "
        "buffers between the two that fill and empty in bursts, of which nothing was published.",
        "The published errors are of a phone over LTE, and of how long an upload was not told. "
        "At 20 ms a plot alone was published: they are larger.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        settle_s = float(run.params["settle_s"])  # type: ignore[arg-type]
        return radio_error.measure(run, settle_s, float(run.params["seconds"]))  # type: ignore[arg-type]
