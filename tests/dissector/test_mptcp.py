# SPDX-License-Identifier: MIT
"""Pipes over several subflows of MPTCP: read in the order of their data, or not at all."""

import json
import random
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.mptcp import DOWN, UP, Pipe, two_ways
from tests.dissector.packets import Capture

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

BODY = b"".join(b"%07d " % number for number in range(6400))
HEAD = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
REQUEST = b"GET /object HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
PART, SEGMENT = 4000, 1400
SAMPLE = tshark.TOP / "dissector" / "samples" / "mptcp.pcap"


def answer() -> list[bytes]:
    """The messages of RP."""
    text = HEAD + BODY
    parts = [text[at : at + PART] for at in range(0, len(text), PART)]
    return [m.data(1, number, part) for number, part in enumerate(parts)] + [m.fin(1, len(parts))]


def play(pipe: Pipe, seed: int) -> None:
    """A request, and the answer in segments on both subflows, one of which is slower."""
    rng = random.Random(seed)
    pipe.send(100, 1, (m.syn(1, "192.0.2.1", 80) + m.data(1, 1, REQUEST))[:20], UP)
    pipe.send(110, 0, (m.syn(1, "192.0.2.1", 80) + m.data(1, 1, REQUEST))[20:], UP)
    raw, clock, free = b"".join(answer()), 1000, [0, 0]
    for at in range(0, len(raw), SEGMENT):
        clock += 10
        subflow = rng.randrange(2)
        # In order on its subflow.
        free[subflow] = max(free[subflow] + 1, clock + (0, 3000)[subflow])
        pipe.send(free[subflow], subflow, raw[at : at + SEGMENT], DOWN)
        if rng.random() < 0.1:
            free[1 - subflow] = max(free[1 - subflow] + 1, free[subflow] + rng.randint(-50, 5000))
            raw_again = raw[at : at + SEGMENT]
            pipe.send(free[1 - subflow], 1 - subflow, raw_again, DOWN, again=True)


def numbers(capture: Path, *arguments: str) -> list[tuple[str, int, int]]:
    """Direction, number and payload's size of each message, as they became due in the pipe."""
    return [
        (row["tm3.direction"], int(row["tm3.seq"]), int(row.get("tm3.payload.len", 0)))
        for _, row in tshark.messages(capture, *arguments)
    ]


def what_was_sent() -> list[tuple[str, int, int]]:
    down = [("2", number, len(raw) - 8) for number, raw in enumerate(answer())]
    return [("1", 0, 0), ("1", 1, len(REQUEST)), *down[:-1], ("2", down[-1][1], 0)]


@pytest.mark.parametrize("seed", range(4))
def test_both_subflows_are_one_pipe(tmp_path: Path, seed: int) -> None:
    capture, path = Capture(), tmp_path / "a.pcap"
    pipe = two_ways(capture)
    pipe.open(0)
    play(pipe, seed)
    capture.write(path)
    for passes in ((), ("-2",)):
        assert numbers(path, *passes) == what_was_sent()
        (row,) = tshark.field_values(path, ["http.file_data"], *passes, "-Y", "http.response")
        assert tshark.body(row[0]) == BODY.decode()
    found = json.loads(tshark.run(path, "-q", "-o", "tm3.statistics:json"))
    assert len(found["pipes"]) == 1 and len(found["connections"]) == 1
    assert found["pipes"][0]["down"]["payload_bytes"] == len(HEAD + BODY)
    assert found["pipes"][0]["down"]["held_ms"]["max"] >= 1
    assert found["connections"][0]["down"]["duplicates"] == 0


def test_a_real_one(tmp_path: Path) -> None:
    """Linux at both ends, 4 and 3 Mbit/s: what was loaded comes out whole."""
    tshark.run(SAMPLE, "-q", "-2", "--export-objects", f"http,{tmp_path}")
    loaded = (bytes(range(256)) * 500)[:100_000]
    assert (tmp_path / "large").read_bytes() == loaded
    assert (tmp_path / "index.html").read_bytes().startswith(b"<html><body>TM3")
    assert not tshark.messages(SAMPLE, "-Y", "tm3.expert")


def test_who_joins_what_is_not_there_is_not_read(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "a.pcap"
    pipe = two_ways(capture)
    pipe.open(0)
    play(pipe, 1)
    capture.packets = [
        each for each in capture.packets if b"\x0a\x08\x01\x01" not in each[2][26:34]
    ]
    capture.write(path)
    assert numbers(path) == []
    for passes in ((), ("-2",)):
        said = tshark.field_values(path, ["frame.number"], *passes, "-Y", "tm3.expert.mptcp")
        assert len(said) > 10


@pytest.mark.parametrize("seed", range(4))
def test_from_the_middle_nothing_is_invented(tmp_path: Path, seed: int) -> None:
    """Nobody knows then which subflows go together."""
    capture, path = Capture(), tmp_path / "a.pcap"
    play(two_ways(capture), seed)
    capture.write(path)
    assert set(numbers(path)) <= set(what_was_sent())
    assert tshark.field_values(path, ["frame.number"], "-Y", "tm3.expert.mptcp")
