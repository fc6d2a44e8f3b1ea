# SPDX-License-Identifier: MIT
"""Traces that are made here: the same for the same seed, what they are said to be, and found."""

from itertools import pairwise
from pathlib import Path

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
    found = list(traces.opportunities(3))
    assert found == sorted(found)
    assert found[-1] in (traces.PERIOD_MS, traces.PERIOD_MS - 1)
    rates = list(traces.rates_mbps(3))
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
        assert sorted(it.suffix for it in first.parent.iterdir()) == [".mahimahi"] * 2
    finally:
        traces.path_of.cache_clear()


def test_a_configuration_keeps_the_name_and_the_lab_gets_the_file() -> None:
    params = parameters.complete((), {"trace_down": "synthetic-lte:5"})
    assert params["trace_down"] == "synthetic-lte:5"
    wanted = str(traces.path_of("synthetic-lte:5"))
    (mile,) = parameters.miles(params)
    assert mile.trace_down == parameters.lab_parameters(params)["trace_down"] == wanted


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"trace_down: .*no such file"):
        parameters.complete((), {"trace_down": "synthetic-5g"})
