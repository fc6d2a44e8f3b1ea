# SPDX-License-Identifier: MIT
"""Content that its own dissector stumbles over: told so, and all else of the frame is there."""

from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

REQUEST = b"GET /behind HTTP/1.1\r\nHost: w\r\n\r\n"
# Bytes that end in the middle of what they announce, by port.
BAD = {
    1883: bytes([0, 9]) + bytes(9),
    1723: b"\0\0\0\x0c" + bytes(8),
    873: bytes(4),
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    capture, path = Capture(), tmp_path_factory.mktemp("bad") / "bad.pcap"
    for number, (port, body) in enumerate(BAD.items()):
        client = Endpoint(f"10.5.0.{number}", 40_000)
        pipe = TcpStream(capture, client, Endpoint("10.9.0.1", 6000))
        pipe.open(number * 10_000)
        spoilt = m.syn(1, "192.0.2.1", port) + m.data(1, 1, body)
        good = m.syn(2, "192.0.2.1", 80) + m.data(2, 1, REQUEST)
        pipe.up(number * 10_000 + 100, spoilt + good)
    capture.write(path)
    return path


@pytest.mark.parametrize("passes", ["one", "two"])
def test_the_rest_of_the_frame_is_there(bad: Path, passes: str) -> None:
    arguments = ["-2"] if passes == "two" else []
    fields = ["_ws.malformed", "http.request.uri", "tm3.conn"]
    rows = tshark.field_values(bad, fields, *arguments, "-Y", "tm3")
    assert [row[1:] for row in rows] == [["/behind", "1,1,2,2"]] * len(BAD)
    assert any("alformed" in row[0] for row in rows), rows
    tshark.run(bad, *arguments, "-V")
