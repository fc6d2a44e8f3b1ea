# SPDX-License-Identifier: MIT
"""What becomes of messages at their receiver: order, ids, ends, limits, and what is odd."""

from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.scenes import (
    AFTER,
    COPY,
    EARLY,
    IN_ORDER,
    LATE,
    SCENES,
    TOO_FAR,
    UNPLACED,
    Rows,
    Scene,
    column,
    dissected,
    odd,
    owners,
    play_all,
    scene,
)

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


@scene
def reordered(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(7, "192.0.2.1", 80), m.data(7, 1, b"one"))
    s.up(1, m.data(7, 3, b"three"))
    s.up(1, m.fin(7, 4))
    s.up(0, m.data(7, 2, b"two"))


@scene
def data_before_syn(s: Scene) -> None:
    s.open(2)
    s.up(1, m.data(9, 1, b"early"))
    s.up(0, m.syn(9, "192.0.2.1", 80))


@scene
def gap_never_filled(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(1, "192.0.2.1", 80))
    s.up(1, m.data(1, 2, b"waits"), m.data(1, 3, b"too"))


@scene
def duplicate(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(1, "192.0.2.1", 80), m.data(1, 1, b"x"))
    s.up(1, m.data(1, 1, b"x"))
    s.up(0, m.data(1, 3, b"held"))
    s.up(1, m.data(1, 3, b"held"))


@scene
def after_fin(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(1, "192.0.2.1", 80), m.data(1, 1, b"x"), m.fin(1, 2), m.data(1, 3, b"ghost"))


@scene
def held_beyond_fin(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(1, "192.0.2.1", 80))
    s.up(1, m.data(1, 5, b"ghost"))
    s.up(0, m.fin(1, 1))


@scene
def too_far_ahead(s: Scene) -> None:
    s.open(1)
    s.up(0, m.syn(1, "192.0.2.1", 80), m.data(1, 1 + 2**20, b"held"), m.data(1, 2 + 2**20, b"far"))


@scene
def wraps(s: Scene) -> None:
    """A connection so long that its numbers begin again; the capture begins shortly before."""
    s.open(2, handshake=False)
    last = 2**32 - 1
    s.down(0, m.data(3, 0xFFFFFE, b"a"), m.data(3, 0xFFFFFF, b"b"))
    s.down(0, m.data(4, last - 1, b"a"))
    s.down(0, m.data(4, last, b"b"))
    s.down(1, m.data(4, 1, b"d"))
    s.down(0, m.data(4, 0, b"c"))


@scene
def other_side_over(s: Scene) -> None:
    s.open(1)
    s.up(0, m.syn(1, "192.0.2.1", 80), m.data(1, 1, b"x"))
    s.down(0, m.fin(1, 0, m.FIN_RESET))
    s.up(0, m.data(1, 2, b"too late"))


@scene
def id_used_again(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(5, "192.0.2.1", 80), m.data(5, 1, b"x"), m.fin(5, 2))
    s.down(0, m.fin(5, 0))
    s.up(1, m.syn(5, "192.0.2.2", 81), m.data(5, 1, b"y"))
    s.down(1, m.data(5, 0, b"z"))


@scene
def id_used_again_early_data_first(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(5, "192.0.2.1", 80), *(m.data(5, n, b"x") for n in range(1, 6)), m.fin(5, 6))
    s.up(1, m.data(5, 1, b"y"), m.data(5, 2, b"z"))
    s.up(0, m.syn(5, "192.0.2.2", 81))


@scene
def id_used_again_short_owner(s: Scene) -> None:
    """The old owner was so short that its successor's early data lies behind its FIN."""
    s.open(2)
    s.up(0, m.syn(5, "192.0.2.1", 80), m.fin(5, 1))
    s.up(1, m.data(5, 2, b"z"), m.data(5, 3, b"zz"))
    s.up(0, m.syn(5, "192.0.2.2", 81), m.data(5, 1, b"y"))


@scene
def syn_for_live_id(s: Scene) -> None:
    """The old owner's last messages are still under way on another pipe."""
    s.open(2)
    s.up(0, m.syn(5, "192.0.2.1", 80), *(m.data(5, n, b"x") for n in range(1, 6)))
    s.up(0, m.syn(5, "192.0.2.2", 81), m.data(5, 1, b"new"))
    s.up(1, m.data(5, 6, b"old"), m.fin(5, 7))
    s.up(1, m.data(5, 2, b"new"))
    s.up(0, *(m.data(5, n, b"new") for n in range(3, 9)))


