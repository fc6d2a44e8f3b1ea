# SPDX-License-Identifier: MIT
"""What a last mile is: a frozen dataclass with units in its names, checked when it is made."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from topologies.parameter import SHARE, ParameterError, check_all, declared, declared_by
from topologies.radio import Way
from topologies.radio import check as check_radio

TRACES = ("trace_down", "trace_up", "delay_trace")  # files
ETHERNET_BYTES = 14  # counted by the rate on top of each IP packet, here as in tc
WITHIN = 0.01  # of a share of periodic loss, so near has to be one packet in a whole number


@dataclass(frozen=True)
class Direction:
    """One direction of a last mile, as the realisations want it."""

    mbps: float | None
    delay_ms: float
    queue_ms: float
    loss: float
    loss_list: str | None
    trace: str | None

    def queue_bytes(self) -> int:
        """What waits at most; only where there is a rate."""
        assert self.mbps is not None
        return max(1, round(self.mbps * 1e6 / 8 * self.queue_ms / 1e3))


def one_in(share: float) -> int:
    """Of how many packets one is lost, with loss_model periodic."""
    return round(1 / share)


def _share(of: str, **more: Any) -> Any:
    return declared(0.0, f"share of {of}", low=0, high=1, unit=SHARE, **more)


@dataclass(frozen=True)
class Mile:
    """A last mile between the client and the remote proxy.

    Rates count IP packets with their Ethernet header; None is no limit. Loss is drawn before the
    queue. `seed`: with linkem, the n-th packet of a direction meets the same fate in each run.
    """

    down_mbps: float | None = declared(
        10.0, "rate towards the client", low=0.01, high=1e4, optional=True, noun="downlink rate"
    )
    up_mbps: float | None = declared(
        10.0, "rate from the client", low=0.01, high=1e4, optional=True, noun="uplink rate"
    )
    rtt_ms: float = declared(
        50.0, "round trip of the last mile, half of it each way", low=0, high=2e4, noun="round trip"
    )
    queue_down_ms: float = declared(
        100.0, "queue towards the client, at its rate", low=1, high=6e4, noun="downlink queue"
    )
    queue_up_ms: float = declared(
        100.0, "queue from the client, at its rate", low=1, high=6e4, noun="uplink queue"
    )
    loss_down: float = _share("packets lost towards the client", noun="downlink loss")
    loss_up: float = _share("packets lost from the client", noun="uplink loss")
    loss_model: str = declared(
        "bernoulli",
        "how losses follow each other",
        choices=("bernoulli", "bursty", "periodic", "list"),
    )
    loss_burst_packets: float = declared(
        8.0,
        "mean length of a burst, with loss_model bursty",
        low=1,
        high=1e4,
        noun="burst of losses",
    )
    loss_list_down: str | None = declared(
        None, "which packets are lost, with loss_model list: 3,7,9-12 or @FILE", kind="text"
    )
    loss_list_up: str | None = declared(None, "the same from the client", kind="text")
    jitter_ms: float = declared(0.0, "variation of the delay", low=0, high=1e4, noun="jitter")
    jitter_dist: str = declared(
        "uniform", "its distribution", choices=("uniform", "normal", "exponential", "pareto")
    )
    jitter_reorder: bool = declared(False, "whether it may change the order of packets")
    reorder: float = _share("packets that are held back")
    reorder_ms: float = declared(0.0, "for how long", low=0, high=1e4)
    duplicate: float = _share("packets that arrive twice")
    aqm: str = declared(
        "tail",
        "what is dropped of a full queue: the newest (tail), or by CoDel",
        choices=("tail", "codel"),
    )
    trace_down: str | None = declared(
        None, "a file in Mahimahi's format in place of the rate towards the client", kind="text"
    )
    trace_up: str | None = declared(None, "the same from the client", kind="text")
    delay_trace: str | None = declared(
        None,
        "a file of one-way delays in place of half of rtt_ms, both ways: lines FOR_MS DELAY_MS",
        kind="text",
    )
    radio: str = declared(
        "none",
        "which directions are a radio link, with a queue below the device (a model)",
        choices=("none", "up", "down", "both"),
    )
    gate: str = declared(
        "none", "of a radio: what may wait below the device: none, bytes:N or delay:MS"
    )
    host: str = declared(
        "fifo", "of a radio: order of the queue above the gate", choices=("fifo", "prio", "codel")
    )
    interactive: str = declared(
        "dscp:32-63", "with host prio, what goes first: dscp:N[-M], port:N[-M], with commas between"
    )
    firmware_kb: float = declared(
        300.0, "of a radio: room below the device", low=2, high=1e6, unit="KB"
    )
    grants_ms: float = declared(
        5.0, "of a radio: between two reports, and so two grants", low=1, high=100
    )
    grant_delay_ms: float = declared(
        8.0, "of a radio: from a report until its grant takes effect", low=0.1, high=1000
    )
    report_levels: int = declared(64, "of a radio: levels of a report: 32, 64 or 256", low=1)
    report_cap_kb: float = declared(
        150.0, "of a radio: from where on a report says no more", low=1, high=1e6, unit="KB"
    )
    telemetry_ms: float = declared(
        100.0, "of a radio: how late the gate learns of reports and grants", low=0, high=500
    )
    mtu: int = declared(1500, "size of an IP packet", low=576, high=9000, unit="bytes")
    seed: int = declared(1, "of all that is drawn", low=0, high=2**63 - 1)

    def __post_init__(self) -> None:
        check_all(self)
        self._check_loss()
        for name in TRACES:
            self._check_trace(name)
        check_radio(self)

    def _check_loss(self) -> None:
        for way in ("down", "up"):
            listed = getattr(self, f"loss_list_{way}")
            if listed is not None and self.loss_model != "list":
                raise ParameterError(f"loss_list_{way}", "needs loss_model=list")
            if self.loss_model == "list" and getattr(self, f"loss_{way}"):
                raise ParameterError(f"loss_{way}", "with loss_model=list the list says it all")
            if self.loss_model == "bursty" and getattr(self, f"loss_{way}") == 1:
                raise ParameterError(f"loss_{way}", "1 leaves no room between bursts")
            if self.loss_model == "periodic" and getattr(self, f"loss_{way}"):
                self._check_period(f"loss_{way}")

    def _check_period(self, name: str) -> None:
        share = getattr(self, name)
        if abs(1 / one_in(share) - share) > WITHIN * share:
            packets = math.floor(1 / share)
            near = f"{1 / (packets + 1):.4g} and {1 / packets:.4g}"
            raise ParameterError(
                name, f"periodic loss is one packet in N: not {share:g}, the next are {near}"
            )

    def _check_trace(self, name: str) -> None:
        path = getattr(self, name)
        if path is not None and not Path(path).is_file():
            raise ParameterError(name, f"{path}: no such file")

    def direction(self, way: Way) -> Direction:
        trace = getattr(self, f"trace_{way}")
        return Direction(
            mbps=None if trace else getattr(self, f"{way}_mbps"),
            delay_ms=self.rtt_ms / 2,
            queue_ms=getattr(self, f"queue_{way}_ms"),
            loss=getattr(self, f"loss_{way}"),
            loss_list=getattr(self, f"loss_list_{way}"),
            trace=trace,
        )

    def with_(self, **changes: Any) -> "Mile":
        """A copy with other parameters; `mbps`, `queue_ms` and `loss` stand for both ways."""
        return replace(self, **spelled_out(changes))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


MILE = {it.name: it for it in declared_by(Mile)}
BOTH = {  # shorthands for both directions
    "mbps": ("down_mbps", "up_mbps"),
    "queue_ms": ("queue_down_ms", "queue_up_ms"),
    "loss": ("loss_down", "loss_up"),
}
SHORTHANDS = {
    name: replace(MILE[BOTH[name][0]], name=name, default=None, help=text, noun=noun)
    for name, text, noun in (
        ("mbps", "rate of both directions", "rate"),
        ("queue_ms", "queue of both directions, at their rate", "queue"),
        ("loss", "share of packets lost, both directions", "loss"),
    )
}

# What the second of two last miles may have of its own.
_SECOND = "second_"
_OF_SECOND = (
    *("rtt_ms", "jitter_ms", *BOTH),
    *(name for names in BOTH.values() for name in names),
    *TRACES,
)
SECOND = {
    f"{_SECOND}{it.name}": replace(
        it,
        name=f"{_SECOND}{it.name}",
        default=None,
        help=f"of the second last mile alone: {it.help}",
        noun=f"{it.noun} of the second",
    )
    for it in (*MILE.values(), *SHORTHANDS.values())
    if it.name in _OF_SECOND
}


def of_second(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of both last miles, and those of the second alone, by the names that a mile knows."""
    for name in changes.keys() & SECOND.keys():
        SECOND[name].check(changes[name])
    own = {name.removeprefix(_SECOND): it for name, it in changes.items() if name in SECOND}
    return {name: it for name, it in changes.items() if name not in SECOND}, own


def spelled_out(changes: dict[str, Any]) -> dict[str, Any]:
    """`changes` with the shorthands replaced; what is named in full wins. Unknown names fail."""
    full: dict[str, Any] = {}
    for short, names in BOTH.items():
        if short in changes:
            replace(MILE[names[0]], name=short).check(changes[short])
            full.update(dict.fromkeys(names, changes[short]))
    for name, value in changes.items():
        if name in BOTH:
            continue
        if name not in MILE:
            raise ParameterError(
                name, f"no such parameter; there are {', '.join(sorted((*MILE, *BOTH)))}"
            )
        full[name] = value
    return full
