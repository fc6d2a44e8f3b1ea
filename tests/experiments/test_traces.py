# SPDX-License-Identifier: MIT
"""Traces that are made here: the same for the same seed, what they are said to be, and found."""

import math
from itertools import pairwise
from pathlib import Path
from statistics import correlation, fmean, pstdev

import pytest

from experiments import parameters, traces
from topologies.parameter import ParameterError


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_minute_of_something_like_lte(seed: int) -> None:
    rates = list(traces.rates_mbps(seed))
    assert len(rates) * traces.STEP_MS == traces.PERIOD_MS
    assert 6 < sum(rates) / len(rates) < 13, "Mbit/s in the mean"
    ordered = sorted(rates)
    assert ordered[len(rates) // 20] < 5, "the rate hardly varies"
    assert ordered[-len(rates) // 20] > 12, "the rate hardly varies"
    changes = [abs(b - a) for a, b in pairwise(rates)]
    assert sorted(changes)[len(changes) // 2] < 1.5, "the rate jumps instead of wandering"
    assert 0.001 < rates.count(traces.OUTAGE_MBPS) / len(rates) < 0.08


def test_opportunities_are_the_rate_and_in_order() -> None:
    rates = list(traces.rates_mbps(3))
    found = list(traces.opportunities(rates))
    assert found == sorted(found)
    assert found[-1] in (traces.PERIOD_MS, traces.PERIOD_MS - 1)
    mbps = len(found) * traces.PACKET_BITS / traces.PERIOD_MS / 1e3
    assert mbps == pytest.approx(sum(rates) / len(rates), rel=0.001)


def test_a_name_is_a_file_that_is_made_anew_where_it_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TM3_BUILD", str(tmp_path))
    traces.path_of.cache_clear()
    try:
        first = traces.path_of("synthetic-lte")
        text = first.read_text()
        assert first == tmp_path / "traces" / "synthetic-lte-1.mahimahi"
        assert traces.path_of("synthetic-lte:1") == first
        assert traces.path_of("synthetic-lte:2").read_text() != text
        first.write_text("1\n")
        traces.path_of.cache_clear()
        assert traces.path_of("synthetic-lte").read_text() == text
        suffixes = sorted(it.suffix for it in first.parent.iterdir())
        assert suffixes == [".mahimahi", ".mahimahi", ".sum", ".sum"]
    finally:
        traces.path_of.cache_clear()


def test_a_file_is_made_once_and_anew_where_what_makes_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TM3_BUILD", str(tmp_path))
    made: list[int] = []
    rates = traces.rates_mbps
    monkeypatch.setattr(traces, "rates_mbps", lambda seed: made.append(seed) or rates(seed))
    try:
        for _ in range(2):
            traces.path_of.cache_clear()
            text = traces.path_of("synthetic-lte:3").read_text()
        assert made == [3]
        monkeypatch.setattr(traces, "_source", lambda: b"another")
        traces.path_of.cache_clear()
        assert traces.path_of("synthetic-lte:3").read_text() == text
        assert made == [3, 3]
    finally:
        traces.path_of.cache_clear()


@pytest.mark.parametrize(("mean", "deviation"), [(7.04, 0.54), (9.185, 0.92), (50.0, 0.4)])
def test_a_minute_has_the_mean_and_the_deviation_that_it_is_named_by(
    mean: float, deviation: float
) -> None:
    values = traces.varying(mean, deviation, "rate 3")
    assert len(values) * traces.STEP_MS == traces.PERIOD_MS
    assert fmean(values) == pytest.approx(mean)
    assert pstdev(values) == pytest.approx(deviation * mean)
    assert min(values) > 0
    apart = round(traces.VARYING_MEMORY_MS / traces.STEP_MS)
    near, far = likeness(values, 1), likeness(values, 5 * apart)
    assert near > 0.85, "it jumps instead of wandering"
    assert abs(far) < 0.3, "it remembers for longer than a second"
    assert traces.varying(mean, deviation, "rate 4") != values


def likeness(values: list[float], steps: int) -> float:
    logs = [math.log(it) for it in values]
    return correlation(logs[:-steps], logs[steps:])


def test_files_of_what_varies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TM3_BUILD", str(tmp_path))
    traces.path_of.cache_clear()
    try:
        rate = traces.path_of("synthetic-rate:7.04:54:2")
        delay = traces.path_of("synthetic-rtt:70:50", delay=True)
        assert rate.name == "synthetic-rate-7.04-54-2.mahimahi"
        assert delay.name == "synthetic-rtt-70-50-1.delays"
        opportunities = [int(line) for line in rate.read_text().splitlines()]
        mbps = len(opportunities) * traces.PACKET_BITS / traces.PERIOD_MS / 1e3
        assert mbps == pytest.approx(7.04, rel=0.001)
        steps = [line.split() for line in delay.read_text().splitlines()]
        assert {for_ms for for_ms, _ in steps} == {str(traces.STEP_MS)}
        assert fmean(float(delay_ms) for _, delay_ms in steps) == pytest.approx(35)
    finally:
        traces.path_of.cache_clear()


@pytest.mark.parametrize(
    ("name", "told", "why"),
    [
        ("trace_down", "synthetic-rtt:50:40", "is none of a rate"),
        ("delay_trace", "synthetic-rate:7:40", "is none of a round trip"),
        ("second_delay_trace", "synthetic-lte", "is none of a round trip"),
        ("delay_trace", "synthetic-rtt:50", "no such file"),
        ("trace_up", "synthetic-rate:0.01:40", "a mean of 0.1 to 10000"),
        ("trace_up", "synthetic-rate:7:151", "a deviation of at most 150"),
    ],
)
def test_a_name_of_another_kind_is_refused(name: str, told: str, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        parameters.complete((), {"preset": "wifi-lte", name: told})


def test_each_of_two_last_miles_has_its_traces() -> None:
    told = {"delay_trace": "synthetic-rtt:50:40", "second_delay_trace": "synthetic-rtt:70:50:9"}
    params = parameters.complete((), {"preset": "wifi-lte", **told})
    assert {name: params[name] for name in told} == told
    found = [str(traces.path_of(it, delay=True)) for it in told.values()]
    assert [it.delay_trace for it in parameters.miles(params)] == found


def test_a_configuration_keeps_the_name_and_the_lab_gets_the_file() -> None:
    params = parameters.complete((), {"trace_down": "synthetic-lte:5"})
    assert params["trace_down"] == "synthetic-lte:5"
    wanted = str(traces.path_of("synthetic-lte:5"))
    (mile,) = parameters.miles(params)
    assert mile.trace_down == parameters.lab_parameters(params)["trace_down"] == wanted


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"trace_down: .*no such file"):
        parameters.complete((), {"trace_down": "synthetic-5g"})
