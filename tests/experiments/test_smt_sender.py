# SPDX-License-Identifier: MIT
"""SMT's sender and receiver without sockets: what leaves next, by which line, and what comes of a
buffer that is full and of lines that are lost."""

import math
import random
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.smt import control
from experiments.workloads.smt.control import Ack, Drop, Hello, Restart, Stop
from experiments.workloads.smt.estimate import Estimate, Reading, presume
from experiments.workloads.smt.failure import BadInput, BadMessage
from experiments.workloads.smt.header import SIZE, Header
from experiments.workloads.smt.numbering import Numbering
from experiments.workloads.smt.order import Message
from experiments.workloads.smt.policies import POLICIES, Selector
from experiments.workloads.smt.priorities import QUANTUM, Class
from experiments.workloads.smt.receiver import Receiver
from experiments.workloads.smt.sender import Limits, Sender
from experiments.workloads.smt.settings import Settings
from tests.experiments.smt_toy import CLASSES, Toy, sender

MS = 1e-3


def leaves(it: Sender) -> list[list[int]]:
    """All that leaves, unit by unit."""
    found = []
    while (leaving := it.due()) is not None:
        found.append([out.message for out in leaving.messages])
        for out in leaving.messages:
            it.leave(out, "line")
    return found


def test_the_highest_priority_leaves_first() -> None:
    it = sender()
    for name in ("low", "high", "low", "high"):
        it.submit(1, b"", (), name)
    assert leaves(it) == [[1], [3], [0], [2]]


def test_a_priority_is_inherited() -> None:
    """What a message depends on leaves with it, and nothing twice."""
    it = sender()
    it.submit(1, b"", (), "low")
    it.submit(1, b"", (), "low")
    it.submit(1, b"", [1], "low")
    it.submit(1, b"", [2], "high")
    it.submit(1, b"", [1], "high")
    assert leaves(it) == [[1, 2, 3], [4], [0]]


def test_classes_of_a_priority_share_by_weight() -> None:
    it = sender()
    size = 1000 - SIZE
    for _ in range(400):
        it.submit(1, bytes(size), (), "low")
        it.submit(1, bytes(size), (), "much")
    first = [unit[0] for unit in leaves(it)][:200]
    of = Counter("much" if message % 2 else "low" for message in first)
    assert of["much"] / of["low"] == pytest.approx(3, rel=0.1)


def test_a_share_pays_for_what_it_depends_on() -> None:
    """Of two classes of equal weight the one whose closures have ten times the size has a tenth of
    them, and as many bytes."""
    classes = (Class("bottom"), Class("ten", priority=1), Class("one", priority=1))
    it = Sender(classes, Limits(), 1 << 15, ordered=False)
    for _ in range(40):
        needs = [it.submit(1, bytes(1000 - SIZE), (), "bottom") for _ in range(9)]
        it.submit(1, bytes(1000 - SIZE), needs, "ten")
    for _ in range(200):
        it.submit(1, bytes(1000 - SIZE), (), "one")
    sizes = Counter(len(unit) for unit in leaves(it)[:110])
    assert sizes[1] / sizes[10] == pytest.approx(10, rel=0.15)


def test_a_message_larger_than_a_turn_leaves() -> None:
    it = sender()
    it.submit(1, bytes(50 * QUANTUM), (), "low")
    it.submit(1, b"", (), "much")
    assert sorted(leaves(it)) == [[0], [1]]


def test_limits() -> None:
    it = sender(Limits(messages=3))
    for _ in range(5):
        it.submit(1, b"", (), "low")
    assert leaves(it) == [[0], [1], [2]]
    assert it.short_of == "messages"
    it.acked(Ack(0, 2))
    assert leaves(it) == [[3], [4]]
    it = sender(Limits(bytes=300))
    for _ in range(5):
        it.submit(1, bytes(100), (), "low")
    assert leaves(it) == [[0], [1], [2]]
    assert (it.short_of, it.unacked_bytes) == ("bytes", 3 * (100 + SIZE))
    it.acked(Ack(0, 3))
    assert leaves(it) == [[3], [4]]
    assert it.unacked == 2


