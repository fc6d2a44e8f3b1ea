# SPDX-License-Identifier: MIT
"""The oracle's simulator: worked examples, what every schedule obeys, and a linear program.

The program knows neither policies nor formulas: it is asked how many bytes paths can deliver by
given deadlines.
"""

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.oracle import fluid, omniscient, optimum
from experiments.oracle.fluid import Message, Outcome, simulate
from experiments.oracle.path import OracleError, Path
from experiments.oracle.policies import CONNECTION_POLICIES

SMALL = [Path("near", 200e3, 0.005), Path("far", 500e3, 0.010)]
TWO = [Message(900), Message(800)]
POLICIES = ("minrtt", "rr", "txdelay", "ecf", "one", "copies", "soonest")
ALL = list(itertools.product(CONNECTION_POLICIES, POLICIES))

PATHS = st.lists(st.tuples(st.integers(10, 2000), st.integers(0, 300)), min_size=1, max_size=4).map(
    lambda all_: [Path(f"p{i}", rate * 1e3, ms / 1e3) for i, (rate, ms) in enumerate(all_)]
)
SIZES = st.integers(1, 300_000)
BATCHES = st.lists(SIZES.map(Message), min_size=1, max_size=6)
STREAMS = st.lists(
    st.builds(Message, SIZES, st.integers(0, 400).map(lambda ms: ms / 1e3)), min_size=1, max_size=5
)


def milliseconds(outcome: Outcome) -> list[float]:
    return [it * 1e3 for it in outcome.completions]


def test_srpt_ecf_of_two_messages() -> None:
    got = simulate(SMALL, TWO, "srpt", "ecf")
    assert milliseconds(got) == pytest.approx([11, 9])
    assert got.ends == pytest.approx({"near": 0.011, "far": 0.011})
    assert [(it.message, it.path) for it in got.pieces if it.path == "far"] == [(0, "far")]
    assert [it.size for it in got.pieces if it.path == "far"] == pytest.approx([500])


def test_sa_ecf_of_two_messages() -> None:
    got = simulate(SMALL, TWO, "rr", "ecf", quantum=150)
    assert milliseconds(got) == pytest.approx([11, 11.25])
    assert sum(it.size for it in got.pieces if it.path == "far") == pytest.approx(450)


def test_one_message_ends_everywhere_at_once_by_the_rule_only() -> None:
    one = [Message(10e3)]
    ruled = simulate(SMALL, one, "fcfs", "ecf")
    assert milliseconds(ruled) == pytest.approx([22.857], abs=5e-4)
    assert [it.end for it in ruled.pieces if it.path == "far"] == pytest.approx(
        [0.012857], abs=5e-7
    )
    taken = simulate(SMALL, one, "fcfs", "minrtt")
    assert taken.completions == pytest.approx([10 / 700 + 0.010])
    assert taken.ends["far"] - taken.ends["near"] == pytest.approx(0.005)
    assert simulate(SMALL, one, "fcfs", "soonest").completions == taken.completions


def test_what_dealing_policies_do_to_one_message() -> None:
    def took(policy: str) -> list[float]:
        return milliseconds(simulate(SMALL, [Message(10e3)], "fcfs", policy))

    assert took("one") == took("one:near") == pytest.approx([5 + 50])
    assert took("one:far") == took("copies") == pytest.approx([10 + 20])
    assert took("rr") == pytest.approx([5 + 25])
    assert took("split:40") == pytest.approx([5 + 20])
    assert took("split:0") == took("one:far")
    assert took("split:100") == took("one:near")
    best = 100 * optimum.shares(SMALL, 10e3)["near"] / 10e3
    assert took(f"split:{best}") == pytest.approx([22.857], abs=5e-4)
    # Round trips are 10 and 20 ms: the near path has 2000 bytes more than its share.
    assert took("txdelay") == pytest.approx([5 + (2000 + 8000 * 2 / 7) / 200])


def test_txdelay_is_the_rule_where_a_round_trip_is_a_delay() -> None:
    alike = [Path(it.name, it.rate, it.delay, own_rtt=it.delay) for it in SMALL]
    got = simulate(alike, [Message(10e3)], "fcfs", "txdelay")
    assert milliseconds(got) == pytest.approx([22.857], abs=5e-4)


def test_a_small_message_goes_before_what_a_large_one_has_left() -> None:
    """The large one leaves the near path, and takes the far one again: more is ahead of its end."""
    both = [Message(3000), Message(900, 0.003)]
    got = simulate(SMALL, both, "srpt", "ecf")
    assert got.times[1] == pytest.approx(0.005 + 900 / 200e3)
    alone = simulate(SMALL, both[:1], "srpt", "ecf")
    assert [it.end for it in alone.pieces if it.path == "far"] == pytest.approx([2 / 700])
    again = [it for it in got.pieces if it.path == "far"]
    assert [it.start for it in again] == pytest.approx([0, 0.003])
    first = simulate(SMALL, both, "fcfs", "ecf")
    assert first.completions[0] == pytest.approx(alone.completions[0])
    assert first.times[1] > got.times[1]


