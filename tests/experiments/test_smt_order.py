# SPDX-License-Identifier: MIT
"""SMT's ordering: the graph, the rounds, what the receiver delivers, and when."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.smt.audit import Audit
from experiments.workloads.smt.dictionary import Dictionary
from experiments.workloads.smt.failure import BadInput, BadMessage
from experiments.workloads.smt.graph import Graph
from experiments.workloads.smt.header import BITS, ROUNDS, Header
from experiments.workloads.smt.hooks import Hooks
from experiments.workloads.smt.numbering import Numbering
from experiments.workloads.smt.order import Message, Order
from tests.experiments.smt_checker import Sent, behind, deliverable

# As Figure 3.4 of the thesis, as far as its text tells; the letters are the messages in order.
LETTERS = "ABCDEFGHIJK"
FIGURE = {"B": "A", "D": "B", "E": "A", "F": "C", "G": "DE", "I": "E", "J": "EFH", "K": "HI"}


def lettered() -> Graph:
    graph = Graph()
    for letter in LETTERS:
        graph.add(LETTERS.index(it) for it in FIGURE.get(letter, ""))
    return graph


def deliver_all(order: Order, ready: list[Message]) -> list[Message]:
    """By an application that takes each message at once."""
    delivered = []
    while ready:
        message = ready.pop(0)
        delivered.append(message)
        ready += order.deliver(message)
    return delivered


def test_closure_of_g() -> None:
    assert [LETTERS[it] for it in lettered().closure(LETTERS.index("G"))] == list("ABDEG")


def test_closure_without_what_was_sent() -> None:
    sent = {LETTERS.index(it) for it in "AD"}
    found = lettered().closure(LETTERS.index("G"), without=sent.__contains__)
    assert [LETTERS[it] for it in found] == list("EG")


def test_reduction_keeps_what_nothing_else_implies() -> None:
    graph = lettered()
    assert [LETTERS[it] for it in graph.needs(LETTERS.index("J"))] == list("EFH")
    more = graph.add(LETTERS.index(it) for it in "ABDEFGJ")
    assert [LETTERS[it] for it in graph.needs(more)] == list("GJ")


@pytest.mark.parametrize("wrong", [3, 4, -1])
def test_a_forward_dependency_is_refused(wrong: int) -> None:
    graph = Graph()
    for _ in range(3):
        graph.add(())
    with pytest.raises(BadInput, match=f"forward dependency: message 3 depends on message {wrong}"):
        graph.add([0, wrong])
    assert len(graph) == 3


def test_delivery_of_the_published_order() -> None:
    """A, D, B, C, J, F, G, H, E, I, K come; H wakes nobody."""
    graph, numbering, order = lettered(), Numbering(), Order()
    headers = [numbering.header(it, graph.needs(it), 1, 0) for it in range(len(LETTERS))]
    out, woken = "", {}
    for letter in "ADBCJFGHEIK":
        before = order.hooks.woken
        ready = order.came(Message(headers[LETTERS.index(letter)], letter.encode()))
        out += "".join(it.payload.decode() for it in deliver_all(order, ready))
        woken[letter] = order.hooks.woken - before
    assert out == "ABDCFHEGJIK"
    assert woken["H"] == 0
    assert woken["E"] == 2
    assert woken["B"] == 1


def test_who_hung_is_woken_in_ascending_order() -> None:
    hooks = Hooks()
    for it in (9, 3, 7):
        hooks.hang(it, 1)
    hooks.hang(4, 2)
    assert len(hooks) == 4
    assert hooks.wake(1) == [3, 7, 9]
    assert hooks.wake(1) == []
    assert len(hooks) == 1


def test_delta() -> None:
    numbering = Numbering()
    for it in range(101_000):
        numbering.header(it, (), 1, 0)
    found = numbering.header(101_000, [100_000], 1, 0)
    assert found.number == 101_000
    assert found.deltas == (1000,)
    assert found.needs == (100_000,)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_dependency_too_far_back_begins_a_round(count: int) -> None:
    bits = tuple(min(it, 12) for it in BITS)  # one of 2^30 - 1 messages back takes a while
    for back, rounds in ((2 ** bits[count] - 1, 0), (2 ** bits[count], 1)):
        numbering = Numbering(bits)
        for it in range(back):
            numbering.header(it, (), 1, 0)
        needs = [0, back - 1, back - 2][:count]
        found = numbering.header(back, needs, 1, 0)
        assert numbering.round == found.round == rounds
        if rounds:
            assert (found.number, found.termination, found.deltas) == (0, back - 1, ())
        else:
            assert len(found.deltas) == count
            assert max(found.deltas) == back


def test_a_fourth_dependency_begins_a_round() -> None:
    numbering = Numbering()
    for it in range(4):
        assert numbering.header(it, (), 1, 0).termination is None
    assert numbering.header(4, [0, 1, 2], 1, 0).deltas == (4, 3, 2)
    assert numbering.header(5, [0, 1, 2, 3], 1, 0) == Header(1, 1, 0, termination=4)
    assert numbering.header(6, [0, 1, 2, 3, 5], 1, 0) == Header(1, 1, 1, deltas=(1,))
    assert numbering.header(7, [4], 1, 0) == Header(1, 1, 2, termination=4), "of the round before"


def test_used_up_numbers_begin_a_round() -> None:
    numbering = Numbering(numbers=3)
    found = [numbering.header(it, [it - 1] if it else [], 1, 0) for it in range(7)]
    assert [(it.round, it.number) for it in found] == [
        (at // 3, at % 3) for at in range(len(found))
    ]
    assert [it.termination for it in found] == [None, None, None, 2, None, None, 2]


def test_rounds_are_counted_modulo() -> None:
    numbering, order = Numbering(numbers=1), Order()
    for it in range(ROUNDS + 3):
        message = Message(numbering.header(it, (), 1, 0), b"")
        assert order.is_new(message.header)
        assert deliver_all(order, order.came(message)) == [message]
        assert not order.is_new(message.header)
    assert order.round == 2


def test_a_dictionary_has_bits_up_to_its_width_and_ranges_beyond() -> None:
    found = Dictionary(8)
    for it in (0, 1, 2, *range(4, 8), *range(10, 16), 20, 24, 25):
        found.insert(it)
    assert found.smallest == 3
    assert found.bits() == "11110011"
    assert found.intervals() == [(12, 15), (20, 20), (24, 25)]
    assert found.is_full_range(3) and not found.is_full_range(4)
    found.insert(3)
    assert found.smallest == 8
    found.clear()
    assert (found.smallest, found.bits(), found.intervals()) == (0, "00000000", [])


@settings(deadline=None)
@given(st.lists(st.integers(0, 80)), st.integers(1, 9))
def test_dictionary_is_a_set(numbers: list[int], width: int) -> None:
    found, known = Dictionary(width), set()
    for number in numbers:
        found.insert(number)
        known.add(number)
        assert found.smallest == next(it for it in range(99) if it not in known)
        assert {it for it in range(99) if it in found} == known
        ranges = found.intervals()
        assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(ranges))
        assert all(first > found.smallest + width for first, _ in ranges)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(1, 24))
    return [
        draw(st.lists(st.integers(0, it - 1), unique=True, max_size=6)) if it else []
        for it in range(count)
    ]


@settings(deadline=None)
@given(graphs())
def test_reduction_and_closure(wanted: list[list[int]]) -> None:
    graph = Graph()
    for needs in wanted:
        graph.add(needs)
    reduced = [graph.needs(it) for it in range(len(graph))]
    for it in range(len(graph)):
        assert behind(reduced, it) == behind(wanted, it), "it orders the same messages"
        assert set(reduced[it]) <= set(wanted[it])
        for need in reduced[it]:
            others = set().union(*(behind(wanted, other) for other in reduced[it]))
            assert need not in others, "nothing that another one implies"
        assert graph.closure(it) == sorted(behind(wanted, it) | {it})


@settings(deadline=None, max_examples=150)
@given(graphs(), st.randoms(use_true_random=False), st.integers(1, 4), st.integers(3, 40))
def test_never_before_a_dependency_and_never_later(
    wanted: list[list[int]], chance: random.Random, bits: int, numbers: int
) -> None:
    """Messages leave in any valid order, come in any order and more than once; few bits and numbers
    make many rounds. After each arrival exactly that is delivered which may be."""
    graph, numbering, order = Graph(), Numbering((0, bits + 4, bits + 1, bits), numbers), Order()
    for needs in wanted:
        graph.add(needs)
    headers: dict[int, Header] = {}
    rounds: dict[int, Sent] = {}
    while len(headers) < len(graph):
        free = [it for it in range(len(graph)) if set(wanted[it]) <= headers.keys() - {it}]
        it = chance.choice([it for it in free if it not in headers])
        headers[it] = numbering.header(it, graph.needs(it), 1, 0)
        rounds[it] = Sent(numbering.round, headers[it].termination is not None)
    arrivals = list(headers) + chance.choices(list(headers), k=5)
    chance.shuffle(arrivals)
    came: set[int] = set()
    delivered: list[int] = []
    for it in arrivals:
        assert order.is_new(headers[it]) == (it not in came)
        if it in came:
            continue
        came.add(it)
        could = order.is_ready(headers[it])
        ready = order.came(Message(headers[it], bytes([it])))
        now = [message.payload[0] for message in deliver_all(order, ready)]
        assert could == (it in now)
        for message in now:
            assert set(wanted[message]) <= set(delivered)
            delivered.append(message)
        assert len(set(delivered)) == len(delivered)
        assert set(delivered) == deliverable(wanted, rounds, came)
    assert len(delivered) == len(graph)
    assert len(order.hooks) == 0


def test_a_round_begins_with_its_smallest_number() -> None:
    """Of what came before the round could begin."""
    order = Order()
    for number in (2, 0, 1):
        assert order.came(Message(Header(1, 1, number, termination=0), b"")) == []
    first = Message(Header(1, 0, 0), b"")
    found = deliver_all(order, order.came(first))
    assert [it.header.number for it in found] == [0, 0, 1, 2]


def test_an_audit() -> None:
    """Of messages that come in time, too late, and never."""

    def late(*steps: tuple[str, Header]) -> int:
        audit = Audit()
        for what, header in steps:
            getattr(audit, what)(header)
        return audit.late()

    first, second = Header(1, 0, 0), Header(1, 0, 1, deltas=(1,))
    third, reset = Header(1, 0, 2), Header(1, 1, 0, termination=1)
    assert late(("came", second), ("came", first), ("delivered", first), ("delivered", second)) == 0
    assert late(("came", second), ("came", first), ("delivered", first)) == 1
    assert late(("came", first), ("came", third), ("delivered", first), ("delivered", third)) == 1
    assert late(("came", second), ("delivered", second)) == 1, "before its dependency"
    assert late(("came", second)) == 0, "nothing could be done"
    both = (("came", first), ("delivered", first), ("came", second), ("delivered", second))
    assert late(*both, ("came", reset), ("delivered", reset)) == 0
    assert late(*both, ("came", reset)) == 1
    assert late(("came", reset), *both, ("delivered", reset)) == 0
    assert late(*both[:2], ("came", reset), ("delivered", reset)) == 1, "before its round"


def test_what_no_sender_says_is_refused() -> None:
    order = Order()
    order.came(Message(Header(1, 1, 0, termination=4), b""))
    with pytest.raises(BadMessage, match="round 0 ends with 4, and with 5"):
        order.came(Message(Header(1, 1, 1, termination=5), b""))
    with pytest.raises(BadMessage, match="message 5 of a round that ended with 4"):
        order.came(Message(Header(1, 0, 5), b""))