def test_an_ack_of_a_later_round() -> None:
    it = sender(numbering=Numbering(numbers=2))
    for _ in range(6):
        it.submit(1, b"", (), "low")
    leaves(it)
    it.acked(Ack(1, 1))
    assert it.unacked == 3
    it.acked(Ack(0, 2))
    assert it.unacked == 3, "an old one"
    it.acked(Ack(2, 2))
    assert it.unacked == it.unacked_bytes == 0


def test_bulk() -> None:
    """Large messages of the lowest priority, while bytes are what is short."""
    it = sender(Limits(bytes=1))
    big = 1 << 15
    for name, size in (("low", big), ("low", big), ("low", 9), ("high", big), ("low", big)):
        it.submit(1, bytes(size), (), name)
    found = {}
    for number in range(5):
        leaving = it.due()
        assert leaving is not None
        found[leaving.messages[0].message] = leaving.bulk
        it.leave(leaving.messages[0], "line")
        assert it.due() is None
        it.acked(Ack(0, number + 1))
    assert found == {3: False, 0: True, 1: True, 2: False, 4: True}


def test_a_stop_holds_back_its_application_alone() -> None:
    it = sender()
    it.submit(1, b"", (), "high")
    it.submit(2, b"", [0], "high")
    it.submit(2, b"", (), "low")
    it.stopped(1)
    assert leaves(it) == [[2]]
    it.restarted(1)
    assert leaves(it) == [[0], [1]]


def test_what_was_dropped_leaves_again_after_restart() -> None:
    it = sender()
    for _ in range(3):
        it.submit(1, b"", (), "low")
    leaves(it)
    it.stopped(1)
    for number in (1, 2):
        it.dropped(0, number)
    it.tick()
    assert leaves(it) == [], "the oldest one was not dropped"
    it.acked(Ack(0, 1))
    it.tick()
    assert leaves(it) == [[1]], "in spite of STOP: all others may wait for it"
    it.restarted(1)
    assert leaves(it) == [[2]]
    it.dropped(0, 0)
    assert leaves(it) == [], "it is acknowledged"


def test_what_a_lost_line_had_leaves_again() -> None:
    it = sender()
    for _ in range(4):
        it.submit(1, b"x", (), "low")
    sent = {}
    for by in "abab":
        leaving = it.due()
        assert leaving is not None
        sent[leaving.messages[0].message] = it.leave(leaving.messages[0], by)
    it.acked(Ack(0, 1))
    it.lost("a")
    leaving = it.due()
    assert leaving is not None
    assert leaving.messages[0].message == 2, "0 is acknowledged"
    assert it.leave(leaving.messages[0], "b") == sent[2], "with its old header"
    assert it.due() is None
    it.lost("b")
    assert leaves(it) == [[1], [2], [3]]


def test_total_order() -> None:
    it = sender(ordered=True)
    for _ in range(3):
        it.submit(1, b"", (), "low")
    headers = []
    while (leaving := it.due()) is not None:
        it.leave(leaving.messages[0], "line")
        headers.append(leaving.messages[0].header)
    assert [header.needs for header in headers if header] == [(), (0,), (1,)]


@pytest.mark.parametrize("tag", [0, 128, -1])
def test_wrong_words(tag: int) -> None:
    it = sender()
    with pytest.raises(BadInput, match="unknown priority 'urgent': it is none of low, much, high"):
        it.submit(1, b"", (), "urgent")
    with pytest.raises(BadInput, match=f"tag {tag} is not from 1 to 127"):
        it.submit(tag, b"", (), "low")
    with pytest.raises(BadInput, match="forward dependency: message 0 depends on message 1"):
        it.submit(1, b"", [1], "low")
    assert it.waiting == 0
    assert leaves(it) == []


