# SPDX-License-Identifier: MIT
"""What a last mile is: a frozen dataclass with units in its names, checked when it is made."""

import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

LOSS_MODELS = ("bernoulli", "bursty", "periodic", "list")
AQMS = ("tail", "codel")
JITTER_DISTRIBUTIONS = ("uniform", "normal", "exponential", "pareto")
ETHERNET_BYTES = 14  # counted by the rate on top of each IP packet, here as in tc
BOTH = {  # shorthands for both directions
    "mbps": ("down_mbps", "up_mbps"),
    "queue_ms": ("queue_down_ms", "queue_up_ms"),
    "loss": ("loss_down", "loss_up"),
}


class ParameterError(ValueError):
    """A wrong parameter; the message starts with its name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


@dataclass(frozen=True)
class Range:
    low: float
    high: float
    unit: str
    whole: bool = False
    optional: bool = False


RANGES = {
    "down_mbps": Range(0.01, 10_000, "Mbit/s", optional=True),
    "up_mbps": Range(0.01, 10_000, "Mbit/s", optional=True),
    "rtt_ms": Range(0, 20_000, "milliseconds"),
    "queue_down_ms": Range(1, 60_000, "milliseconds"),
    "queue_up_ms": Range(1, 60_000, "milliseconds"),
    "loss_down": Range(0, 1, "(a share: 2 % is 0.02)"),
    "loss_up": Range(0, 1, "(a share: 2 % is 0.02)"),
    "loss_burst_packets": Range(1, 10_000, "packets"),
    "jitter_ms": Range(0, 10_000, "milliseconds"),
    "reorder": Range(0, 1, "(a share: 2 % is 0.02)"),
    "reorder_ms": Range(0, 10_000, "milliseconds"),
    "duplicate": Range(0, 1, "(a share: 2 % is 0.02)"),
    "mtu": Range(576, 9000, "bytes", whole=True),
    "seed": Range(0, 2**63 - 1, "", whole=True),
}
CHOICES = {
    "loss_model": LOSS_MODELS,
    "aqm": AQMS,
    "jitter_dist": JITTER_DISTRIBUTIONS,
}


def check_number(name: str, value: Any, allowed: Range) -> None:
    if value is None and allowed.optional:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    unit = f" {allowed.unit}" if allowed.unit else ""
    if not number or not -math.inf < value < math.inf:
        without = ", without its unit" if isinstance(value, str) else ""
        raise ParameterError(name, f"{value!r} is not a number{without} (wanted:{unit or ' any'})")
    if allowed.whole and value != int(value):
        raise ParameterError(name, f"{value!r} is not a whole number")
    if not allowed.low <= value <= allowed.high:
        raise ParameterError(
            name, f"{value!r} is not from {allowed.low:g} to {allowed.high:g}{unit}"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(name, f"{value!r} is none of {', '.join(choices)}")


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


@dataclass(frozen=True)
class Mile:
    """A last mile between the client and the remote proxy.

    Rates count IP packets with their Ethernet header; None is no limit. Loss is drawn before the
    queue. `seed`: with linkem, the n-th packet of a direction meets the same fate in each run.
    """

    down_mbps: float | None = 10.0
    up_mbps: float | None = 10.0
    rtt_ms: float = 50.0
    queue_down_ms: float = 100.0
    queue_up_ms: float = 100.0
    loss_down: float = 0.0
    loss_up: float = 0.0
    loss_model: str = "bernoulli"
    loss_burst_packets: float = 8.0  # mean length of a burst, for "bursty"
    loss_list_down: str | None = None  # for "list": numbers and ranges, 3,7,9-12, or @FILE
    loss_list_up: str | None = None
    jitter_ms: float = 0.0
    jitter_dist: str = "uniform"
    jitter_reorder: bool = False
    reorder: float = 0.0
    reorder_ms: float = 0.0
    duplicate: float = 0.0
    aqm: str = "tail"
    trace_down: str | None = None  # a file in Mahimahi's format, instead of down_mbps
    trace_up: str | None = None
    mtu: int = 1500
    seed: int = 1

    def __post_init__(self) -> None:
        for name, allowed in RANGES.items():
            check_number(name, getattr(self, name), allowed)
        for name, choices in CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if not isinstance(self.jitter_reorder, bool):
            raise ParameterError("jitter_reorder", f"{self.jitter_reorder!r} is no truth value")
        self._check_loss()
        for way in ("down", "up"):
            self._check_trace(way)

    def _check_loss(self) -> None:
        for way in ("down", "up"):
            listed = getattr(self, f"loss_list_{way}")
            if listed is not None and self.loss_model != "list":
                raise ParameterError(f"loss_list_{way}", "needs loss_model=list")
            if self.loss_model == "list" and getattr(self, f"loss_{way}"):
                raise ParameterError(f"loss_{way}", "with loss_model=list the list says it all")
            if self.loss_model == "bursty" and getattr(self, f"loss_{way}") == 1:
                raise ParameterError(f"loss_{way}", "1 leaves no room between bursts")

    def _check_trace(self, way: str) -> None:
        name = f"trace_{way}"
        path = getattr(self, name)
        if path is not None and not Path(path).is_file():
            raise ParameterError(name, f"{path}: no such file")

    def direction(self, way: Literal["down", "up"]) -> Direction:
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


NAMES = tuple(field.name for field in fields(Mile))


def spelled_out(changes: dict[str, Any]) -> dict[str, Any]:
    """`changes` with the shorthands replaced; what is named in full wins. Unknown names fail."""
    full: dict[str, Any] = {}
    for short, names in BOTH.items():
        if short in changes:
            check_number(short, changes[short], RANGES[names[0]])
            full.update(dict.fromkeys(names, changes[short]))
    for name, value in changes.items():
        if name in BOTH:
            continue
        if name not in NAMES:
            raise ParameterError(
                name, f"no such parameter; there are {', '.join(sorted((*NAMES, *BOTH)))}"
            )
        full[name] = value
    return full
