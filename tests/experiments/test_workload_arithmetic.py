# SPDX-License-Identifier: MIT
"""What is computed from what was measured, against values known otherwise."""

import statistics
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import parameters
from experiments.workloads import buffers, iperf, objects, pattern, rates, standing
from experiments.workloads.account import Account, Acks, complete, yielding
from experiments.workloads.pattern import WrongByte

FLOATS = st.floats(0, 1e6)


@settings(deadline=None)
@given(st.lists(FLOATS, min_size=1))
def test_the_median_is_the_median(values: list[float]) -> None:
    assert rates.median(values) == pytest.approx(statistics.median(values))


def test_quantiles_lie_on_straight_lines() -> None:
    assert rates.quantile([3.0], 0.95) == 3.0
    assert rates.quantile([0.0, 10.0], 0.95) == 9.5
    assert rates.quantile([5.0, 1.0, 3.0], 0.25) == 2.0


def test_a_rate_is_of_whole_bins() -> None:
    bins = [0, 125_000, 125_000, 250_000]  # of a tenth of a second: 0, 10, 10, 20 Mbit/s
    assert rates.mbps(bins) == 10.0
    assert rates.mbps(bins, 0.1, 0.3) == 10.0
    assert rates.mbps(bins, 0.05, 0.29) == 10.0  # only the second bin lies within
    assert rates.mbps(bins, 0.3) == 20.0
    assert rates.mbps(bins, 0.31, 0.39) is None
    assert rates.series_mbps([125_000] * 11) == [10.0, 10.0]


def test_a_steady_rate_does_not_swing() -> None:
    assert rates.swing([7.0] * 4) == 0
    assert rates.swing([0.0, 2.0]) == 1
    assert rates.swing([]) is None
    assert rates.swing([0.0, 0.0]) is None


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1e3), min_size=1, max_size=20))
def test_jains_index_lies_between_one_over_n_and_one(values: list[float]) -> None:
    index = rates.jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


