# SPDX-License-Identifier: MIT
"""How wrong a rate is that is measured above the radio: by the application, by TCP, by the host.

Each layer counts the bytes that it gave to the one below: the application what the kernel took, TCP
what the device took, the host's queue what the firmware took. What the radio sent is what was
granted less the padding. A rate is of a window that slides; its error is relative to the radio's
rate in the same window.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.workloads import radio, traffic
from experiments.workloads.radio import Look
from experiments.workloads.rates import FRAME, MSS
from experiments.workloads.written import Written

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

EVERY_S = 0.005  # between two looks: as often as there are grants
WINDOWS_MS = (20, 100)
STEP_S = 0.1  # of the rates that a plot shows
LEAST_LOOKS = 100


@dataclass(frozen=True)
class Curve:
    """Bytes so far. `smooth`: straight between two times, else all at once at the later one."""

    at: Sequence[float]
    total: Sequence[float]
    smooth: bool = True

    def upto(self, time: float) -> float:
        after = bisect_right(self.at, time)
        if not after:
            return 0.0 if not self.smooth else self.total[0]
        before = self.total[after - 1]
        if not self.smooth or after == len(self.at):
            return before
        part = (time - self.at[after - 1]) / (self.at[after] - self.at[after - 1])
        return before + part * (self.total[after] - before)

    def within(self, since: float, until: float) -> float:
        return self.upto(until) - self.upto(since)


def curves(looks: Sequence[Look], wrote: dict[str, Any]) -> dict[str, Curve]:
    """By layer. The application's bytes count with the headers that they will have."""
    at = [it.at for it in looks]
    sent = [it.granted_bytes - it.padded_bytes for it in looks]
    passed = [it + look.firmware_bytes for it, look in zip(sent, looks, strict=True)]
    return {
        "app": Curve(wrote["at"], [it * FRAME / MSS for it in wrote["bytes"]], smooth=False),
        "tcp": Curve(at, [it.in_bytes for it in looks]),
        "host": Curve(at, passed),
        "radio": Curve(at, sent),
    }


def rms(layer: Curve, of: Curve, width_s: float, ends: Sequence[float]) -> float | None:
    """Of the relative errors in the windows with these ends in which a packet or more was sent."""
    errors = []
    for end in ends:
        true = of.within(end - width_s, end)
        if true >= FRAME:
            errors.append(layer.within(end - width_s, end) / true - 1)
    if not errors:
        return None
    return math.sqrt(sum(it * it for it in errors) / len(errors))


def errors(found: dict[str, Curve], since: float, until: float) -> dict[str, Any]:
    """Of each layer in each window, and one beside the other."""
    ends = [it for it in found["radio"].at if since <= it <= until]
    if len(ends) < LEAST_LOOKS:
        raise RunFailed(f"{len(ends)} looks at the link are too few for windows of a rate")
    measures: dict[str, Any] = {}
    for ms in WINDOWS_MS:
        for name in ("app", "tcp", "host"):
            measures[f"{name}_{ms}"] = rms(found[name], found["radio"], ms / 1e3, ends)
    for upper, lower in (("app", "tcp"), ("tcp", "host")):
        measures[f"{upper}_to_{lower}"] = _ratio(measures[f"{upper}_100"], measures[f"{lower}_100"])
    for name in ("app", "tcp", "host"):
        measures[f"{name}_shorter"] = _ratio(measures[f"{name}_20"], measures[f"{name}_100"])
    return measures


def _ratio(of: float | None, over: float | None) -> float | None:
    return of / over if of is not None and over else None


def series(found: dict[str, Curve], since: float, until: float) -> dict[str, Any]:
    """Rates by layer, the radio's first."""
    count = round((until - since) / STEP_S)
    starts = [since + n * STEP_S for n in range(count)]
    return {"series_step_s": STEP_S} | {
        f"series_{name}_mbps": [
            round(found[name].within(at, at + STEP_S) * 8e-6 / STEP_S, 3) for at in starts
        ]
        for name in ("radio", "host", "tcp", "app")
    }


def measure(run: "LiveRun", settle_s: float, seconds: float) -> dict[str, Any]:
    """One upload for `settle_s` and `seconds` more; what held in the latter. Raises RunFailed."""
    link = radio.link_of(run)
    actor = Written(seconds=settle_s + seconds, **traffic.way(run))
    with radio.watched(link, EVERY_S) as looks:
        wrote = traffic.play(run, {"upload": actor})["upload"]
    found = curves(looks, wrote)
    since, until = run.went + settle_s, run.went + settle_s + seconds
    held = radio.waits([it for it in looks if since <= it.at <= until])
    return {
        **errors(found, since, until),
        **{name: held[name] for name in ("firmware_ms", "host_ms", "link_mbps")},
        **series(found, since, until),
    }
