# SPDX-License-Identifier: MIT
"""Frames that are looked at more than once: twice in a row, in a second pass, after a reload."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

WEB = tshark.TOP / "dissector" / "samples" / "web.pcap"
FIRST_MESSAGE = 13
REQUEST = b"GET /only HTTP/1.1\r\nHost: w\r\n\r\n"


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """One frame that is TM³, and nothing before or behind it."""
    capture, path = Capture(), tmp_path / "lone.pcap"
    pipe = TcpStream(capture, Endpoint("10.5.0.1", 40_000), Endpoint("10.9.0.1", 6000))
    pipe.up(1000, m.syn(1, "192.0.2.1", 80) + m.data(1, 1, REQUEST))
    capture.write(path)
    return path


def click(number: int) -> dict[str, Any]:
    return {"method": "frame", "params": {"frame": number, "proto": True}}


def tree_of(answer: dict[str, Any]) -> str:
    return json.dumps(answer["result"], ensure_ascii=False)


def test_two_passes_count_a_lone_frame_once(lone: Path) -> None:
    once, twice = (
        json.loads(tshark.run(lone, *passes, "-q", "-o", "tm3.statistics:json"))
        for passes in ([], ["-2"])
    )
    assert once["connections"][0]["up"]["messages"] == 2
    assert twice == once


def test_a_frame_that_is_looked_at_twice_in_a_row(lone: Path) -> None:
    """As in a live capture: the frame that came last is the one that is clicked."""
    for tree in map(tree_of, tshark.sharkd(lone, [click(1), click(1)])):
        assert "Order: in order" in tree
        assert "duplicate" not in tree
        assert "Hypertext Transfer Protocol" in tree


def test_a_reload_finds_the_same(tmp_path: Path) -> None:
    again = {"method": "load", "params": {"file": str(WEB)}}
    listed = {"method": "frames", "params": {"filter": "tm3"}}
    clicked = click(FIRST_MESSAGE)
    answers = tshark.sharkd(WEB, [clicked, listed, clicked, again, clicked, listed])
    before, list_before, _, _, after, list_after = answers
    assert "GET /index.html" in tree_of(before)
    assert tree_of(after) == tree_of(before)
    assert list_after["result"] == list_before["result"]


BODY = b"~" * 60_000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\nContent-Type: text/plain\r\n\r\n" + BODY
PART = 1000
APART_US = 1_000_000


def pipes_of(capture: Capture, lp: str, count: int, time_us: int) -> list[TcpStream]:
    server = Endpoint("10.9.0.1", 6000)
    pipes = [TcpStream(capture, Endpoint(lp, 40_000 + n), server) for n in range(count)]
    for number, pipe in enumerate(pipes):
        pipe.open(time_us + number * 10)
    return pipes


def of(lp: str, rows: tshark.Rows) -> tshark.Rows:
    """Those of frames that this local proxy is sent."""
    return [row for row in rows if row[0] == lp]


PASSES = pytest.mark.parametrize(
    "passes", [["-2"], ["-2", "-R", "tcp"]], ids=["two", "two, with trees"]
)
# The second answer is so many parts behind; the local proxy's address.
BEHIND = {"middle": (10, "10.5.0.1"), "beginning": (60, "10.5.0.2")}


def play_side_by_side(capture: Capture, behind: int, lp: str, time_us: int) -> None:
    """Two answers, part by part in the same frames; the second is so many parts behind, so the
    frame that ends the first carries the middle or beginning of the second, in front of it."""
    pipes = pipes_of(capture, lp, 4, time_us)
    time_us += 1000
    for conn in (1, 2):
        asked = b"GET /%d HTTP/1.1\r\nHost: w\r\n\r\n" % conn
        pipes[0].up(time_us, m.syn(conn, "192.0.2.80", 80) + m.data(conn, 1, asked))
        time_us += 100
    parts = [ANSWER[at : at + PART] for at in range(0, len(ANSWER), PART)]
    for number in range(len(parts) + behind):
        raw = m.data(2, number - behind, parts[number - behind]) if number >= behind else b""
        raw += m.data(1, number, parts[number]) if number < len(parts) else b""
        pipes[number % 4].down(time_us, raw)
        time_us += 100


@pytest.fixture(scope="module")
def side_by_side(
    which_tshark: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tshark.Asked]:
    capture, path = Capture(), tmp_path_factory.mktemp("again") / "side.pcap"
    for number, (behind, lp) in enumerate(BEHIND.values()):
        play_side_by_side(capture, behind, lp, number * APART_US)
    capture.write(path)
    return path, tshark.asked(
        path, "ip.dst", "frame.number", "http.response.code", "http.file_data"
    )


@pytest.mark.parametrize("lp", [lp for _, lp in BEHIND.values()], ids=BEHIND)
@PASSES
def test_answers_are_there_at_the_second_look(
    side_by_side: tuple[Path, tshark.Asked], lp: str, passes: list[str]
) -> None:
    _, asked = side_by_side
    shown = ("-Y", "http.response")
    once = of(lp, asked(*shown))
    assert len(once) == 2
    assert [tshark.body(row[3]).encode() for row in once] == [BODY, BODY]
    assert of(lp, asked(*passes, *shown)) == once


def test_answers_are_there_when_clicked(side_by_side: tuple[Path, tshark.Asked]) -> None:
    path, asked = side_by_side
    numbers = [int(row[1]) for row in asked("-Y", "http.response")]
    assert len(numbers) == 4
    clicked = [*numbers, *reversed(numbers)]
    found = zip(clicked, tshark.sharkd(path, [click(n) for n in clicked]), strict=True)
    assert not [n for n, it in found if "Hypertext Transfer Protocol" not in tree_of(it)]


def record(kind: int, text: bytes) -> bytes:
    """Of TLS 1.2."""
    return bytes([kind, 3, 3]) + len(text).to_bytes(2, "big") + text


DNS_ASKED = b"\0\x13" + bytes.fromhex("000101000001000000000000") + b"\1w\0\0\x10\0\1"
DNS_TEXT = (
    b"\xc0\x0c\0\x10\0\1\0\0\0\0" + (20_000).to_bytes(2, "big") + (b"\xc7" + b"~" * 199) * 100
)
DNS_ANSWER = bytes.fromhex("000181800001000100000000") + b"\1w\0\0\x10\0\1" + DNS_TEXT
# Their answers come in parts, and their dissectors wait for the rest.
PROTOCOLS = {
    "dns": (53, DNS_ASKED, len(DNS_ANSWER).to_bytes(2, "big") + DNS_ANSWER),
    "tls": (443, record(22, b"\0"), record(23, b"~" * 16_000)),
    "http": (80, REQUEST, ANSWER),
    "http's head": (
        80,
        REQUEST,
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Any: " + b"~" * 6000 + b"\r\n\r\n",
    ),
}


LPS = {name: f"10.6.0.{number}" for number, name in enumerate(PROTOCOLS, 1)}


def play_beside_another(capture: Capture, name: str, time_us: int) -> None:
    """An answer over HTTP; in the frame that ends it another connection's begins, in front."""
    port, asked, answer = PROTOCOLS[name]
    pipes = pipes_of(capture, LPS[name], 4, time_us)
    time_us += 1000
    for conn, to, what in ((1, 80, REQUEST), (2, port, asked)):
        pipes[0].up(time_us, m.syn(conn, "192.0.2.80", to) + m.data(conn, 1, what))
        time_us += 100
    parts = [ANSWER[at : at + PART] for at in range(0, len(ANSWER), PART)]
    others = [answer[at : at + PART] for at in range(0, len(answer), PART)]
    for number in range(len(parts) + len(others)):
        behind = number - len(parts) + 1
        raw = m.data(2, behind, others[behind]) if 0 <= behind < len(others) else b""
        raw += m.data(1, number, parts[number]) if number < len(parts) else b""
        if raw:
            pipes[number % 4].down(time_us, raw)
            time_us += 100


@pytest.fixture(scope="module")
def beside_another(which_tshark: None, tmp_path_factory: pytest.TempPathFactory) -> tshark.Asked:
    capture, path = Capture(), tmp_path_factory.mktemp("again") / "beside.pcap"
    for number, name in enumerate(PROTOCOLS):
        play_beside_another(capture, name, number * APART_US)
    capture.write(path)
    return tshark.asked(
        *(path, "ip.dst", "frame.number", "http.response.code", "http.content_length"),
        *("dns.count.answers", "tls.record.length"),
    )


@pytest.mark.parametrize("lp", LPS.values(), ids=LPS)
@PASSES
def test_another_connection_takes_no_answer_away(
    beside_another: tshark.Asked, lp: str, passes: list[str]
) -> None:
    shown = ("-Y", "http.response or dns.flags.response == 1 or tls.record.content_type == 23")
    once = of(lp, beside_another(*shown))
    assert any(row[3] == "60000" for row in once)
    assert len(once) >= 2
    assert of(lp, beside_another(*passes, *shown)) == once