@pytest.mark.parametrize("text", ["", "a", "a=", "a=x", "=1", "a=128", "a=-1", "a=1:0", "a=1:x"])
def test_a_wrong_priority(text: str) -> None:
    with pytest.raises(BadInput, match=f"^priority '{text}'"):
        Class.of(text)


def test_a_priority_as_it_is_written() -> None:
    assert Class.of("urgent=9:3") == Class("urgent", 9, 3)
    assert Class.of("rest=0") == Class("rest", 0, 1)


def estimate(
    rtt_s: float = 0.1, rate: float = 1e6, loss: float = 0.0, queued: int = 0, printed: bool = False
) -> Estimate:
    found = Estimate(printed)
    found.read(Reading(rtt_s, rate, loss, 1000, queued), 0.0)
    return found


def test_estimate() -> None:
    """Half a round trip, the bytes, those before them, which go in the meantime."""
    assert estimate().seconds(10_000, 0.0) == pytest.approx(0.05 + 0.01)
    assert estimate().seconds(10_000, 0.0, bulk=True) == pytest.approx(0.01)
    assert estimate().seconds(10_000, 0.0, one_way=True) == pytest.approx(0.05 + 0.01)
    behind = estimate()  # a queue of 0.2 s, of which srtt has an eighth as yet
    behind.read(Reading(0.3, 1e6, 0.0, 1000, 0), 0.02)
    assert behind.seconds(10_000, 0.02) == pytest.approx(0.0625 + 0.01)
    assert behind.seconds(10_000, 0.02, one_way=True) == pytest.approx(0.05 + 0.025 + 0.01)
    queued = estimate(queued=50_000)
    assert queued.seconds(10_000, 0.0) == pytest.approx(0.05 + 0.01 + 0.05)
    assert queued.seconds(10_000, 0.02) == pytest.approx(0.05 + 0.01 + 0.03)
    assert queued.seconds(10_000, 9.0) == pytest.approx(0.05 + 0.01), "never less than nothing"
    queued.sent(20_000)
    assert queued.seconds(10_000, 0.02) == pytest.approx(0.05 + 0.01 + 0.05)


def test_estimate_by_loss() -> None:
    """mss / (rtt √loss), not below the rate, not above the largest one."""
    it = estimate()
    rates = [1e6, 1e4, 1e4]
    for rate in rates[1:]:
        it.read(Reading(0.1, rate, 0.04, 1000, 0), 0.0)
    loss = 0.04 * (1 - (7 / 8) ** 2)
    assert it.loss == pytest.approx(loss)
    assert it.rate == pytest.approx(1e4 + (1e6 - 1e4) * (7 / 8) ** 2)
    assert it.throughput == pytest.approx(max(it.rate, 1000 / (0.1 * math.sqrt(loss))))
    slow = estimate(rate=1e3, loss=0.04)
    assert slow.throughput == 1e3, "the largest rate that was read"


def test_estimate_as_printed() -> None:
    """The root over both: with 0.1 s, 1000 bytes and 4 % it is 15,811; ours 50,000."""
    for printed, throughput in ((True, 15_811), (False, 50_000)):
        it = estimate(rate=1e3, printed=printed)
        it.read(Reading(0.1, 1e3, 0.0, 1000, 0), 0.0)
        it.largest = 1e9
        it.loss = 0.04
        it.read(Reading(0.1, 1e3, 0.04, 1000, 0), 0.0)
        assert it.throughput == pytest.approx(throughput, rel=1e-4)


