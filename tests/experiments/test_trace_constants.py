# SPDX-License-Identifier: MIT
"""Each constant of the trace analyser, with one packet on either side of it."""

import math
from pathlib import Path

import pytest

from experiments.trace.bursts import DOWN, UP
from experiments.trace.findings import Kind, findings
from experiments.trace.flow import CONNECTIONS, PIPES, Ends
from experiments.trace.trace import Trace
from tests.experiments.captures import (
    CLIENT,
    SERVER,
    Connection,
    Frame,
    ethernet,
    traced,
    udp,
    whole,
)

MICRO = 1e-6


def only(trace: Trace) -> Kind:
    (kind,) = findings([trace]).kinds
    return kind


@pytest.mark.parametrize(("gap", "sessions"), [(60 - MICRO, 1), (60, 2)])
def test_sixty_seconds_end_a_session(tmp_path: Path, gap: float, sessions: int) -> None:
    it = Connection()
    trace = traced(tmp_path, [*it.opened(0), it.send(1, 10), it.get(1 + gap, 100)])
    assert len(trace.sessions) == sessions
    assert sum(each.payload[UP] for each in trace.sessions) == 10
    assert trace.sessions[-1].payload[DOWN] == 100
    assert trace.sessions[0].last_ns - trace.sessions[0].began_ns == (
        10**9 if sessions == 2 else round((1 + gap) * 10**6) * 1000
    )


def test_packets_without_data_keep_a_session(tmp_path: Path) -> None:
    it = Connection()
    trace = traced(tmp_path, [it.send(0, 10), it.get(40, 0), it.get(80, 10)])
    assert len(trace.sessions) == 1


@pytest.mark.parametrize(("gap", "bursts", "lasts"), [(1 - MICRO, 1, 1 - MICRO), (1, 2, 0)])
def test_one_second_ends_a_burst(tmp_path: Path, gap: float, bursts: int, lasts: float) -> None:
    it = Connection()
    trace = traced(tmp_path, [it.get(0, 100), it.get(gap, 200)])
    (flow,) = trace.flows()
    assert flow.bursts.count == [0, bursts]
    assert flow.bursts.bytes == [0, 300]
    assert flow.bursts.duration_ns[DOWN] == round(lasts * 1e6) * 1000


def test_an_acknowledgement_keeps_a_burst(tmp_path: Path) -> None:
    it = Connection()
    trace = traced(tmp_path, [it.get(0, 100), it.send(0.9, 0), it.get(1.8, 100)])
    (flow,) = trace.flows()
    assert flow.bursts.count == [0, 1]
    assert flow.bursts.duration_ns[DOWN] == 1_800_000_000


def test_data_the_other_way_ends_a_burst(tmp_path: Path) -> None:
    it = Connection()
    frames = [it.send(0, 10), it.send(0.1, 10), it.get(0.2, 50), it.get(0.5, 50), it.send(0.6, 10)]
    (flow,) = traced(tmp_path, frames).flows()
    assert flow.bursts.count == [2, 1]
    assert flow.bursts.bytes == [30, 100]
    assert flow.bursts.duration_ns == [100_000_000, 300_000_000]


@pytest.mark.parametrize(("last", "rates"), [(3.0, []), (3 + MICRO, [8e-6 * 4000 / (3 + MICRO)])])
def test_over_three_seconds_have_a_rate(tmp_path: Path, last: float, rates: list[float]) -> None:
    it = Connection()
    trace = traced(tmp_path, [it.get(at, 1000) for at in (0, 0.9, 1.8)] + _late(it, last))
    assert only(trace).rates(DOWN).values == pytest.approx(rates)
    assert not len(only(trace).rates(UP))


def _late(it: Connection, last: float) -> list[Frame]:
    """Acknowledged on the way, so that no second passes without a packet."""
    return [it.send(2.5, 0), it.get(last, 1000)]


@pytest.mark.parametrize(("at", "busy"), [(1 - MICRO, {2: 1}), (1, {1: 2})])
def test_slots_of_a_second(tmp_path: Path, at: float, busy: dict[int, int]) -> None:
    """Two flows, of which the second carries data at the end of the first slot or after it."""
    a, b = Connection(), Connection(port=40001)
    trace = traced(tmp_path, [a.send(0, 10), b.send(at, 10)])
    assert +trace.slots.busy[CONNECTIONS] == busy
    assert only(trace).concurrent() == (1 if at < 1 else 0)


def test_slots_begin_with_their_session_and_count_silence(tmp_path: Path) -> None:
    a, b = Connection(), Connection(port=40001)
    frames = [a.send(0.7, 10), b.send(1.6, 10), b.send(5.8, 10), a.get(5.9, 0)]
    frames += [a.send(100.3, 10), b.send(101.2, 10)]  # another session
    trace = traced(tmp_path, frames)
    # 0.7 to 1.7 has two flows, three silent, then one; of the second session one slot with two.
    assert +trace.slots.busy[CONNECTIONS] == {2: 2, 0: 4, 1: 1}
    assert only(trace).concurrent() == pytest.approx(2 / 7)


