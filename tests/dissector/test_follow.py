# SPDX-License-Identifier: MIT
"""A connection followed across its pipes, byte for byte, and one row a message."""

import csv
import io
import json
import random
from pathlib import Path

import pytest

from tests.dissector import generator, tshark
from tests.dissector import messages as m
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

REQUEST = b"GET /all HTTP/1.1\r\nHost: w\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"
WORDS = {"syn": "SYN", "fin": "FIN", "data": "data"}


@pytest.fixture(scope="module", params=[80, 9, 6001], ids=["http", "discard", "x11's port"])
def download(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, bytes]:
    """Two downloads at once over three pipes, out of order; the second is to be followed."""
    rng, capture = random.Random(3), Capture()
    path = tmp_path_factory.mktemp("follow") / "two.pcap"
    answers = [HEAD + rng.randbytes(50_000) for _ in range(2)]
    pipes, time_us = [], 1000
    for number in range(3):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    for conn in (1, 2):
        time_us += 10
        opening = m.syn(conn, "192.0.2.80", request.param)
        pipes[conn].up(time_us, opening + m.data(conn, 1, REQUEST))
    chunks = []
    for conn, answer in enumerate(answers, 1):
        parts = [answer[at : at + 1400] for at in range(0, len(answer), 1400)]
        chunks += [(n + rng.random() * 6, m.data(conn, n, part)) for n, part in enumerate(parts)]
    for _, raw in sorted(chunks):
        time_us += 20
        rng.choice(pipes).down(time_us, raw)
    capture.write(path)
    return path, answers[1]


@pytest.mark.parametrize("passes", [[], ["-2"]], ids=["one", "two"])
def test_every_byte_in_order(download: tuple[Path, bytes], passes: list[str]) -> None:
    path, answer = download
    text = tshark.run(path, *passes, "-q", "-o", "tm3.follow:1")
    title, *lines = text.splitlines()
    assert title.startswith("TM³ connection 1 to 192.0.2.80:")
    up = b"".join(bytes.fromhex(line) for line in lines if not line.startswith("\t"))
    down = b"".join(bytes.fromhex(line) for line in lines if line.startswith("\t"))
    assert (up, down) == (REQUEST, answer)


def test_a_row_a_message(tmp_path: Path) -> None:
    sessions, capture, frame_of = generator.make_sessions(5, 20)
    path = tmp_path / "rows.pcap"
    capture.write(path)
    text = tshark.run(path, "-q", "-o", "tm3.statistics:csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    again = tshark.run(path, "-q", "-2", "-o", "tm3.statistics:jsonl")
    objects = [json.loads(line) for line in again.splitlines()]
    sent = [message for session in sessions for message in session.sent()]
    assert len(rows) == len(objects) == len(sent)
    wanted = sorted(
        (frame_of[each.packet], each.conn.id, "up" if each.up else "down", each.number,
         WORDS[each.kind], len(each.payload), each.held_us) for each in sent
    )  # fmt: skip
    for found in (rows, objects):
        told = sorted(
            (int(row["frame"]), int(row["id"]), row["direction"], int(row["number"]),
             row["type"], int(row["bytes"]), round(float(row["held_s"]) * 1e6)) for row in found
        )  # fmt: skip
        assert told == wanted
    waits = sorted(each.wait_us for each in sent if each.order != "copy" and each.wait_us)
    told_waits = [round(float(row["wait_s"]) * 1e6) for row in rows if row["wait_s"]]
    assert sorted(wait for wait in told_waits if wait) == waits