def test_what_is_in_flight_counts_for_the_order() -> None:
    """At 3.9 ms the 900 have 400 bytes left, 7 ms alone; but far ones arrive in 7.1 ms."""
    got = simulate(SMALL, [*TWO, Message(410, 0.0039)], "srpt", "ecf")  # 7.05 ms alone
    assert milliseconds(got) == pytest.approx([13.05, 9, 11.05])


@given(PATHS, STREAMS, st.sampled_from(ALL), st.integers(100, 20_000))
@settings(max_examples=300, deadline=None)
def test_every_schedule_is_one(
    paths: list[Path], messages: list[Message], policies: tuple[str, str], quantum: int
) -> None:
    """All bytes are sent, none before its message is there, none while the path is busy."""
    got = simulate(paths, messages, *policies, quantum)
    by_path: dict[str, list[fluid.Piece]] = {it.name: [] for it in paths}
    for piece in got.pieces:
        by_path[piece.path].append(piece)
        assert piece.start >= messages[piece.message].arrival
    for path in paths:
        pieces = sorted(by_path[path.name], key=lambda it: it.start)
        for one, other in itertools.pairwise(pieces):
            assert one.end <= other.start + 1e-12
        for it in pieces:
            assert it.size == pytest.approx(path.rate * (it.end - it.start), rel=1e-6, abs=1e-3)
        last = max((it.end + path.delay for it in pieces), default=0)
        assert got.ends[path.name] == pytest.approx(last)
    copies = len(paths) if policies[1] == "copies" else 1
    for i, message in enumerate(messages):
        sent = sum(it.size for it in got.pieces if it.message == i)
        assert sent == pytest.approx(copies * message.size, rel=1e-6, abs=1e-3)
        assert got.times[i] >= optimum.completion(paths, message.size) * (1 - 1e-9)


@given(PATHS, BATCHES, st.sampled_from(ALL), st.integers(100, 20_000))
@settings(max_examples=300, deadline=None)
def test_srpt_ecf_is_never_later_than_another_policy(
    paths: list[Path], messages: list[Message], policies: tuple[str, str], quantum: int
) -> None:
    """Of messages that are there at once: the first complete, the second, and so on."""
    best = sorted(simulate(paths, messages, "srpt", "ecf").completions)
    other = sorted(simulate(paths, messages, *policies, quantum).completions)
    for ours, theirs in zip(best, other, strict=True):
        assert ours <= theirs * (1 + 1e-9) + 1e-9
    sizes = itertools.accumulate(sorted(it.size for it in messages))
    assert best == pytest.approx([optimum.completion(paths, it) for it in sizes], rel=1e-8)


def deliverable(
    paths: Sequence[Path], messages: Sequence[Message], deadlines: Sequence[float]
) -> float:
    """The most bytes that paths can deliver, each message's by its deadline: a linear program.

    An unknown is a message's bytes on a path between two moments at which something may change.
    """
    from scipy.optimize import linprog  # here: each worker reads this file

    columns: list[tuple[int, tuple[int, float]]] = []
    room: dict[tuple[int, float], float] = {}
    for p, path in enumerate(paths):
        moments = {it.arrival for it in messages} | {it - path.delay for it in deadlines}
        for start, end in itertools.pairwise(sorted(moments)):
            room[p, start] = path.rate * (end - start)
            for m, message in enumerate(messages):
                if message.arrival <= start and end <= deadlines[m] - path.delay:
                    columns.append((m, (p, start)))
    if not columns:
        return 0.0
    rows = list(room)
    bounds = np.zeros((len(rows) + len(messages), len(columns)))
    for c, (m, place) in enumerate(columns):
        bounds[rows.index(place), c] = bounds[len(rows) + m, c] = 1
    limits = [*room.values(), *(it.size for it in messages)]
    solved = linprog(-np.ones(len(columns)), A_ub=bounds, b_ub=limits, method="highs")
    assert solved.status == 0, solved.message
    return -solved.fun


@given(PATHS, STREAMS, st.sampled_from(ALL), st.integers(100, 20_000))
@settings(max_examples=100, deadline=None)
def test_what_the_simulator_delivers_can_be_delivered(
    paths: list[Path], messages: list[Message], policies: tuple[str, str], quantum: int
) -> None:
    got = simulate(paths, messages, *policies, quantum)
    total = sum(it.size for it in messages)
    latest = [it + 1e-9 for it in got.completions]
    assert deliverable(paths, messages, latest) == pytest.approx(total, rel=1e-5)