def test_jains_index_at_its_ends() -> None:
    assert rates.jain([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert rates.jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert rates.jain([0.0, 0.0]) is None


def test_first_bytes_that_are_served_in_turn_make_bulks_no_less_equal() -> None:
    """Fifty bulks have a first 60 KB one after the other, then 2 KB of each tenth of a second."""
    fifty = [
        [0] * n + [60_000] + [0] * (49 - n) + [2_000] * 50  # five seconds each
        for n in range(50)
    ]
    found = objects.goodputs(fifty, 3.0, 10.0)  # 20 of them have their first bytes after this
    assert found["jain"] == pytest.approx(1)
    assert found["bulk_mbps"] == pytest.approx((20 * 60_000 + 50 * 100_000) * 8 / 1e6 / 7)
    starved = [*fifty[:40], *([[60_000] + [0] * 99] * 10)]
    assert objects.goodputs(starved, 3.0, 10.0)["jain"] < 0.95
    assert objects.goodputs(fifty[:1], 3.0, 10.0)["jain"] is None


def test_a_player_stalls_once_and_is_behind_from_then_on() -> None:
    assert rates.stalls([0.1, 0.1, 0.5, 0.6], ahead_s=0.5) == (0, 0.0)
    count, stood_s = rates.stalls([0.1, 0.9, 0.9, 0.9], ahead_s=0.5)
    assert (count, round(stood_s, 9)) == (1, 0.3)
    count, stood_s = rates.stalls([0.0, 1.0, 0.5, 2.0], ahead_s=0.5)
    assert (count, round(stood_s, 9)) == (2, 1.5)


def test_the_floor_is_round_trip_and_packets_over_rate() -> None:
    params = parameters.complete((), {"preset": "dsl"})
    packets = 300_000 * 1514 / 1448
    assert rates.floor_s(params, 300_000) == pytest.approx(0.054 + packets * 8 / 10e6, abs=1e-4)
    up = rates.floor_s(params, 300_000, "up")
    assert up == pytest.approx(0.054 + packets * 8 / 1e6, abs=1e-3)


@settings(deadline=None)  # a busy machine is no wrong byte
@given(st.integers(0, 3 * pattern.PERIOD), st.integers(0, 600_000), st.integers(1, 5))
def test_a_stream_is_what_it_says(position: int, size: int, stream: int) -> None:
    start = pattern.start_of(1, stream)
    data = b""
    while len(data) < size:
        data += pattern.piece(start, position + len(data), size - len(data))
    pattern.check(start, position, data)
    if data:
        wrong = bytearray(data)
        wrong[size // 2] ^= 1
        with pytest.raises(WrongByte, match=f"byte {position + size // 2} "):
            pattern.check(start, position, bytes(wrong))
        with pytest.raises(WrongByte):  # of another connection
            pattern.check(pattern.start_of(1, stream + 1), position, data * (1 + 64 // size))


def pipe(number: int, tx: int, rx: int, retransmits: int = 0) -> dict[str, Any]:
    words = {"type": "pipe", "session": 1, "pipe": number, "retransmits": retransmits}
    return {**words, "tx_bytes": tx, "rx_bytes": rx}


def conn(tx: int, rx: int, p75_ms: float = 0.0) -> dict[str, Any]:
    waited = {"p50": 0.0, "p75": p75_ms, "p99": 9.0, "max": 10.0}
    words = {"type": "conn", "session": 1, "reorder_ms": waited, "reorder_max_bytes": 7}
    return {**words, "tx_bytes": tx, "rx_bytes": rx}


def test_an_account_of_two_pipes() -> None:
    rp = [pipe(0, 1, 0), pipe(0, 750, 60, 3), pipe(1, 250, 40, 1), conn(980, 90)]
    lp = [conn(80, 20), conn(10, 960, p75_ms=4.0), pipe(0, 60, 750), pipe(1, 40, 250)]
    account = Account(rp, lp)
    assert account.retransmits("down") == 4
    assert account.shares("down") == [0.75, 0.25]
    assert account.shares("up") == [0.6, 0.4]
    assert account.efficiency() == (80 + 20 + 10 + 960) / 1100
    measures = account.measures()
    assert measures["reorder_p75_s"] == 0.004
    assert measures["reorder_max_bytes"] == 7
    assert measures["pipe_share_max"] == 0.75


def test_acknowledgements_are_those_that_each_proxy_sent() -> None:
    """Of the latest sample of each pipe."""
    rp = [{**pipe(0, 9, 0), "tx_acks": it, "tx_ack_bytes": 20 * it} for it in (1, 3)]
    lp = [{**pipe(number, 9, 0), "tx_acks": 2, "tx_ack_bytes": 50} for number in (0, 1)]
    assert Account(rp, lp).acks() == Acks(3 + 4, 60 + 100)


def test_an_account_of_nothing() -> None:
    assert Account([], []).efficiency() is None
    assert Account([], []).measures()["pipe_share_max"] is None


def test_statistics_are_complete_when_the_pipes_were_told_of_after_the_connections() -> None:
    told = [pipe(0, 1, 1), conn(1, 1), conn(1, 1)]
    assert not complete(told, 2)
    assert complete([*told, pipe(0, 2, 2)], 2)
    assert not complete([*told, pipe(0, 2, 2)], 3)


def test_send_buffers_as_ss_tells_them() -> None:
    line = "\t skmem:(r0,rb131072,t0,tb500000,f0,w0,o0,bl0,d0) cubic wscale:7,7\n"
    assert buffers.send_buffers(line * 2) == [250_000, 250_000]


def test_what_iperf3_tells_of_both_ways() -> None:
    def half(suffix: str, mbps: float, seconds: float = 1.0) -> dict[str, Any]:
        return {f"sum{suffix}": {"bits_per_second": mbps * 1e6, "seconds": seconds}}

    end = {
        "sum_sent": {"bits_per_second": 2e6, "retransmits": 5},
        "sum_received": {"bits_per_second": 1e6},
        "sum_sent_bidir_reverse": {"bits_per_second": 9e6, "retransmits": 0},
        "sum_received_bidir_reverse": {"bits_per_second": 8e6},
    }
    client = {"end": end, "intervals": [{**half("", 3), **half("_bidir_reverse", 8)}]}
    report = {**client, "server_output_json": {"intervals": [half("", 1), half("", 16, 0.04)]}}
    found = iperf.parsed(report, "both")
    assert found["up"] == iperf.OneWay(1.0, 5, (1.0,)), "40 ms are no second"
    assert found["down"] == iperf.OneWay(8.0, 0, (8.0,))


def test_what_stands_is_read_from_what_the_kernel_says() -> None:
    """Of sockets that have nothing in flight there is no round trip to tell."""
    listing = (
        "0 0 10.0.9.2:7000 10.0.1.1:40000\n"
        "\t cubic wscale:7,7 rto:304 rtt:100.5/2 mss:1448 cwnd:50 unacked:30 rcv_space:14480\n"
        "0 0 10.0.9.2:7000 10.0.1.1:40001\n"
        "\t cubic rto:304 rtt:50.5/2 mss:1000 cwnd:10 unacked:10 minrtt:50\n"
        "\t cubic rto:304 rtt:900/2 mss:1448 cwnd:10 minrtt:50\n"
    )
    assert standing.of_sockets(listing) == (pytest.approx(0.0755), 30 * 1448 + 10_000)
    assert standing.of_sockets("\t cubic rtt:1/1 mss:1448 cwnd:10\n") is None


def test_what_stands_in_all_pipes_together() -> None:
    """Samples of one moment differ in their times by a little."""

    def pipe(number: int, time: float, rtt_ms: float, in_flight: int) -> dict[str, Any]:
        told = {"type": "pipe", "session": 1, "pipe": number, "time": time}
        return {**told, "rtt_ms": rtt_ms, "in_flight": in_flight}

    records = [pipe(0, 0.9, 500.0, 9), pipe(0, 1.0, 60.0, 1000), pipe(1, 1.0001, 80.0, 500)]
    records += [{"type": "aggregate", "time": 1.05}]
    records += [pipe(0, 1.1, 60.0, 0), pipe(1, 1.1002, 90.0, 700), pipe(0, 2.0, 500.0, 9)]
    found = standing.of_pipes(records, 0.95, 1.5)
    assert found == [(pytest.approx(0.07), 1500.0), (pytest.approx(0.09), 700.0)]
    assert standing.summary(found)["in_flight_bytes"] == 1100.0
    assert standing.summary([])["rtt_s"] is None


def test_yielding_is_told_from_a_moment_on() -> None:
    """One of three samples since then; those of before, and of pipes, do not count."""
    now, offset = time.monotonic(), time.time() - time.monotonic()
    states = [(-5.0, "yield"), (1.0, "bound"), (2.0, "yield"), (3.0, "free")]
    records = [
        {"type": "aggregate", "time": now + offset + at, "state": state} for at, state in states
    ]
    records.append({"type": "pipe", "time": now + offset + 2.0, "state": "yield"})
    assert yielding(records, now) == pytest.approx(1 / 3)
    assert yielding(records[-1:], now) is None
