# SPDX-License-Identifier: MIT
"""The last-mile profiles that everything is measured on, by name.

Rates, round-trip times and loss of wifi, lte, thin and mobile-dsl are published measurements;
dsl and satellite are common shapes; wifi-lte is a client that has both of these. For mobile-dsl no
queue was published: 250 ms is ours. Of bt-wifi it was published that the round trip over WiFi is
below 5 ms; its rates are those of wifi, and what is said of Bluetooth is ours.
"""

from typing import Any

from topologies.mile import SECOND, Mile, of_second
from topologies.parameter import ParameterError

PRESETS: dict[str, tuple[Mile, ...]] = {
    "wired": (Mile(),),
    "lossy": (Mile(loss_down=0.01, loss_up=0.01),),
    "dsl": (Mile(up_mbps=1.0, queue_up_ms=500.0),),
    "wifi": (Mile(down_mbps=7.04, up_mbps=2.02, queue_down_ms=50.0, queue_up_ms=50.0),),
    "lte": (
        Mile(down_mbps=9.185, up_mbps=2.286, rtt_ms=70.0, queue_down_ms=500.0, queue_up_ms=500.0),
    ),
    "thin": (Mile(down_mbps=100.0, up_mbps=100.0, rtt_ms=20.0, loss_down=0.02, loss_up=0.02),),
    "satellite": (
        Mile(
            down_mbps=20.0,
            up_mbps=3.0,
            rtt_ms=600.0,
            queue_down_ms=1000.0,
            queue_up_ms=1000.0,
            loss_down=0.005,
            loss_up=0.005,
        ),
    ),
    "wifi-lte": (
        Mile(down_mbps=7.04, up_mbps=2.02, queue_down_ms=50.0, queue_up_ms=50.0),
        Mile(
            down_mbps=9.185,
            up_mbps=2.286,
            rtt_ms=70.0,
            queue_down_ms=500.0,
            queue_up_ms=500.0,
            seed=2,
        ),
    ),
    "mobile-dsl": (
        Mile(1.05, 1.05, 67.0, queue_down_ms=250.0, queue_up_ms=250.0),
        Mile(0.75, 0.75, 151.0, queue_down_ms=250.0, queue_up_ms=250.0, seed=2),
    ),
    "bt-wifi": (
        Mile(1.0, 1.0, 40.0, queue_down_ms=250.0, queue_up_ms=250.0),
        Mile(7.04, 2.02, 5.0, queue_down_ms=50.0, queue_up_ms=50.0, seed=2),
    ),
}


def miles_of(name: str) -> tuple[Mile, ...]:
    if name not in PRESETS:
        raise ParameterError("preset", f"{name!r} is none of {', '.join(PRESETS)}")
    return PRESETS[name]


def one_mile(name: str, **changes: Any) -> Mile:
    miles = miles_of(name)
    if len(miles) != 1:
        raise ParameterError("preset", f"{name} has {len(miles)} last miles: use twolastmiles")
    for change in changes:
        if change in SECOND:
            raise ParameterError(change, f"{name} has one last mile")
    return miles[0].with_(**changes)


def two_miles(name: str, **changes: Any) -> tuple[Mile, Mile]:
    """Both last miles of a preset; one that has one counts twice, with another seed.

    A change acts on both, one whose name begins with second_ on the second alone.
    """
    miles = miles_of(name)
    first, second = miles if len(miles) == 2 else (miles[0], miles[0])
    both, own = of_second(changes)
    first = first.with_(**both)
    return first, second.with_(**{**both, "seed": first.seed + 1}).with_(**own)


def table() -> str:
    """The presets, a line for each last mile."""
    lines = [f"{'preset':<12} {'down/up Mbit/s':>15} {'RTT ms':>7} {'queue ms':>11} {'loss':>13}"]
    for name, miles in PRESETS.items():
        for mile in miles:
            rate = f"{mile.down_mbps:g}/{mile.up_mbps:g}"
            queue = f"{mile.queue_down_ms:g}/{mile.queue_up_ms:g}"
            loss = f"{mile.loss_down:.1%}/{mile.loss_up:.1%}"
            lines.append(f"{name:<12} {rate:>15} {mile.rtt_ms:>7g} {queue:>11} {loss:>13}")
    return "\n".join(lines)