@scene
def old_downlink_after_reuse(s: Scene) -> None:
    s.open(2)
    s.up(0, m.syn(5, "192.0.2.1", 80))
    s.down(0, *(m.data(5, n, b"x") for n in range(5)))
    s.up(0, m.fin(5, 1))
    s.up(0, m.syn(5, "192.0.2.2", 81))
    s.down(0, m.data(5, 0, b"new"))
    s.down(1, m.data(5, 5, b"old"))
    s.down(0, *(m.data(5, n, b"new") for n in range(1, 8)))


@scene
def new_session(s: Scene) -> None:
    """The pipes end without a FIN of connection 1; LP dials anew and begins with id 1."""
    s.open(2)
    s.up(0, m.syn(1, "192.0.2.1", 80), m.data(1, 1, b"x"), m.data(1, 2, b"y"))
    for pipe in s.pipes:
        pipe.close(s.tick())
    s.open(2)
    s.up(1, m.data(1, 1, b"z"))
    s.up(0, m.syn(1, "192.0.2.2", 81))


@scene
def middle_of_streams(s: Scene) -> None:
    """The capture begins in the middle of messages, of connections and of their order."""
    s.open(2, handshake=False)
    long = m.data(8, 5001, bytes(range(7, 256)) * 16)
    s.down(0, long[2000:], m.data(8, 5002, b"x" * 40), m.data(8, 5003, b"y" * 40))
    s.down(1, m.data(8, 5005, b"z" * 40), m.data(8, 5006, b"z" * 40))
    s.down(0, m.data(8, 5004, b"y" * 40))
    s.up(0, m.data(8, 3, b"in the middle"))
    s.tick(3000)
    s.up(0, m.data(8, 4, b"as well"), m.data(8, 5, b"as well"))
    s.up(1, m.data(10, 1, b"a new one's early data"))
    s.up(0, m.syn(10, "192.0.2.2", 81))


@scene
def early_limit(s: Scene) -> None:
    s.open(2)
    for number in range(1, 1026):
        s.pipes[1].up(s.tick(0.01), m.data(2, number, bytes(4096)))
    s.up(0, m.syn(2, "192.0.2.2", 81))


@scene
def ext_early_limit(s: Scene) -> None:
    s.open(1, port=6010)
    s.up(0, m.hello(b"s" * 16, 0, 1))
    s.down(0, m.welcome(conn_early=5000))
    s.up(0, m.open_name(2, "example.org", 80), m.data(2, 1, bytes(4000)), m.data(2, 2, bytes(1001)))
    s.down(0, m.synack(2))
    s.up(0, m.data(2, 3, bytes(4000)))


@scene
def ext_early_limit_in_all(s: Scene) -> None:
    """The bytes of a use count until its SYNACK, also when it was reset meanwhile."""
    s.open(1, port=6010)
    s.up(0, m.hello(b"v" * 16, 0, 1))
    s.down(0, m.welcome(session_early=8000))
    s.up(0, m.open_name(2, "x", 80), m.data(2, 1, bytes(4000)), m.fin(2, 2, m.FIN_RESET))
    s.up(0, m.open_name(3, "x", 80), m.data(3, 1, bytes(4000)), m.data(3, 2, bytes(1)))
    s.down(0, m.synack(2))
    s.up(0, m.data(3, 3, bytes(3000)))


@scene
def ext_uses(s: Scene) -> None:
    """One id, used three times: the numbers go on, whatever pipes the messages take."""
    s.open(2, port=6010)
    for pipe in (0, 1):
        s.up(pipe, m.hello(b"w" * 16, pipe, 2))
        s.down(pipe, m.welcome())
    s.up(0, m.open_name(3, "one", 80), m.data(3, 1, b"first"), m.fin(3, 2, m.FIN_HALF))
    s.down(0, m.synack(3), m.data(3, 1, b"first"), m.fin(3, 2, m.FIN_HALF))
    s.up(1, m.data(3, 4, b"second"))
    s.up(0, m.open_name(3, "two", 80, number=3), m.open_name(3, "one", 80))
    s.down(1, m.data(3, 4, b"second"))
    s.down(0, m.synack(3, number=3), m.data(3, 1, b"first"))
    s.up(0, m.fin(3, 5, m.FIN_RESET))
    s.down(0, m.fin(3, 5, m.FIN_RESET))
    s.up(1, m.data(3, 1, b"first"), m.open_name(3, "three", 80, number=6))
    s.up(0, m.fin(3, 2, m.FIN_HALF))