@pytest.mark.parametrize(("down", "slots"), [(4999, 1), (5000, 0)])
def test_five_kilobytes_down_leave_a_slot_out(tmp_path: Path, down: int, slots: int) -> None:
    it, other = Connection(), Connection(port=40001)
    frames = [it.send(0, 100), it.get(0.02, 0), it.send(0.03, 100), it.get(0.08, 0)]
    frames += [other.get(0.5, down)]
    found = only(traced(tmp_path, frames)).increases()
    assert found.values == pytest.approx([0.015] * slots)


def test_udp_counts_as_download(tmp_path: Path) -> None:
    it = Connection()
    quic = whole(0.5, ethernet(udp((SERVER, 443), (CLIENT, 50000), bytes(5000))))
    trace = traced(tmp_path, [it.send(0, 100), it.get(0.02, 0), quic])
    assert not len(only(trace).increases())
    assert trace.sessions[0].payload == [100, 5000]
    assert trace.udp_packets == 1


def test_increase_is_over_the_least_of_its_flow(tmp_path: Path) -> None:
    """Two flows of 20 and 100 ms; in the second slot both take 50 ms longer."""
    a, b = Connection(), Connection(port=40001)
    frames = [a.send(0, 10), a.get(0.02, 0), b.send(0.1, 10), b.get(0.2, 0)]
    frames += [a.send(1.0, 10), a.get(1.07, 0), b.send(1.1, 10), b.get(1.25, 0)]
    found = only(traced(tmp_path, frames)).increases()
    assert found.values == pytest.approx([0, 0.05])


def test_a_sample_belongs_to_the_slot_of_its_data(tmp_path: Path) -> None:
    it = Connection()
    frames = [it.send(0, 10), it.get(0.1, 0), it.send(0.9, 10), it.get(2.5, 0)]
    assert only(traced(tmp_path, frames)).increases().values == pytest.approx([0.75])


def test_handshake_is_timed_if_there_was_one_syn(tmp_path: Path) -> None:
    a, b = Connection(), Connection(port=40001)
    frames = [*a.opened(0, 0.03), b.syn(1), b.syn(2), b.syn_ack(2.03)]
    assert only(traced(tmp_path, frames)).handshakes().values == pytest.approx([0.03])


def test_what_was_sent_again_gives_no_sample(tmp_path: Path) -> None:
    """Karn's rule, and what was on its way behind the repaired packet; both numbers wrap."""
    it = Connection()
    frames = [it.send(0, 200), it.get(0.02, 0)]  # 20 ms
    frames += [it.send(1.0, 200), it.send(1.001, 200), it.send(1.002, 200)]
    frames += [it.get(1.02, 0, short=400)]  # the first of three: 20 ms
    frames += [it.send(1.3, 200, back=400)]  # the second once more
    frames += [it.get(1.32, 0)]  # it and the third: none
    frames += [it.send(2.0, 200), it.get(2.04, 0)]  # 40 ms
    (flow,) = traced(tmp_path, frames).flows()
    assert (flow.trips.count, flow.trips.again) == (3, 1)
    assert flow.trips.total_ns == 80_000_000
    assert flow.trips.least_ns == 20_000_000


def test_one_acknowledgement_is_that_of_all_it_covers(tmp_path: Path) -> None:
    it = Connection()
    (flow,) = traced(tmp_path, [it.send(0, 10), it.send(0.01, 10), it.get(0.04, 0)]).flows()
    assert (flow.trips.count, flow.trips.total_ns) == (2, 70_000_000)


def test_a_port_taken_again_is_another_connection(tmp_path: Path) -> None:
    first, second = Connection(), Connection(up=1000, down=2000)
    frames = [*first.opened(0), first.send(0.1, 10), *second.opened(1), second.send(1.1, 20)]
    trace = traced(tmp_path, [*frames, second.syn(1.2)])  # another number: a third
    assert [flow.payload[UP] for flow in trace.flows()] == [10, 20, 0]


def test_a_syn_sent_again_is_the_same_connection(tmp_path: Path) -> None:
    it = Connection()
    assert len(list(traced(tmp_path, [it.syn(0), it.syn(1), it.syn(3)]).flows())) == 1


def test_pipes_stand_beside_connections(tmp_path: Path) -> None:
    pipe, page = Connection(server_port=6010), Connection(port=40001, server_port=80)
    frames = [*pipe.opened(0), *page.opened(0), page.send(0.1, 10), pipe.send(0.1, 18)]
    found = findings([traced(tmp_path, frames, Ends(pipes=(6000, 6010)))])
    assert {kind.name: sum(it.payload[UP] for it in kind.flows) for kind in found.kinds} == {
        CONNECTIONS: 10,
        PIPES: 18,
    }


def test_a_time_that_goes_back_is_taken_as_the_last(tmp_path: Path) -> None:
    it = Connection()
    trace = traced(tmp_path, [it.send(5, 10), it.get(4, 0), it.send(5.5, 10)])
    (flow,) = trace.flows()
    assert trace.earlier == 1
    assert flow.trips.least_ns == 0
    assert len(trace.sessions) == 1


def test_quantiles_are_values_that_were_there() -> None:
    from experiments.trace.distribution import Distribution

    it = Distribution(range(100, 0, -1))
    assert [it.quantile(p) for p in (0, 1, 50, 99, 100)] == [1, 1, 50, 99, 100]
    assert math.isclose(it.mean(), 50.5)
