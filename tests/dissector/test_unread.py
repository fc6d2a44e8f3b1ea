# SPDX-License-Identifier: MIT
"""What nobody reads is handed on only where it is shown; what somebody reads always is."""

import json
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture
from tests.dissector.scenes import Scene

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

UNKNOWN, ECHO = 40404, 7
COUNT = 300
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


def make(path: Path, port: int, *payloads: bytes) -> Path:
    """One connection with these answers, then small ones up to COUNT in all."""
    capture = Capture()
    scene = Scene(capture, "10.7.0.1", 0)
    scene.open(2)
    scene.up(0, m.syn(1, "192.0.2.1", port), m.data(1, 1, b"?"))
    for number in range(COUNT):
        payload = payloads[number] if number < len(payloads) else b"%05d" % number
        scene.down(number % 2, m.data(1, number, payload))
    capture.write(path)
    return path


def handed_on(capture: Path, *arguments: str) -> int:
    text = tshark.run(capture, "-q", "-2", "-o", "tm3.statistics:json", *arguments)
    return json.loads(text)["segments_made"]


def test_what_nobody_reads_costs_little(tmp_path: Path) -> None:
    assert handed_on(make(tmp_path / "a.pcap", UNKNOWN)) < 30
    assert handed_on(make(tmp_path / "b.pcap", ECHO)) > COUNT


def test_what_is_shown_is_all_there(tmp_path: Path) -> None:
    """With a filter, two passes and fields alike: nothing is left out of the frames."""
    capture = make(tmp_path / "a.pcap", UNKNOWN)
    for arguments in (("-Y", "data"), ("-2", "-Y", "data"), ("-2", "-R", "data")):
        rows = tshark.field_values(capture, ["data.data"], *arguments)
        assert len(rows) == COUNT + 1, arguments
        assert bytes.fromhex(rows[-1][0].replace(":", "")) == b"%05d" % (COUNT - 1)


def test_a_protocol_on_a_port_of_its_own_is_read(tmp_path: Path) -> None:
    """HTTP is told by its looks, wherever it is: its name is in the packet list."""
    rows = tshark.columns(make(tmp_path / "a.pcap", UNKNOWN, *[ANSWER] * 40))
    assert sum(row[0] == "TM³/HTTP" for row in rows) >= 35


def test_many_small_messages_are_told_the_same(tmp_path: Path) -> None:
    """The packet list and the statistics are as they are with nothing left out."""
    plain, shown = make(tmp_path / "a.pcap", UNKNOWN), make(tmp_path / "b.pcap", ECHO)
    one, other = tshark.columns(plain), tshark.columns(shown)
    assert [row[1].partition(" | ")[0].replace("40404", "7") for row in one] == [
        row[1].partition(" | ")[0] for row in other
    ]