def test_a_new_connection_is_presumed_to_be_as_good_as_the_best() -> None:
    """A window of its first slow start says nothing of its path: else it would never be chosen."""
    best, new = estimate(rate=1e7), Estimate()
    new.read(Reading(0.1, 1e5, 0.0, 1000, 0, opening=True), 0.0)
    assert new.throughput == 1e5
    presume([best, new])
    assert (new.throughput, best.throughput) == (1e7, 1e7)
    assert new.seconds(505_000, 0.0) == pytest.approx(0.05 + 0.1)
    new.read(Reading(0.1, 1e5, 0.04, 1000, 0, opening=True), 0.02)
    assert new.throughput == pytest.approx(1000 / (0.1 * math.sqrt(0.04 / 8))), "losses count"
    new.read(Reading(0.1, 1e5, 0.0, 1000, 0, opening=False), 0.04)
    assert new.throughput == pytest.approx(1e5), "it has found what its path carries"


def test_what_the_window_takes_does_not_wait_for_it() -> None:
    """That goes by what the path may carry, the rest by the rate."""
    it = Estimate()
    it.read(Reading(0.1, 1e5, 0.0, 1000, 0, opening=True, room=5_000), 0.0)
    it.presumed = 1e6
    for sent, before_s in ((4_000, 0.004), (4_000, 0.005 + 0.03)):
        it.sent(sent)
        assert it.seconds(11_000, 0.0) == pytest.approx(0.05 + 0.02 + before_s)
    assert it.queued(0.0) == 8_000, "what is queued is queued all the same"


def test_averages_are_of_an_eighth() -> None:
    it = estimate(rtt_s=0.1)
    it.read(Reading(0.9, 1e6, 0.0, 1000, 0), 1.0)
    assert it.rtt_s == pytest.approx(0.2)


class Carrier:
    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate


def test_policies() -> None:
    near, wide = Carrier(estimate(0.01, 1e5)), Carrier(estimate(0.1, 1e7, queued=1))
    lines = [wide, near]

    def chosen(policy: str, *sizes: int, bulk: bool = False) -> list[Carrier]:
        selector = Selector(POLICIES[policy])
        return [selector.choose(lines, size, 0.0, bulk) for size in sizes]

    assert chosen("total", 1, 10**6) == [wide, wide]
    assert chosen("even", 1, 1, 1) == [wide, near, wide]
    assert chosen("least", 1, 10**6) == [near, near]
    assert chosen("estimate", 1, 10**6) == [near, wide]
    assert chosen("closure", 1, 10**6) == [near, wide]
    assert chosen("estimate", 100, bulk=True) == [wide]
    near.estimate.read(Reading(0.4, 1e5, 0.0, 1000, 0), 0.0)  # a queue, and 0.06 s in the mean
    assert chosen("estimate", 1) == [near]
    assert chosen("one-way", 1) == [wide]
    assert [it for it in POLICIES if POLICIES[it].whole] == ["closure"]
    assert [it for it in POLICIES if POLICIES[it].ordered] == ["total"]


CONTROLS = [Ack(65535, 2**32), Stop(127), Restart(1), Drop(3, 2**32 - 1), Hello(b"8 bytes.", "{}")]


@pytest.mark.parametrize("it", CONTROLS)
def test_control_messages(it: control.Control) -> None:
    data = control.encode(it)
    assert control.decode(data) == it
    assert data[:SIZE] == Header(0, 0, 0).encode()


@settings(deadline=None)
@given(st.binary(max_size=12))
def test_any_control_message_is_read_or_refused(body: bytes) -> None:
    try:
        found = control.decode(Header(0, 0, 0).encode() + body)
    except BadMessage:
        return
    assert control.encode(found)[SIZE:] == body


def test_settings_of_a_hello() -> None:
    told = Settings(policy="even", printed=True, silence_s=2.0)
    assert Settings.of(told.hello(b"12345678")) == told


@pytest.mark.parametrize(
    "wrong",
    ["", "[]", "{}", '{"policy": 1}', Settings(policy="any").hello(b"12345678").settings],
)
def test_settings_that_are_refused(wrong: str) -> None:
    with pytest.raises(BadMessage, match="settings"):
        Settings.of(Hello(b"12345678", wrong))


