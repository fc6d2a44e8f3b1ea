# SPDX-License-Identifier: MIT
"""Pipes of a session may come from several addresses; what they carry is one connection still."""

from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

SESSION = b"sixteen bytes id"
BODY = b"some words" * 30
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY)
REQUEST = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"


def test_an_answer_over_two_addresses_is_one(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "a.pcap"
    server = Endpoint("10.9.0.1", 6010)
    pipes = [TcpStream(capture, Endpoint(f"10.7.{n}.1", 40_000), server) for n in range(2)]
    for number, pipe in enumerate(pipes):
        pipe.open(number * 100)
        pipe.up(number * 100 + 10, m.hello(SESSION, number, 2))
        pipe.down(number * 100 + 20, m.welcome())
    pipes[0].up(1000, m.open_name(1, "www.example.org", 80) + m.data(1, 1, REQUEST))
    pipes[0].down(2000, m.synack(1) + m.data(1, 1, HEAD + BODY[:100]))
    pipes[0].down(3000, m.data(1, 2, BODY[100:200]))
    pipes[1].down(4000, m.data(1, 3, BODY[200:]))
    capture.write(path)
    fields = ["http.file_data", "frame.number", "ip.src", "ip.dst"]
    for passes in ((), ("-2",)):
        (row,) = tshark.field_values(path, fields, *passes, "-Y", "http.response")
        assert tshark.body(row[0]) == BODY.decode()
        # What the frame itself says of its addresses is as it was.
        assert row[2:] == ["10.9.0.1", "10.7.1.1"]
    rows = tshark.columns(path)
    assert any("TM³/HTTP" in row[0] and "200 OK" in row[1] for row in rows)
