# SPDX-License-Identifier: MIT
"""Rates by layer, by hand-made curves; and an upload whose every byte is accounted for."""

import math
from pathlib import Path

import pytest

from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.workloads import radio_error, traffic
from experiments.workloads.radio import Look
from experiments.workloads.radio_error import Curve, curves, errors, rms
from experiments.workloads.rates import FRAME, MSS
from experiments.workloads.written import Written
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs

__all__ = ["labs"]


def test_a_curve_is_straight_or_has_steps() -> None:
    times, totals = [1.0, 2.0, 4.0], [0.0, 10.0, 30.0]
    smooth, steps = Curve(times, totals), Curve(times, totals, smooth=False)
    assert [smooth.upto(it) for it in (0.0, 1.0, 1.5, 3.0, 9.0)] == [0, 0, 5, 20, 30]
    assert [steps.upto(it) for it in (0.0, 1.0, 1.5, 2.0, 3.9, 4.0)] == [0, 0, 0, 10, 10, 30]
    assert smooth.within(1.5, 3.0) == 15
    assert Curve([5.0, 6.0], [100.0, 200.0]).upto(0.0) == 100, "what was before is not of now"


def steady(bytes_per_s: float, seconds: float = 2.0) -> Curve:
    at = [n * radio_error.EVERY_S for n in range(round(seconds / radio_error.EVERY_S) + 1)]
    return Curve(at, [it * bytes_per_s for it in at])


def test_an_error_is_relative_to_what_was_sent() -> None:
    radio = steady(1e6)
    ends = [0.5, 1.0, 1.5]
    assert rms(steady(1e6), radio, 0.1, ends) == pytest.approx(0.0, abs=1e-9)
    assert rms(steady(1.5e6), radio, 0.1, ends) == pytest.approx(0.5)
    assert rms(steady(0.0), radio, 0.1, ends) == pytest.approx(1.0)
    assert rms(steady(1e6), steady(0.0), 0.1, ends) is None, "nothing was sent"
    assert rms(steady(1e6), steady(10 * FRAME - 1.0), 0.1, ends) is None, "no whole packet was"


def test_a_burst_is_the_more_wrong_the_shorter_the_window() -> None:
    """All of 200 ms at once: a window of 100 ms has twice as much as was sent in half of all
    places and nothing in the other, one of 20 ms ten times as much in a tenth."""
    radio = steady(1e6, 4.0)
    times = [0.2 * n + 0.0025 for n in range(1, 20)]
    burst = Curve(times, [2e5 * n for n in range(1, 20)], smooth=False)
    ends = [it for it in radio.at if 1.0 <= it < 3.0]
    assert rms(burst, radio, 0.1, ends) == pytest.approx(1.0, abs=0.01)
    assert rms(burst, radio, 0.02, ends) == pytest.approx(math.sqrt(9**2 * 0.1 + 0.9), abs=0.01)


def look(number: int) -> Look:
    """One each 5 ms: 5 KB into the device, 4 KB granted of which 1 KB is padding."""
    return Look(
        at=7 + 0.005 * number,
        in_bytes=5000 * number,
        out_bytes=0,
        host_ms=0.0,
        firmware_ms=0.0,
        firmware_bytes=1000 * number,
        estimate_bytes=0.0,
        granted_bytes=9 + 4000 * number,
        padded_bytes=1000 * number,
        gate_falls=0,
    )


def test_each_layer_counts_what_it_gave_to_the_one_below() -> None:
    looks = [look(n) for n in range(400)]
    wrote = {"at": [7.0, 8.0], "bytes": [0, 1448]}
    found = curves(looks, wrote)
    # Of 5 KB that the device took in 5 ms 4 KB went to the firmware, which sent 3.
    given = {name: it.within(7.5, 8.5) for name, it in found.items()}
    assert given == pytest.approx(
        {"app": 1448 * FRAME / MSS, "tcp": 1e6, "host": 8e5, "radio": 6e5}
    )
    told = errors(found, 7.5, 8.5)
    assert told["tcp_100"] == pytest.approx(2 / 3) and told["tcp_20"] == pytest.approx(2 / 3)
    assert told["host_100"] == pytest.approx(1 / 3)
    assert told["tcp_to_host"] == pytest.approx(2.0)
    assert told["host_shorter"] == pytest.approx(1.0)
    with pytest.raises(RunFailed, match="looks at the link are too few"):
        errors(found, 7.5, 7.6)


def test_rates_are_told_in_steps() -> None:
    found = dict.fromkeys(("radio", "host", "tcp", "app"), steady(1e6))
    told = radio_error.series(found, 0.5, 1.0)
    assert told["series_step_s"] == 0.1
    assert told["series_radio_mbps"] == pytest.approx([8.0] * 5)


def test_every_byte_that_was_taken_comes(labs: Path, tmp_path: Path) -> None:
    params = configuration(way="direct")
    with Labs() as made, live(made, tmp_path / "run", params) as run:
        found = traffic.play(run, {"it": Written(seconds=1.0, **traffic.way(run))})["it"]
    assert found["bytes"] == sorted(found["bytes"]) and found["at"] == sorted(found["at"])
    assert len(found["at"]) == len(found["bytes"]) and found["bytes"][-1] > 1_000_000