@given(PATHS, BATCHES)
@settings(max_examples=100, deadline=None)
def test_a_linear_program_delivers_no_batch_sooner(
    paths: list[Path], messages: list[Message]
) -> None:
    """By the k-th completion of SRPT-ECF k messages fit; a thousandth of the time earlier, not."""
    best = sorted(simulate(paths, messages, "srpt", "ecf").completions)
    smallest = sorted(messages, key=lambda it: it.size)
    for k, last in enumerate(best, 1):
        some = smallest[:k]
        total = sum(it.size for it in some)
        assert deliverable(paths, some, [last + 1e-9] * k) == pytest.approx(total, rel=1e-5)
        less = deliverable(paths, some, [last * 0.999] * k)
        nearest = min(paths, key=lambda it: it.delay)
        assert less <= max(0.0, total - 0.9e-3 * nearest.rate * last)


@given(PATHS, st.lists(SIZES.map(Message), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_nothing_is_gained_by_knowing_a_batch_that_is_there(
    paths: list[Path], messages: list[Message]
) -> None:
    known, _ = omniscient.solve(paths, messages)
    ours = simulate(paths, messages, "srpt", "ecf")
    assert sorted(known) == pytest.approx(sorted(ours.completions), rel=1e-6)


@given(PATHS, STREAMS)
@settings(max_examples=100, deadline=None)
def test_what_the_omniscient_does_can_be_done(paths: list[Path], messages: list[Message]) -> None:
    known, order = omniscient.solve(paths, messages)
    assert sorted(order) == list(range(len(messages)))
    total = sum(it.size for it in messages)
    assert deliverable(paths, messages, [it + 1e-9 for it in known]) == pytest.approx(
        total, rel=1e-5
    )
    first = order[0]
    alone = messages[first].arrival + optimum.completion(paths, messages[first].size)
    assert known[first] == pytest.approx(alone)


def test_knowing_what_will_come_helps() -> None:
    """The large message sends more on the far path in time, where alone it would have stopped."""
    messages = [Message(3000), Message(900, 0.003)]
    known, order = omniscient.solve(SMALL, messages)
    ours = simulate(SMALL, messages, "srpt", "ecf")
    assert order == [1, 0]
    assert known[1] == pytest.approx(ours.completions[1])
    # 3900 bytes, the far path never at rest.
    assert known[0] == pytest.approx(0.010 + (3900 - 1000) / 700e3)
    assert known[0] < ours.completions[0]


def test_no_policy_beats_who_knows_what_will_come() -> None:
    """Not proven, so the instances are drawn once and for all."""
    draw = random.Random(3)
    for _ in range(60):
        paths = [
            Path(f"p{i}", draw.randint(10, 2000) * 1e3, draw.randint(0, 300) / 1e3)
            for i in range(draw.randint(1, 3))
        ]
        messages = [
            Message(draw.randint(1, 300_000), draw.randint(0, 400) / 1e3)
            for _ in range(draw.randint(2, 4))
        ]
        known, _ = omniscient.solve(paths, messages)
        mean = sum(known) / len(known) - sum(it.arrival for it in messages) / len(messages)
        for policies in ALL:
            assert mean <= simulate(paths, messages, *policies).mean * (1 + 1e-9)


@pytest.mark.parametrize(
    ("connection", "path", "told"),
    [
        ("lifo", "ecf", "connection policy lifo: none of fcfs, rr, srpt"),
        ("fcfs", "best", "path policy best: none of"),
        ("fcfs", "ecf:2", "path policy ecf:2: none of"),
        ("fcfs", "one:lte", "there is no path lte"),
        ("fcfs", "split:101", "101 is not from 0 to 100"),
        ("fcfs", "split:-1", "-1 is not from 0 to 100"),
        ("fcfs", "split:nan", "nan is not from 0 to 100"),
        ("fcfs", "split:half", "'half' is no number"),
        ("fcfs", "split", "'' is no number"),
    ],
)
def test_policies_that_are_none(connection: str, path: str, told: str) -> None:
    with pytest.raises(OracleError, match=told):
        simulate(SMALL, TWO, connection, path)


def test_questions_without_an_answer() -> None:
    with pytest.raises(OracleError, match="8 messages: at most 7"):
        omniscient.solve(SMALL, [Message(1)] * 8)
    with pytest.raises(OracleError, match="a size of 0 bytes"):
        simulate(SMALL, [Message(0)])
    with pytest.raises(OracleError, match="an arrival at -1 s"):
        simulate(SMALL, [Message(1, -1)])
    with pytest.raises(OracleError, match="a split needs two paths, not 1"):
        simulate(SMALL[:1], TWO, "fcfs", "split:50")
    with pytest.raises(OracleError, match="2000000 turns"):
        simulate(SMALL, [Message(2e9)], "rr", "ecf", quantum=1000)
    with pytest.raises(OracleError, match="8 paths"):
        simulate([Path(str(i), 1, 0) for i in range(8)], TWO)
