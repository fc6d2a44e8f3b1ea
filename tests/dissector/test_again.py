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