def plain(number: int, *deltas: int, tag: int = 1) -> Message:
    return Message(Header(tag, 0, number, deltas=deltas), b"")


def test_stop_and_restart() -> None:
    it = Receiver(most=8)
    for number in range(8):
        assert it.came(plain(number))
        assert it.due == ([Stop(1)] if number >= 5 else [])
    assert not it.came(plain(8))
    assert not it.came(plain(9, tag=2)) or it.due[-1] != Stop(2), "another one has its own"
    for left in range(7, -1, -1):
        assert it.take(1) is not None
        assert (Restart(1) in it.due) == (left <= 2)
    assert it.due == [Stop(1), Drop(0, 8), Restart(1)]
    assert it.came(plain(8)), "it comes again"
    assert (it.counts.stops, it.counts.dropped, it.counts.most_held) == (1, 1, 8)


def test_a_full_buffer_takes_what_its_application_waits_for() -> None:
    it = Receiver(most=3)
    assert it.take(1) is None
    for number in (1, 2, 3):
        assert it.came(plain(number, number))
    assert not it.came(plain(4, 4)), "this one waits as well"
    assert it.came(plain(0))
    assert it.woken == {1}
    assert [message.header.number for message in iter(lambda: it.take(1), None)] == [0, 1, 2, 3]


def test_acknowledgements() -> None:
    it = Receiver(most=9)
    assert it.ack() is None
    it.came(plain(1))
    it.came(plain(0))
    assert it.ack() is None, "nothing is delivered"
    it.take(1)
    assert it.ack() is None, "that was message 1"
    it.take(1)
    assert it.ack() == Ack(0, 2)
    assert it.ack() is None
    it.came(plain(0))
    assert it.ack() == Ack(0, 2), "whoever sends it again does not know"
    it.repeat()
    assert it.ack() == Ack(0, 2)
    assert it.due == [Restart(1)]


def test_what_a_lost_line_may_have_carried_is_told_again() -> None:
    it = Receiver(most=1)
    it.came(plain(0))
    it.came(plain(1))
    assert it.due == [Stop(1), Drop(0, 1)]
    it.due.clear()
    it.repeat()
    assert it.due == [Stop(1), Drop(0, 1)]


@settings(deadline=None, max_examples=120)
@given(
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_each_is_delivered_once_whatever_is_lost(
    count: int, lines: int, most: int, unacked: int, bits: int, seed: int
) -> None:
    """Three applications, two of them slow; small buffers, drops, lost lines, many rounds."""
    chance = random.Random(seed)
    numbering = Numbering((0, bits + 4, bits + 1, bits), numbers=9)
    toy = Toy(sender(Limits(unacked), numbering), Receiver(most), [deque() for _ in range(lines)])
    wanted: list[list[int]] = []
    for it in range(count):
        needs = chance.sample(range(it), min(it, chance.choice([0, 0, 1, 2, 3, 5])))
        wanted.append(needs)
        name = chance.choice(CLASSES).name
        toy.sender.submit(chance.randint(1, 3), it.to_bytes(2, "big"), needs, name)
    step = 0
    while toy.sender.unacked or toy.sender.waiting:
        step += 1
        assert step < 3000 + 400 * count, "it goes on"
        toy.leave(chance.sample(range(lines), lines))
        what = chance.random()
        if what < 0.4:
            toy.arrive(chance.randrange(lines))
        elif what < 0.7:
            toy.take(chance.randint(1, 3))
            while toy.take(1):
                pass
        elif what < 0.85:
            toy.tell()
        elif what < 0.99 or step > 1000:
            toy.tick()
        else:
            toy.lose(chance.randrange(lines))
        for application in toy.receiver._applications.values():
            assert application.held <= most + 1
    assert sorted(toy.delivered) == list(range(count))
    place = {it: at for at, it in enumerate(toy.delivered)}
    assert all(place[need] < place[it] for it in range(count) for need in wanted[it])
