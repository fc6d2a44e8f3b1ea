# SPDX-License-Identifier: MIT
"""A bulk upload over a radio link, and what linkem knows of the link meanwhile.

What waits in the firmware and above it is linkem's own account, read while the upload runs.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.parameters import miles
from experiments.workloads import rates, traffic
from experiments.workloads.actors import Bulk, Pause
from topologies.linkem import LinkemLink
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

EVERY_S = 0.05  # between two looks
ANSWERS = 8  # that tell when linkem began


@dataclass(frozen=True)
class Look:
    """The uplink at a moment."""

    at: float  # of time.monotonic()
    in_bytes: int  # that the device took, as the rate counts them
    out_bytes: int  # that left
    host_ms: float  # what waits above the gate, at the link's rate
    firmware_ms: float  # and below it
    firmware_bytes: float
    estimate_bytes: float
    granted_bytes: float
    padded_bytes: float
    gate_falls: int


def _look(link: LinkemLink, began: float) -> Look:
    """`began`: when linkem did. Its own clock tells when it looked, however late we hear of it."""
    told = link.truth()
    uplink = told["ab"]
    there = uplink["radio"]
    if there is None:
        raise RunFailed("the uplink is no radio: --radio up")
    return Look(
        at=began + told["elapsed_ms"] / 1e3,
        in_bytes=uplink["counters"]["in_bytes"],
        out_bytes=uplink["counters"]["out_bytes"],
        host_ms=uplink["now"]["queue_ms"],
        **{
            name: there[name]
            for name in (
                "firmware_ms",
                "firmware_bytes",
                "estimate_bytes",
                "granted_bytes",
                "padded_bytes",
                "gate_falls",
            )
        },
    )


def _began(link: LinkemLink) -> float:
    """By time.monotonic(); the answer that was heard soonest tells best."""
    return min(-link.truth()["elapsed_ms"] / 1e3 + time.monotonic() for _ in range(ANSWERS))


@contextmanager
def watched(link: LinkemLink, every_s: float = EVERY_S) -> Iterator[list[Look]]:
    """Looks from now until the block ends."""
    began = _began(link)
    found = [_look(link, began)]
    over = threading.Event()

    def look() -> None:
        while not over.wait(every_s):
            found.append(_look(link, began))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield found
        finally:
            over.set()
        looking.result()


def link_of(run: "LiveRun") -> LinkemLink:
    """The last mile. Raises RunFailed where it cannot be a radio link."""
    link = run.lab.links["mile"]
    if not isinstance(link, LinkemLink):
        raise RunFailed("the last mile is not linkem's, so it is no radio: --radio up")
    return link


def upload(run: "LiveRun", settle_s: float, seconds: float) -> dict[str, Any]:
    """One upload for `settle_s` and `seconds` more; what held in the latter. Raises RunFailed."""
    link = link_of(run)
    actors = {
        "upload": Bulk(way="up", **traffic.way(run)),
        "clock": Pause(seconds=settle_s + seconds),
    }
    with watched(link) as looks:
        found = traffic.play(run, actors)
    until = settle_s + seconds
    waited = waits([it for it in looks if settle_s <= it.at - run.went <= until])
    return {
        "up_mbps": rates.mbps(found["upload"]["bins"], settle_s, until) or 0.0,
        **waited,
        "beyond_ms": waited["firmware_ms"] + path_ms(run.params),
        "series_step_s": 0.5,
        "series_up_mbps": rates.series_mbps(found["upload"]["bins"]),
    }


def path_ms(params: Params) -> float:
    """The round trip of the last mile and of what is behind it, with nothing waiting anywhere."""
    return float(miles(params)[0].rtt_ms) + float(params["wan_rtt_ms"])  # type: ignore[arg-type]


def waits(looks: list[Look]) -> dict[str, Any]:
    """Of these looks. Raises RunFailed where there are too few for a median."""
    if len(looks) < 10:
        raise RunFailed(f"{len(looks)} looks at the link are too few for a median")
    firmware = [it.firmware_ms for it in looks]
    first, last = looks[0], looks[-1]
    granted = last.granted_bytes - first.granted_bytes
    padded = last.padded_bytes - first.padded_bytes
    return {
        "link_mbps": (last.out_bytes - first.out_bytes) * 8 / 1e6 / (last.at - first.at),
        "firmware_ms": rates.median(firmware),
        "firmware_p95_ms": rates.quantile(firmware, 0.95),
        "host_ms": rates.median([it.host_ms for it in looks]),
        "host_most_ms": max(it.host_ms for it in looks),
        "estimate_kb": rates.median([it.estimate_bytes / 1e3 for it in looks]),
        "firmware_kb_held": rates.median([it.firmware_bytes / 1e3 for it in looks]),
        "padded": padded / granted if granted else None,
        "gate_falls": last.gate_falls - first.gate_falls,
    }
