# SPDX-License-Identifier: MIT
"""mHTTP's decisions: which chunk is asked for, by toy paths in virtual time, and the reassembly."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.mhttp import serial
from experiments.workloads.mhttp.buffer import Buffer, Overlap
from experiments.workloads.mhttp.meter import NEW, TICK_S, Meter
from experiments.workloads.mhttp.plan import Plan, Range, chunks
from experiments.workloads.mhttp.scheduler import SCHEDULERS, View
from experiments.workloads.mhttp.transfer import Transfer
from tests.experiments.mhttp_toy import MIB, Known, Path, run

KIB = 1 << 10
UNEQUAL = (Path(20, 50), Path(2, 50))
ALIKE = (Path(100, 50), Path(100, 50))
ALONE_S = 16 * MIB * 8 / 20e6  # the better of the unequal ones


@pytest.mark.parametrize(
    ("policy", "chunk", "seconds", "peak_mib"),
    [
        ("next", 512 * KIB, 8.90, 3.5),
        ("T", 512 * KIB, 7.53, 0.5),
        ("next", 1024 * KIB, 9.01, 8),
        ("T", 1024 * KIB, 7.04, 1),
    ],
)
def test_toy_figures(policy: str, chunk: int, seconds: float, peak_mib: float) -> None:
    """16 MiB at 20 and 2 Mbit/s. The faster path alone takes less: T loses to it."""
    found = run(UNEQUAL, policy, chunk)
    assert round(found.seconds, 2) == seconds
    assert found.peak_mib == peak_mib
    assert found.seconds > ALONE_S
    assert round(ALONE_S, 2) == 6.71


@pytest.mark.parametrize("chunk", [512 * KIB, 1024 * KIB])
def test_toy_paths_that_are_alike(chunk: int) -> None:
    assert run(ALIKE, "T", chunk) == run(ALIKE, "next", chunk)


@pytest.mark.parametrize("chunk", [256 * KIB, 512 * KIB, 1024 * KIB, 2048 * KIB])
def test_a_chunk_asked_for_after_the_last_costs_a_round_trip(chunk: int) -> None:
    """+238, 119, 60 and 30 % at 100 Mbit/s and 50 ms, over one path."""
    more = {256: 238, 512: 119, 1024: 60, 2048: 30}[chunk // KIB]
    alone_s = 64 * MIB * 8 / 100e6
    found = run(ALIKE[:1], "next", chunk, 64 * MIB)
    assert 100 * (found.seconds / alone_s - 1) == pytest.approx(more, abs=1)


@pytest.mark.parametrize("chunk", [512 * KIB, 1000 * KIB])
@pytest.mark.parametrize("paths", [UNEQUAL, ALIKE, (Path(100, 10), Path(100, 50)), ALIKE[:1]])
def test_what_serial_requests_allow_is_the_toy_s_time(paths: tuple[Path, ...], chunk: int) -> None:
    """But for the handshake of the first path."""
    served = [serial.Served(it.rate, it.rtt_s) for it in paths]
    allowed = serial.seconds(served, chunk, 16 * MIB) - paths[0].rtt_s
    assert allowed == pytest.approx(run(paths, "next", chunk).seconds)


def test_toy_ahead_takes_nine_tenths_of_both_paths() -> None:
    found = run(ALIKE, "ahead", MIB, 64 * MIB, piece=16 * KIB)
    assert found.seconds < 64 * MIB * 8 / 200e6 / 0.9
    assert found.seconds < 0.8 * run(ALIKE, "next", MIB, 64 * MIB).seconds


@pytest.mark.parametrize("slow_mbps", [0.2, 1, 2, 5, 20])
@pytest.mark.parametrize("chunk", [256 * KIB, 512 * KIB, 1024 * KIB])
def test_toy_deadline_does_not_lose_to_the_better_path(slow_mbps: float, chunk: int) -> None:
    found = run((Path(20, 50), Path(slow_mbps, 50)), "deadline", chunk, piece=4 * KIB)
    assert found.seconds <= 1.03 * ALONE_S
    assert found.seconds >= 16 * MIB * 8 / (20e6 + slow_mbps * 1e6)


def view(mbps: float, left: int = 0, rtt_s: float = 0.05) -> View:
    return View(mbps * 1e6 / 8, mbps * 1e6 / 8, rtt_s, left)


@pytest.mark.parametrize(
    ("own", "others", "waiting", "index"),
    [
        (view(10), [view(10, left=1)], 3, 0),
        (view(10), [view(19, left=1)], 3, 0),
        (view(10), [view(20, left=1)], 3, 1),
        (view(10), [view(39, left=1)], 3, 2),
        (view(10), [view(40, left=1)], 3, None),  # T exceeds what is left
        (View(1.3, 1.3, 0.05, 0), [View(3.9, 3.9, 0.05, 1)], 2, None),  # 3.9 < 3 * 1.3 in binary
        (view(10), [view(40)], 3, 0),  # nobody else is at work
        (view(40), [view(10, left=1)], 3, 0),
        (view(0), [view(10, left=1)], 3, 0),  # nothing measured yet
        (View(0.0, 1e6, 0.05, 0), [view(10, left=1)], 3, None),  # idle for long
        (View(0.0, 1e6, 0.05, 0), [view(10)], 3, 0),  # and now nobody else is at work
        (View(0.0, 1e6, 0.05, 0), [], 1, 0),
        (View(0.0, 1e6, 0.05, 0), [View(0.0, 1e6, 0.05, 1)], 3, 0),  # at work, nothing came yet
        (View(0.0, 1e6, 0.05, 0), [], 0, None),
        (view(10), [], 0, None),
    ],
)
def test_t(own: View, others: list[View], waiting: int, index: int | None) -> None:
    assert SCHEDULERS["T"].choose(own, others, [MIB] * waiting) == index


@pytest.mark.parametrize("policy", SCHEDULERS)
@pytest.mark.parametrize("idle_s", [1, 10, 60])
def test_a_chunk_that_comes_back_goes_to_a_connection_that_was_idle_for_long(
    policy: str, idle_s: float
) -> None:
    """The other one trickles the last chunk meanwhile, and is lost."""
    transfer = Transfer(20_000, 10_000, SCHEDULERS[policy])
    transfer.join(0, 0.01)
    transfer.join(1, 0.01)
    transfer.ask_first(0)
    assert transfer.ask(1) == Range(10_000, 20_000)
    transfer.came(0, bytes(10_000))
    for _ in range(round(idle_s / TICK_S)):
        transfer.came(1, bytes(1))
        transfer.tick()
        assert transfer.ask(0) is None
    transfer.lost(1)
    assert transfer.ask(0) == Range(10_000 + round(idle_s / TICK_S), 20_000)


def test_next_and_ahead_take_the_first() -> None:
    for name in ("next", "ahead"):
        assert SCHEDULERS[name].choose(view(1), [view(50, left=1)], [5, 6]) == 0
        assert SCHEDULERS[name].choose(view(1), [], []) is None


def test_ahead_asks_a_round_trip_before_the_last_ends() -> None:
    """At 8 Mbit/s and 50 ms these are 50,000 bytes."""
    assert SCHEDULERS["ahead"].wants(view(8, left=50_000))
    assert not SCHEDULERS["ahead"].wants(view(8, left=50_001))
    assert not SCHEDULERS["next"].wants(view(8, left=1))
    assert not SCHEDULERS["T"].wants(view(8, left=1))
    assert SCHEDULERS["T"].wants(view(8))


def test_deadline_leaves_to_others_what_they_deliver_sooner() -> None:
    """A chunk takes 1 s here; 0.1 s there, so ten go there in that time."""
    size = 1_000_000
    choose = SCHEDULERS["deadline"].choose
    own, other = view(8, rtt_s=0.0), view(80, left=1, rtt_s=0.0)
    assert choose(own, [other], [size] * 9) is None
    assert choose(own, [other], [size] * 12) == 9
    assert choose(own, [], [size] * 3) == 0
    assert choose(View(0.0, 0.0, 0.05, 0), [other], [size] * 3) == 0
    assert choose(other, [own], [size] * 3) == 0


@pytest.mark.parametrize(
    ("length", "chunk", "count"), [(0, 5, 0), (1, 5, 1), (5, 5, 1), (6, 5, 2), (10, 5, 2)]
)
def test_the_number_of_chunks_is_rounded_up(length: int, chunk: int, count: int) -> None:
    found = chunks(length, chunk)
    assert len(found) == count
    assert sum(it.size for it in found) == length
    assert all(a.end == b.start for a, b in itertools.pairwise(found))


def test_a_chunk_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a chunk of 0 bytes"):
        chunks(5, 0)


def test_what_is_given_back_is_in_its_place() -> None:
    plan = Plan(30, 10)
    first = plan.take(0)
    assert first.field() == "bytes=0-9"
    plan.take(0)
    plan.give_back(Range(4, 10))
    assert plan.waiting == [Range(4, 10), Range(20, 30)]


def test_the_published_estimate() -> None:
    meter = Meter()
    meter.came(1000)
    meter.tick(busy=True)
    assert meter.thr == pytest.approx(NEW * 1000 / TICK_S)
    meter.tick(busy=False)
    assert meter.thr == pytest.approx((1 - NEW) * NEW * 1000 / TICK_S)
    assert meter.rate == pytest.approx(1000 / TICK_S), "an idle connection keeps it"


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_reassembly(sizes: list[int], order: random.Random) -> None:
    """All bytes in their order, and none is held that could leave."""
    content = bytes(i % 251 for i in range(sum(sizes)))
    pieces, start = [], 0
    for size in sizes:
        pieces.append((start, content[start : start + size]))
        start += size
    order.shuffle(pieces)
    buffer, out, seen = Buffer(), b"", set()
    for start, data in pieces:
        out += b"".join(buffer.put(start, data))
        seen |= set(range(start, start + len(data)))
        whole = next((i for i in range(len(content)) if i not in seen), len(content))
        assert len(out) == whole == buffer.front
        assert buffer.held == len(seen) - whole
    assert out == content
    assert buffer.peak >= buffer.held == 0
    with pytest.raises(Overlap, match="byte 0 came twice"):
        buffer.put(0, b"x")


@settings(deadline=None)
@given(
    st.sampled_from(sorted(SCHEDULERS)),
    st.integers(1, 400),
    st.integers(1, 60),
    st.integers(0, 100),
    st.randoms(use_true_random=False),
)
def test_each_byte_is_asked_for_and_leaves_once(
    policy: str, length: int, chunk: int, most_held: int, chance: random.Random
) -> None:
    """Whatever comes when, whoever is lost and comes again."""
    content = chance.randbytes(length)
    transfer = Transfer(length, chunk, SCHEDULERS[policy], most_held)
    out = b""
    transfer.join(0, 0.01, Known(chance.choice([1e3, 1e4])))
    for step in range(50 * length + 1000):
        if transfer.whole:
            break
        for number in list(transfer.lanes):
            while transfer.ask(number):
                pass
        covered = [it for lane in transfer.lanes.values() for it in lane.asked]
        covered += transfer.plan.waiting
        starts = {at for it in covered for at in range(it.start, it.end)}
        assert len(starts) == sum(it.size for it in covered), "asked for twice"
        busy = [key for key, lane in transfer.lanes.items() if lane.asked]
        assert busy, "somebody is always at work"
        number = chance.choice(busy)
        what = chance.random()
        if what < 0.1 and step < 20 * length:
            transfer.lost(number)
            transfer.join(number, 0.01, Known(chance.choice([1e3, 1e4])))
        elif what < 0.2 and len(transfer.lanes) < 3:
            transfer.join(len(transfer.lanes), 0.02, Known(chance.choice([1e2, 1e4])))
        else:
            part = transfer.lanes[number].asked[0]
            end = chance.randint(part.start + 1, part.end)
            out += b"".join(transfer.came(number, content[part.start : end]))
        transfer.tick()
    assert transfer.whole and out == content


def test_with_too_much_in_the_buffer_only_its_gap_is_asked_for() -> None:
    transfer = Transfer(40, 10, SCHEDULERS["next"], most_held=9)
    for number in range(2):
        transfer.join(number, 0.01)
        assert transfer.ask(number) == Range(10 * number, 10 * number + 10)
    transfer.came(1, bytes(10))
    assert transfer.ask(1) is None
    transfer.lost(0)
    assert transfer.ask(1) == Range(0, 10)
    transfer.came(1, bytes(10))
    assert transfer.ask(1) == Range(20, 30)
