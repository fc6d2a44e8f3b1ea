# SPDX-License-Identifier: MIT
"""What payload the dissector holds: that of messages behind an open gap, a little of each HTTP
body on its way, and, of messages that waited, as much as the preference allows; if that is
nothing, only open gaps hold payload. It tells so itself, in its statistics."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

PIPES, PART, MB = 4, 4096, 1024 * 1024
LATE = 8  # messages in a row, of which the first comes last
# The discard port: no dissector has a use for the bytes, tshark is quick with them.
PORT = 9


def write(path: Path, numbers: Iterable[int], *, syn: bool = True) -> None:
    """A connection of messages with these numbers, dealt out to pipes in turn."""
    capture, body = Capture(), bytes(PART)
    pipes = []
    for number in range(PIPES):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    if syn:
        pipes[0].up(100, m.syn(1, "192.0.2.9", PORT))
    for at, number in enumerate(numbers):
        pipes[at % PIPES].down(1000 + at * 10, m.data(1, number, body))
    capture.write(path)


def memory(path: Path, *arguments: str) -> dict[str, int]:
    text = tshark.run(path, "-q", "-o", "tm3.statistics:json", *arguments, seconds=300)
    return json.loads(text)["memory"]


def swapped(count: int) -> list[int]:
    return [number ^ 1 for number in range(count)]


@pytest.mark.parametrize("passes", ["one", "two"])
def test_in_order_nothing_is_held(tmp_path: Path, passes: str) -> None:
    path = tmp_path / "ordered.pcap"
    count = 10 * MB // PART
    write(path, range(count))
    assert path.stat().st_size > 10 * MB
    found = memory(path, *(["-2"] if passes == "two" else []))
    assert found.pop("messages") == count + 1
    assert set(found.values()) == {0}


def test_what_waited_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    """Of 19 MB seven eighths wait."""
    path = tmp_path / "late.pcap"
    rows = range(0, 19 * MB // PART, LATE)
    write(path, [number for first in rows for number in (*range(first + 1, first + LATE), first)])
    default = memory(path)
    assert default["held_bytes"] == 0
    assert default["held_bytes_max"] == (LATE - 1) * PART
    assert default["kept_bytes"] == default["kept_bytes_max"] == 16 * MB
    none = memory(path, "-o", "tm3.keep_mb:0")
    assert none["kept_bytes"] == none["kept_bytes_max"] == 0


def test_an_open_gap_holds_what_is_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "gap.pcap"
    write(path, [0, *range(2, 100)])
    found = memory(path)
    assert found["held_bytes"] == found["held_bytes_max"] == 98 * PART


def test_nothing_is_kept_that_goes_to_no_dissector(tmp_path: Path) -> None:
    """Without a SYN the destination is not known: nobody will ask for the bytes again."""
    path = tmp_path / "unknown.pcap"
    write(path, swapped(1000), syn=False)
    found = memory(path)
    assert found["held_bytes_max"] == PART
    assert found["held_bytes"] == found["kept_bytes_max"] == 0


NONE_KEPT = ("-o", "tm3.keep_mb:0")
BODY = 300_000


def write_downloads(path: Path, count: int, whole: int, parts: int, *, apart: int = 0) -> None:
    """HTTP answers, `parts` messages of each; the first `whole` of them to their end. `apart`: of
    so many messages every second one comes before all those between them."""
    capture = Capture()
    pipes = []
    for number in range(PIPES):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    time_us = 1000
    for conn in range(1, count + 1):
        request = f"GET /{conn} HTTP/1.1\r\nHost: w\r\n\r\n".encode()
        pipes[0].up(time_us, m.syn(conn, "192.0.2.9", 80) + m.data(conn, 1, request))
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY + b"x" * BODY
        cut = [answer[at : at + PART] for at in range(0, len(answer), PART)]
        chunks = [m.data(conn, number, part) for number, part in enumerate(cut)]
        chunks = chunks if conn <= whole else chunks[:parts]
        order = [*range(1, apart, 2), *range(0, apart, 2), *range(apart, len(chunks))]
        for at, number in enumerate(order):
            pipes[at % PIPES].down(time_us + 10 + at * 10, chunks[number])
        time_us += 10_000
    capture.write(path)


def test_bodies_on_their_way_hold_little(tmp_path: Path) -> None:
    """16 KB of each, 4 MB of all; nothing if nothing is to be kept."""
    path = tmp_path / "bodies.pcap"
    write_downloads(path, 400, 2, 4)
    few = memory(path)
    assert 4 * MB - 16 * 1024 < few["held_bytes_max"] < 4 * MB + PART
    assert few["kept_bytes_max"] == 0
    none = memory(path, *NONE_KEPT)
    assert none["held_bytes_max"] == none["kept_bytes_max"] == 0
    sizes = tshark.field_values(path, ["http.content_length"], *NONE_KEPT, "-Y", "http.response")
    assert [int(row[0]) for row in sizes] == [BODY, BODY]


@pytest.mark.parametrize("passes", ["one", "two"])
def test_nothing_kept_nothing_lost(tmp_path: Path, passes: str) -> None:
    """Only the open gaps hold payload then, in both passes, and the content is the same."""
    path, apart = tmp_path / "apart.pcap", 20
    write_downloads(path, 20, 3, 30, apart=apart)
    arguments = ["-2"] if passes == "two" else []
    found = memory(path, *NONE_KEPT, *arguments)
    gap = apart // 2 * PART
    assert found.pop("messages") > 20 * 30
    assert found == {"held_bytes": 0, "held_bytes_max": gap, "kept_bytes": 0, "kept_bytes_max": 0}
    fields = ["frame.number", "http.response.code", "http.file_data", "tcp.reassembled.length"]
    shown = [
        tshark.field_values(path, fields, *arguments, *keep, "-Y", "http.response")
        for keep in (NONE_KEPT, ())
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 3
    assert "tm3.expert.not_kept" not in tshark.run(path, "-T", "json", "-Y", "tm3.expert.not_kept",
                                                   *arguments, *NONE_KEPT)  # fmt: skip
