# SPDX-License-Identifier: MIT
"""Sessions of the extension that began before the capture did: their numbers go on."""

from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.scenes import (
    COPY,
    EARLY,
    IN_ORDER,
    LATE,
    UNPLACED,
    Play,
    Rows,
    Scene,
    column,
    dissected,
    odd,
    owners,
)

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

FAR = 2**21  # further than any number may lie ahead
IS_NEW, RESUMES = 0, 1


def begun_before(s: Scene, count: int = 1, port: int = 6010) -> None:
    s.open(count, handshake=False, port=port)


def begin(s: Scene, pipe: int, index: int, incarnation: int, name: str = "first") -> None:
    session = f"{name} {s.address}".encode().ljust(16)
    s.up(pipe, m.hello(session, index, 3, incarnation))
    s.down(pipe, m.welcome(conn_early=5000, status=RESUMES if incarnation else IS_NEW))


def dial(s: Scene, index: int, incarnation: int, name: str = "first", port: int = 6010) -> None:
    """One more pipe, seen from its beginning; it becomes the last one."""
    others = s.pipes
    s.open(1, port=port)
    s.pipes = others + s.pipes
    begin(s, -1, index, incarnation, name)


def redialled(s: Scene) -> None:
    """A pipe is dialled anew; one that was silent so far is heard behind that."""
    begun_before(s, 2)
    for number in range(FAR, FAR + 4, 2):
        s.down(0, m.data(5, number, b"x" * 40), m.data(5, number + 1, b"y" * 40))
    dial(s, 2, 3)
    s.down(2, m.data(5, FAR + 4, b"z"))
    s.down(1, m.data(5, FAR + 5, b"x" * 40), m.data(5, FAR + 7, b"x" * 40))
    s.down(2, m.data(5, FAR + 6, b"z"))


def redialled_first(s: Scene) -> None:
    """The same where nothing of the session was seen before."""
    begun_before(s)
    dial(s, 1, 1)
    s.down(1, m.data(5, FAR, b"z"), m.data(5, FAR + 1, b"z"))
    s.down(0, m.data(5, FAR + 2, b"x" * 40), m.data(5, FAR + 3, b"x" * 40))


def uplink_alone(s: Scene) -> None:
    """The capture has one direction, so no WELCOME says that the session was there before."""
    s.open(1, port=6010)
    s.up(0, m.hello(f"first {s.address}".encode(), 2, 3, 1))
    s.up(0, m.data(5, FAR, b"z"), m.data(5, FAR + 1, b"z"))


def joined_late(s: Scene) -> None:
    """A pipe whose index was not there before may join with incarnation 0."""
    s.open(1, port=6010)
    s.up(0, m.hello(f"first {s.address}".encode(), 2, 3))
    s.down(0, m.welcome(status=RESUMES), m.data(5, FAR, b"z"), m.data(5, FAR + 1, b"z"))


def began_anew(s: Scene) -> None:
    """LP begins a session beside one that was seen from its middle: that one has its numbers."""
    begun_before(s)
    s.down(0, m.data(5, FAR, b"x" * 40), m.data(5, FAR + 1, b"x" * 40))
    dial(s, 0, 0, "next")
    dial(s, 1, 1, "next")
    s.up(2, m.data(5, 1, b"early"))
    s.up(1, m.open_name(5, "new", 80))
    s.down(0, m.data(5, FAR + 2, b"x" * 40))


def two_from_the_middle(s: Scene) -> None:
    """Pipes of two local proxies behind one address are dialled anew."""
    begun_before(s)
    s.down(0, m.data(5, FAR, b"x" * 40), m.data(5, FAR + 1, b"x" * 40))
    dial(s, 0, 3)
    dial(s, 0, 5, "next")
    s.down(1, m.data(5, FAR + 2, b"z"))
    s.down(2, m.data(5, FAR + 8, b"z"))