@scene
def ext_reset_behind_the_end(s: Scene) -> None:
    """A 0x99 behind a 0x77 is of the same use, though the id was opened anew before it came."""
    s.open(2, port=6010)
    for pipe in (0, 1):
        s.up(pipe, m.hello(b"x" * 16, pipe, 2))
        s.down(pipe, m.welcome())
    s.up(0, m.open_name(3, "one", 80), m.fin(3, 1, m.FIN_HALF))
    s.down(0, m.synack(3), m.fin(3, 1, m.FIN_HALF))
    s.up(0, m.open_name(3, "two", 80, number=2))
    s.down(1, m.fin(3, 2, m.FIN_RESET), m.synack(3, number=3), m.data(3, 4, b"second"))


@scene
def ext_reset_behind_an_early_end(s: Scene) -> None:
    """A 0x99 behind a 0x77 that waits; behind the 0x99 comes nothing.

    The 0x77 of connection 4 waits for the OPEN of its use, too.
    """
    s.open(2, port=6010)
    for pipe in (0, 1):
        s.up(pipe, m.hello(b"r" * 16, pipe, 2))
        s.down(pipe, m.welcome())
    s.up(0, m.open_name(3, "one", 80))
    s.up(1, m.fin(3, 2, m.FIN_HALF), m.fin(3, 3, m.FIN_RESET), m.fin(3, 4, m.FIN_RESET))
    s.up(0, m.data(3, 1, b"late"), m.open_name(4, "one", 80))
    s.up(1, m.fin(4, 4, m.FIN_HALF))
    s.up(0, m.fin(4, 1, m.FIN_RESET), m.open_name(4, "two", 80, number=2))
    s.up(1, m.fin(4, 5, m.FIN_RESET))
    s.up(0, m.data(4, 3, b"late"))


@scene
def ext_before_welcome(s: Scene) -> None:
    s.open(1, port=6010)
    s.up(0, m.hello(b"y" * 16, 0, 1), m.open_name(3, "x", 80))
    s.down(0, m.welcome())
    s.up(0, m.data(3, 1, b"x"))


@scene
def ext_fins(s: Scene) -> None:
    s.open(1, port=6010)
    s.up(0, m.hello(b"z" * 16, 0, 1))
    s.down(0, m.welcome())
    s.up(0, m.open_name(3, "x", 80), m.fin(3, 1, m.FIN_ORDER), m.syn(4, "192.0.2.2", 81))


@scene
def ext_session(s: Scene) -> None:
    s.open(3, port=6010)
    for pipe in (2, 0, 1):
        s.up(pipe, m.hello(b"t" * 16, pipe, 3))
        s.down(pipe, m.welcome())
    s.up(1, m.data(3, 1, b"early"))
    s.up(0, m.open_name(3, "example.org", 80))
    s.up(2, m.fin(3, 2, m.FIN_HALF))
    s.down(2, m.synack(3), m.data(3, 1, b"still"), m.fin(3, 2, m.FIN_HALF))


@scene
def ext_first(s: Scene) -> None:
    s.open(1, port=6010)
    s.up(0, m.syn(2, "192.0.2.2", 81))


@scene
def ext_downlink_hello(s: Scene) -> None:
    s.open(1, port=6010)
    s.up(0, m.hello(b"u" * 16, 0, 1))
    s.down(0, m.welcome(), m.hello(b"u" * 16, 0, 1))


