# SPDX-License-Identifier: MIT
"""What payload the dissector holds: that of messages behind an open gap, and, of those that
waited, as much as the preference allows. It tells so itself, in its statistics."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

PIPES, PART, MB = 4, 4096, 1024 * 1024
COUNT = 40 * MB // PART
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
    write(path, range(COUNT))
    assert path.stat().st_size > 40 * MB
    found = memory(path, *(["-2"] if passes == "two" else []))
    assert found.pop("messages") == COUNT + 1
    assert set(found.values()) == {0}


def test_what_waited_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "swapped.pcap"
    write(path, swapped(COUNT))
    default = memory(path)
    assert default["held_bytes"] == 0
    assert default["held_bytes_max"] == PART
    assert default["kept_bytes"] == default["kept_bytes_max"] == 16 * MB
    none = memory(path, "-o", "tm3.keep_mb:0")
    assert none["kept_bytes"] == none["kept_bytes_max"] == 0


def test_an_open_gap_holds_what_is_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "gap.pcap"
    write(path, [0, *range(2, 100)])
    assert memory(path)["held_bytes"] == memory(path)["held_bytes_max"] == 98 * PART


def test_nothing_is_kept_that_goes_to_no_dissector(tmp_path: Path) -> None:
    """Without a SYN the destination is not known: nobody will ask for the bytes again."""
    path = tmp_path / "unknown.pcap"
    write(path, swapped(1000), syn=False)
    found = memory(path)
    assert found["held_bytes_max"] == PART
    assert found["held_bytes"] == found["kept_bytes_max"] == 0