def on_another_port(s: Scene) -> None:
    """What the pipe carries is not known to be the extension before there is a HELLO."""
    begun_before(s, port=7777)
    s.down(0, *(m.data(5, FAR + number, b"x" * 40) for number in range(3)))
    dial(s, 1, 3, port=7777)
    s.down(1, m.data(5, FAR + 3, b"z"), m.data(5, FAR + 4, b"z"))
    s.up(1, m.open_name(7, "use", 80, number=10))


def long_uploads(s: Scene) -> None:
    """More than the early limits, of connections that were opened before the capture began."""
    begun_before(s)
    for conn, number in ((5, FAR), (6, 100)):
        s.up(0, m.data(conn, number, bytes(4000)), m.data(conn, number + 1, bytes(4000)))
    dial(s, 1, 3)
    for conn, number in ((5, FAR), (6, 100)):
        s.up(1, m.data(conn, number + 2, bytes(4000)), m.data(conn, number + 3, bytes(4000)))


def seen_from_its_open(s: Scene) -> None:
    """Two uses of an id, whole, with numbers so low that the first might be waited for."""
    begun_before(s)
    for use in (0, 3):
        s.up(0, m.open_name(7, f"use-{use}", 80, number=10 + use), m.data(7, 11 + use, b"asked"))
        s.down(0, m.synack(7, number=20 + use), m.data(7, 21 + use, b"answer"))
        s.up(0, m.fin(7, 12 + use, m.FIN_HALF))
        s.down(0, m.fin(7, 22 + use, m.FIN_HALF))


def end_of_a_use(s: Scene) -> None:
    """The end of one use, then another; of this one data come before both."""
    begun_before(s, 2)
    s.up(0, m.data(7, 7, b"x" * 40), m.data(7, 8, b"x" * 40))
    s.up(1, m.data(7, 11, b"y" * 40), m.data(7, 12, b"y" * 40))
    s.up(0, m.fin(7, 9, m.FIN_HALF), m.open_name(7, "next", 80, number=10))
    s.down(0, m.synack(7, number=20), m.data(7, 21, b"answer"))


def late_end_of_a_use(s: Scene) -> None:
    """A pipe delivers the end of the use before when the next one has begun on another."""
    begun_before(s, 2)
    s.up(0, m.open_name(7, "next", 80, number=10), m.data(7, 11, b"y" * 40))
    s.up(1, m.data(7, 8, b"x" * 40), m.fin(7, 9, m.FIN_HALF))
    s.up(0, m.data(7, 12, b"y" * 40))
    s.down(0, m.synack(7, number=20), m.data(7, 21, b"answer"))


def opened_again(s: Scene) -> None:
    """A pipe died, and what was on it comes again, on another: the first OPEN was not seen."""
    begun_before(s)
    s.up(0, m.data(7, FAR + 1, b"x" * 40), m.data(7, FAR + 2, b"x" * 40))
    dial(s, 1, 1)
    s.up(1, m.open_name(7, "again", 80, number=FAR), m.data(7, FAR + 1, b"x" * 40))
    s.up(1, m.data(7, FAR + 3, bytes(4000)), m.data(7, FAR + 4, bytes(4000)))


def open_and_its_copy(s: Scene) -> None:
    """Of both pipes the handshake was not seen, but HELLO was."""
    begun_before(s, 2)
    begin(s, 0, 0, 0)
    begin(s, 1, 1, 1)
    s.up(0, m.open_name(7, "one", 80))
    s.up(1, m.open_name(7, "one", 80))
    s.down(0, m.synack(7))


PLAYS: list[Play] = [
    redialled, redialled_first, uplink_alone, joined_late, began_anew, two_from_the_middle,
    on_another_port, long_uploads, seen_from_its_open, end_of_a_use, late_end_of_a_use,
    opened_again, open_and_its_copy,
]  # fmt: skip
RESUMED = {play.__name__: play for play in PLAYS}


def played(tmp_path: Path, *plays: Play) -> list[Rows]:
    """The messages of connections, of each scene."""
    found = dissected({play.__name__: play for play in plays}, tmp_path / "scenes.pcap")
    return [[row for row in rows if "tm3.stream" in row[1]] for rows in found.values()]