@pytest.fixture(scope="module")
def rows(which_tshark: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    return dissected(SCENES, tmp_path_factory.mktemp("order") / "scenes.pcap")


def test_reordered(rows: dict[str, Rows]) -> None:
    r = rows["reordered"]
    assert column(r, "order") == [IN_ORDER, IN_ORDER, EARLY, EARLY, LATE]
    assert [float(w) for w in column(r, "wait")] == [0, 0, 0.002, 0.001, 0]
    last = r[-1][0]
    assert column(r, "filled_by") == [None, None, str(last), str(last), None]
    assert r[-1][1]["tm3.releases"] == [str(r[2][0]), str(r[3][0])]
    assert r[-1][1]["tm3.release_count"] == "2"
    assert set(column(r, "syn_frame")) == {str(r[0][0])}
    assert set(column(r, "fin_frame")) == {str(r[3][0])}
    assert set(column(r, "dst.ip")) == {"192.0.2.1"}
    assert [float(t) for t in column(r, "since_syn")] == [0, 0, 0.001, 0.002, 0.003]
    assert column(r, "offset") == [None, "0", "6", None, "3"]
    assert odd(r) == [[], [], [], [], []]


def test_data_before_its_syn(rows: dict[str, Rows]) -> None:
    r = rows["data_before_syn"]
    assert column(r, "order") == [EARLY, LATE]
    assert float(r[0][1]["tm3.since_syn"]) == -0.001
    assert column(r, "dst.port") == ["80", "80"]
    assert odd(r) == [[], []]


def test_a_gap_that_is_never_filled(rows: dict[str, Rows]) -> None:
    r = rows["gap_never_filled"]
    assert column(r, "order") == [IN_ORDER, EARLY, EARLY]
    assert odd(r) == [[], ["gap"], ["gap"]]
    assert column(r, "wait")[1:] == [None, None]


def test_duplicates(rows: dict[str, Rows]) -> None:
    r = rows["duplicate"]
    assert column(r, "order") == [IN_ORDER, IN_ORDER, COPY, EARLY, COPY]
    assert column(r, "original") == [None, None, str(r[1][0]), None, str(r[3][0])]
    assert odd(r) == [[], [], ["duplicate"], ["gap"], ["duplicate"]]


def test_data_after_fin(rows: dict[str, Rows]) -> None:
    r = rows["after_fin"]
    assert column(r, "order") == [IN_ORDER, IN_ORDER, IN_ORDER, AFTER]
    assert odd(r)[-1] == ["after_fin"]
    r = rows["held_beyond_fin"]
    assert "after_fin" in odd(r)[1]


def test_too_far_ahead(rows: dict[str, Rows]) -> None:
    r = rows["too_far_ahead"]
    assert column(r, "order") == [IN_ORDER, EARLY, TOO_FAR]
    assert odd(r)[-1] == ["too_far"]


def test_numbers_wrap(rows: dict[str, Rows]) -> None:
    r = rows["wraps"]
    assert column(r, "order") == [UNPLACED, IN_ORDER, UNPLACED, IN_ORDER, EARLY, LATE]


def test_what_comes_for_a_connection_that_is_over(rows: dict[str, Rows]) -> None:
    r = rows["other_side_over"]
    assert odd(r) == [[], [], ["reset"], ["over"]]
    assert len(set(column(r, "stream"))) == 1


def test_an_id_that_is_used_again_is_a_new_connection(rows: dict[str, Rows]) -> None:
    r = rows["id_used_again"]
    assert owners(r) == [0, 0, 0, 0, 1, 1, 1]
    assert set(column(r, "order")) == {IN_ORDER}
    assert column(r, "dst.port") == ["80"] * 4 + ["81"] * 3
    assert odd(r) == [[]] * 7


def test_early_data_of_a_successor(rows: dict[str, Rows]) -> None:
    r = rows["id_used_again_early_data_first"]
    assert owners(r) == [0] * 7 + [1, 1, 1]
    assert column(r, "order")[7:] == [EARLY, EARLY, LATE]
    assert column(r, "dst.port")[7:] == ["81"] * 3


def test_early_data_of_a_successor_behind_the_old_fin(rows: dict[str, Rows]) -> None:
    r = rows["id_used_again_short_owner"]
    assert owners(r) == [0, 0, 1, 1, 1, 1]
    assert column(r, "order")[2:] == [EARLY, EARLY, IN_ORDER, LATE]


def test_a_syn_for_a_live_id_detaches_the_old_owner(rows: dict[str, Rows]) -> None:
    r = rows["syn_for_live_id"]
    assert owners(r) == [0] * 6 + [1, 1] + [0, 0] + [1] * 7
    assert set(column(r, "order")) == {IN_ORDER}
    assert odd(r)[6] == ["id_reused"]


def test_downlink_of_the_old_owner_after_reuse(rows: dict[str, Rows]) -> None:
    r = rows["old_downlink_after_reuse"]
    assert owners(r) == [0] * 7 + [1, 1] + [0] + [1] * 7


def test_a_new_session_knows_nothing_of_the_old(rows: dict[str, Rows]) -> None:
    r = rows["new_session"]
    first = int(r[0][1]["tm3.session"])
    assert [int(n) - first for n in column(r, "session")] == [0, 0, 0, 1, 1]
    assert owners(r) == [0, 0, 0, 1, 1]
    assert column(r, "pipe") == ["0", "0", "0", "1", "0"]
    assert column(r, "order")[3:] == [EARLY, LATE]


def test_a_capture_that_begins_in_the_middle(rows: dict[str, Rows]) -> None:
    r = rows["middle_of_streams"]
    assert "tm3.undecoded" in r[0][1]
    assert odd(r)[0] == ["skipped"]
    down = [row for row in r[1:] if row[1]["tm3.direction"] == "2"]
    assert column(down, "seq") == ["5002", "5003", "5005", "5006", "5004"]
    assert column(down, "order") == [UNPLACED, IN_ORDER, EARLY, EARLY, LATE]
    up = [row for row in r[1:] if row[1]["tm3.direction"] == "1"]
    assert column(up, "order") == [UNPLACED, IN_ORDER, IN_ORDER, EARLY, LATE]
    assert column(up, "dst.port") == [None, None, None, "81", "81"]


def test_early_data_beyond_the_limit(rows: dict[str, Rows]) -> None:
    r = rows["early_limit"]
    limited = [
        n for n, names in zip(column(r, "seq"), odd(r), strict=True) if "early_limit" in names
    ]
    assert limited == ["1025"]
    r = rows["ext_early_limit"]
    assert odd(r) == [[], [], [], [], ["early_limit"], [], []]
    r = rows["ext_early_limit_in_all"]
    assert [n for n, names in enumerate(odd(r)) if "early_limit" in names] == [7]


def test_uses_of_an_id(rows: dict[str, Rows]) -> None:
    r = rows["ext_uses"][4:]
    first, second, third = sorted({int(n) for n in column(r, "stream")})
    assert [int(n) for n in column(r, "stream")] == [
        *[first] * 6, second, second, first, second, second, first, second, second, first, third,
        first,
    ]  # fmt: skip
    names = {int(row["tm3.stream"]): row["tm3.dst.name"] for _, row in r if "tm3.dst.name" in row}
    assert names == {first: "one", second: "two", third: "three"}
    orders = column(r, "order")
    assert orders[6:10] == [EARLY, LATE, COPY, EARLY]
    assert orders[10:] == [LATE, COPY, IN_ORDER, IN_ORDER, COPY, IN_ORDER, COPY]
    said = {name for names in odd(r) for name in names}
    assert said == {"duplicate", "reset"}


def test_a_reset_behind_the_end_is_of_the_same_use(rows: dict[str, Rows]) -> None:
    r = rows["ext_reset_behind_the_end"][4:]
    first, second = sorted({int(n) for n in column(r, "stream")})
    assert [int(n) for n in column(r, "stream")] == [
        first, first, first, first, second, first, second, second,
    ]  # fmt: skip
    assert set(column(r, "order")) == {IN_ORDER}


def test_a_reset_behind_an_end_that_waits(rows: dict[str, Rows]) -> None:
    r = rows["ext_reset_behind_an_early_end"][4:]
    assert owners(r) == [0] * 5 + [1, 2, 1, 2, 2, 2]
    assert column(r, "order")[:5] == [IN_ORDER, EARLY, EARLY, AFTER, LATE]
    assert column(r, "order")[5:] == [IN_ORDER, EARLY, IN_ORDER, IN_ORDER, EARLY, LATE]
    assert odd(r)[:5] == [[], [], ["reset"], ["reset", "after_fin"], []]
    assert odd(r)[5:] == [[], [], ["reset"], [], ["reset"], []]


def test_what_the_extension_does_not_have(rows: dict[str, Rows]) -> None:
    assert odd(rows["ext_before_welcome"]) == [[], ["ext_welcome"], [], []]
    assert odd(rows["ext_fins"]) == [[], [], [], ["reason"], ["ext_syn"]]


def test_a_session_of_the_extension(rows: dict[str, Rows]) -> None:
    r = rows["ext_session"]
    assert column(r, "pipe") == ["2", "2", "0", "0", "1", "1", "1", "0", "2", "2", "2", "2"]
    assert len(set(column(r, "session"))) == 1
    assert column(r, "order")[6:] == [EARLY, LATE, *[IN_ORDER] * 4]
    assert column(r, "dst.name")[6:] == ["example.org"] * 6
    assert odd(r) == [[]] * 12


def test_the_wrong_first_message_and_direction(rows: dict[str, Rows]) -> None:
    assert odd(rows["ext_first"]) == [["ext_first", "ext_syn"]]
    assert odd(rows["ext_downlink_hello"]) == [[], [], ["ext_direction"]]


def test_a_filter_finds_all_that_is_odd(tmp_path: Path) -> None:
    capture, _ = play_all({name: SCENES[name] for name in ("duplicate", "gap_never_filled")})
    path = tmp_path / "odd.pcap"
    capture.write(path)
    wanted = [number for number, message in tshark.messages(path, "-2") if tshark.experts(message)]
    found = tshark.field_values(path, ["frame.number"], "-2", "-Y", "tm3.expert")
    assert [int(row[0]) for row in found] == sorted(set(wanted))
    assert len(found) == 4
