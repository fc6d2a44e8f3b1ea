# SPDX-License-Identifier: MIT
"""Captures whose packets were cut short: each message whose header was captured is read."""

from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

SNAPLEN, HEADERS, MSS = 96, 54, 1448
DOWNLINK = "2"
IN_ORDER, EARLY, LATE = "1", "2", "3"


def down(pipe: TcpStream, time_us: int, raw: bytes) -> int:
    for at in range(0, len(raw), MSS):
        time_us += 10
        pipe.down(time_us, raw[at : at + MSS])
    return time_us


def opened(capture: Capture, count: int = 1) -> list[TcpStream]:
    pipes = []
    for number in range(count):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    pipes[0].up(1000, m.syn(1, "192.0.2.1", 9) + m.data(1, 1, b"request"))
    return pipes


def read(path: Path, *arguments: str) -> list[tuple[str, str]]:
    rows = [row for _, row in tshark.messages(path, *arguments) if "tm3.seq" in row]
    return [(r["tm3.seq"], r["tm3.order"]) for r in rows if r["tm3.direction"] == DOWNLINK]


@pytest.mark.parametrize("passes", ["one", "two"])
def test_messages_longer_than_a_segment(tmp_path: Path, passes: str) -> None:
    capture, path, time_us = Capture(), tmp_path / "cut.pcap", 2000
    (pipe,) = opened(capture)
    for number in range(31):
        time_us = down(pipe, time_us, m.data(1, number, bytes(4096)))
    capture.write(path, SNAPLEN)
    found = read(path, *(["-2"] if passes == "two" else []))
    assert found == [(str(number), IN_ORDER) for number in range(31)]


@pytest.mark.parametrize("passes", ["one", "two"])
def test_messages_that_begin_anywhere(tmp_path: Path, passes: str) -> None:
    """Of messages joined to full segments, all that follow one whose header was captured."""
    capture, path = Capture(), tmp_path / "joined.pcap"
    (pipe,) = opened(capture)
    # The first two end 20 bytes into a segment; the third's header is not captured, the fifth
    # begins a segment again.
    sizes = [MSS - 8 + 20, MSS - 8, MSS - 20 - 8 - 100, 92 + MSS, MSS - 8, MSS - 8]
    raw = b"".join(m.data(1, number, bytes(size)) for number, size in enumerate(sizes))
    down(pipe, 2000, raw)
    capture.write(path, SNAPLEN)
    found = read(path, *(["-2"] if passes == "two" else []))
    assert found == [("0", IN_ORDER), ("1", IN_ORDER), ("2", IN_ORDER), ("4", EARLY), ("5", EARLY)]


@pytest.mark.parametrize("captured", [8, 9, 30])
def test_messages_of_the_extension(tmp_path: Path, captured: int) -> None:
    """Of what was not captured nothing is said: neither that it is no HELLO, nor that no WELCOME
    came."""
    capture, path = Capture(), tmp_path / "extension.pcap"
    pipe = TcpStream(capture, Endpoint("10.5.0.1", 40_000), Endpoint("10.9.0.1", 6010))
    pipe.open(0)
    pipe.up(1000, m.hello(b"s" * 16, 0, 1))
    pipe.down(2000, m.welcome())
    pipe.up(3000, m.open_name(2, "a.name.that.is.longer.than.that", 80))
    capture.write(path, HEADERS + captured)
    rows = [row for _, row in tshark.messages(path)]
    assert [row["tm3.len"] for row in rows] == ["44", "31", "51"]
    assert [tshark.experts(row) for row in rows] == [[], [], []]


def test_over_two_pipes(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "two.pcap"
    pipes = opened(capture, 2)
    down(pipes[0], 2000, m.data(1, 1, bytes(4096)))
    down(pipes[1], 3000, m.data(1, 0, bytes(4096)))
    capture.write(path, SNAPLEN)
    assert read(path, "-2") == [("1", EARLY), ("0", LATE)]