def sessions(rows: Rows) -> list[int]:
    first = int(rows[0][1]["tm3.session"])
    return [int(number) - first for number in column(rows, "session")]


def test_a_pipe_that_is_dialled_anew(tmp_path: Path) -> None:
    behind, first = played(tmp_path, redialled, redialled_first)
    assert sessions(behind) == owners(behind) == [0] * 8
    assert column(behind, "order") == [UNPLACED, *[IN_ORDER] * 5, EARLY, LATE]
    assert odd(behind) == [[]] * 8
    assert sessions(first) == owners(first) == [0] * 4
    assert column(first, "order") == [UNPLACED, *[IN_ORDER] * 3]
    assert odd(first) == [[]] * 4


@pytest.mark.parametrize("play", [uplink_alone, joined_late])
def test_a_pipe_that_joins(tmp_path: Path, play: Play) -> None:
    (r,) = played(tmp_path, play)
    assert column(r, "order") == [UNPLACED, IN_ORDER]


def test_a_new_session_is_another_one(tmp_path: Path) -> None:
    (r,) = played(tmp_path, began_anew)
    assert sessions(r) == owners(r) == [0, 0, 1, 1, 0]
    assert column(r, "order") == [UNPLACED, IN_ORDER, EARLY, LATE, IN_ORDER]
    assert odd(r) == [[]] * 5


def test_sessions_of_two_local_proxies(tmp_path: Path) -> None:
    (r,) = played(tmp_path, two_from_the_middle)
    assert sessions(r) == owners(r) == [0, 0, 0, 1]
    assert column(r, "order") == [UNPLACED, IN_ORDER, IN_ORDER, UNPLACED]


def test_what_is_not_known_to_be_the_extension(tmp_path: Path) -> None:
    (r,) = played(tmp_path, on_another_port)
    assert sessions(r) == [0, 0, 0, 1, 1, 1]
    assert column(r, "order") == [UNPLACED, IN_ORDER, IN_ORDER, UNPLACED, IN_ORDER, IN_ORDER]


def test_what_was_opened_before_has_no_early_limit(tmp_path: Path) -> None:
    uploads, again = played(tmp_path, long_uploads, opened_again)
    assert len(uploads) == 8
    assert not [names for names in odd(uploads + again) if "early_limit" in names]


def test_a_use_that_is_seen_from_its_open(tmp_path: Path) -> None:
    (r,) = played(tmp_path, seen_from_its_open)
    assert owners(r) == [0] * 6 + [1] * 6
    assert column(r, "order") == [IN_ORDER] * 12
    assert column(r, "dst.name") == ["use-0"] * 6 + ["use-3"] * 6
    assert odd(r) == [[]] * 12


def test_the_use_before_is_another_connection(tmp_path: Path) -> None:
    end, late = played(tmp_path, end_of_a_use, late_end_of_a_use)
    assert owners(end) == [0, 0, 1, 1, 0, 1, 1, 1]
    assert column(end, "order")[2:4] == [EARLY, EARLY]
    assert column(end, "order")[5:] == [LATE, IN_ORDER, IN_ORDER]
    assert [name for name in column(end, "dst.name") if name] == ["next"] * 5
    assert owners(late) == [0, 0, 1, 1, 0, 0, 0]
    assert column(late, "order")[:2] + column(late, "order")[4:] == [IN_ORDER] * 5


def test_an_open_that_comes_again(tmp_path: Path) -> None:
    again, copy = played(tmp_path, opened_again, open_and_its_copy)
    assert owners(again) == [0] * 6
    assert column(again, "order") == [UNPLACED, IN_ORDER, UNPLACED, COPY, IN_ORDER, IN_ORDER]
    assert column(again, "dst.name") == ["again"] * 6
    assert column(copy, "order") == [IN_ORDER, COPY, IN_ORDER]
    assert odd(copy) == [[], ["duplicate"], []]
