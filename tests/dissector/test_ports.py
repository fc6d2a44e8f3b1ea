# SPDX-License-Identifier: MIT
"""Which streams are pipes: by port, by preference, by Decode As, by their looks. X11 stays X11."""

import random
import struct
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

SYN_AND_DATA = m.syn(5, "192.0.2.1", 30_000) + m.data(5, 1, b"hello")
ANSWER = m.data(5, 0, b"welcome") + m.fin(5, 1)
HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
TLS = bytes.fromhex("16030100330100002f0303") + bytes(32) + bytes.fromhex("000002c02f010000040000")


def x11_opens(order: bytes) -> bytes:
    form = ">" if order == b"B" else "<"
    return struct.pack(f"{form}cBHHHHH", order, 0, 11, 0, 0, 0, 0)


def protocols(
    tmp_path: Path,
    streams: list[tuple[int, bytes, bytes]],
    *arguments: str,
    script: Path | None = tshark.SCRIPT,
) -> list[str]:
    """What the info and protocol columns say of the first segment of each stream."""
    capture, path = Capture(), tmp_path / "ports.pcap"
    for number, (port, up, down) in enumerate(streams):
        client = Endpoint(f"10.3.{number >> 8}.{number & 255}", 40_000)
        tcp = TcpStream(capture, client, Endpoint("10.9.0.1", port))
        tcp.open(number * 10_000)
        tcp.up(number * 10_000 + 100, up)
        if down:
            tcp.down(number * 10_000 + 200, down)
    capture.write(path)
    fields = ["ip.src", "tcp.srcport", "_ws.col.Protocol"]
    found: dict[str, list[str]] = {}
    rows = tshark.field_values(path, fields, *arguments, "-Y", "tcp.len > 0", script=script)
    for source, _, protocol in rows:
        found.setdefault(source, []).append(protocol)
    return [found[f"10.3.{number >> 8}.{number & 255}"][0] for number in range(len(streams))]


def test_our_ports_are_ours_and_others_are_not_stolen(tmp_path: Path) -> None:
    rng = random.Random(1)
    streams = [
        (6000, SYN_AND_DATA, ANSWER),
        (6010, m.hello(b"s" * 16, 0, 1), m.welcome()),
        (6001, x11_opens(b"l"), b""),
        (80, HTTP, b""),
        (443, TLS, b""),
        (12_345, HTTP, b""),
        (12_345, TLS, b""),
        (12_345, bytes(64), b""),
        (12_345, b"\x05\x00" + bytes(7), b""),
        *((12_345, rng.randbytes(200), b"") for _ in range(200)),
        *((12_345, struct.pack("<HI", i, i) + rng.randbytes(30), b"") for i in range(200)),
    ]
    found = protocols(tmp_path, streams)
    assert found[:4] == ["TM³", "TM³", "X11", "HTTP"]
    assert found[2:] == protocols(tmp_path, streams, script=None)[2:]


def test_pipes_are_recognised_on_other_ports(tmp_path: Path) -> None:
    streams = [
        (7777, SYN_AND_DATA, ANSWER),
        (7778, m.syn(5, "192.0.2.1", 30_000), b""),
        (7779, m.hello(b"s" * 16, 0, 1), m.welcome()),
        (7777, m.data(9, 1, b"early data on the second pipe"), b""),
        (7780, m.data(9, 1, b"a") + m.data(9, 2, b"b") + m.fin(9, 3), b""),
    ]
    assert protocols(tmp_path, streams) == ["TM³"] * 5


@pytest.mark.parametrize("order", [b"B", b"l"])
def test_x11_on_6000_remains_x11(tmp_path: Path, order: bytes) -> None:
    capture, path = Capture(), tmp_path / "x11.pcap"
    tcp = TcpStream(capture, Endpoint("10.3.0.1", 40_000), Endpoint("10.9.0.1", 6000))
    tcp.open(0)
    tcp.up(100, x11_opens(order))
    form = ">" if order == b"B" else "<"
    tcp.up(200, struct.pack(f"{form}BBHI", 3, 0, 2, 77))
    capture.write(path)
    fields = ["_ws.col.Protocol", "x11.protocol-major-version", "x11.opcode", "tm3"]
    with_ours = tshark.field_values(path, fields, "-Y", "tcp.len > 0")
    assert with_ours == [["X11", "11", "", ""], ["X11", "", "3", ""]]
    again = tshark.field_values(path, fields, "-2", "-Y", "tcp.len > 0")
    assert again == with_ours


def test_the_ports_are_a_preference(tmp_path: Path) -> None:
    streams = [(6000, x11_opens(b"l"), b""), (6000, SYN_AND_DATA, b""), (9999, ANSWER, b"")]
    found = protocols(tmp_path, streams, "-o", "tm3.ports:7000,9999")
    assert found[0] == "X11"
    assert found[1] != "TM³"
    assert found[2] == "TM³"


def test_decode_as(tmp_path: Path) -> None:
    odd = m.data(9, 1, b"a")
    assert protocols(tmp_path, [(9998, odd, b"")]) == ["TCP"]
    assert protocols(tmp_path, [(9998, odd, b"")], "-d", "tcp.port==9998,tm3") == ["TM³"]
    assert protocols(tmp_path, [(6000, SYN_AND_DATA, b"")], "-d", "tcp.port==6000,x11") == ["X11"]


def test_pipes_of_a_session_is_a_preference(tmp_path: Path) -> None:
    """Two local proxies behind one address, told apart by the number of their pipes."""
    capture, path = Capture(), tmp_path / "two.pcap"
    streams = []
    for number in range(4):
        tcp = TcpStream(capture, Endpoint("10.3.0.1", 40_000 + number), Endpoint("10.9.0.1", 6000))
        tcp.open(number * 10)
        streams.append(tcp)
    streams[1].up(1000, m.syn(1, "192.0.2.1", 30_000))
    streams[3].up(2000, m.syn(1, "192.0.2.2", 30_000))
    streams[0].up(3000, m.data(1, 1, b"x"))
    streams[2].up(4000, m.data(1, 1, b"y"))
    capture.write(path)
    fields = ["tm3.session", "tm3.pipe", "tm3.stream"]
    found = tshark.field_values(path, fields, "-Y", "tm3", "-o", "tm3.session_pipes:2")
    assert found == [["1", "1", "0"], ["2", "1", "1"], ["1", "0", "0"], ["2", "0", "1"]]


def test_local_proxies_behind_one_address_are_told_apart(tmp_path: Path) -> None:
    """RP sends nothing before a group is complete: pipes opened later are another session's."""
    capture, path, streams = Capture(), tmp_path / "shared.pcap", []
    for number in range(4):
        tcp = TcpStream(capture, Endpoint("10.3.0.1", 40_000 + number), Endpoint("10.9.0.1", 6000))
        tcp.open(number // 2 * 10_000 + number * 10)
        streams.append(tcp)
    streams[1].up(1000, m.syn(1, "192.0.2.1", 30_000) + m.data(1, 1, b"x"))
    streams[0].down(2000, m.data(1, 0, b"answer") + m.data(1, 1, b"more"))
    streams[3].up(12_000, m.syn(1, "192.0.2.2", 30_000))
    streams[2].down(13_000, m.data(1, 0, b"other"))
    streams[0].up(14_000, m.data(1, 2, b"y"))
    capture.write(path)
    found = tshark.field_values(path, ["tm3.session", "tm3.pipe", "tm3.stream"], "-Y", "tm3")
    assert found == [
        ["1,1", "1,1", "0,0"], ["1,1", "0,0", "0,0"],
        ["2", "1", "1"], ["2", "0", "1"], ["1", "0", "0"],
    ]  # fmt: skip
    odd = tshark.field_values(path, ["frame.number"], "-Y", "tm3.expert")
    assert odd == []


def test_a_name_with_control_characters_is_one_cell(tmp_path: Path) -> None:
    name = "evil\t\x1b[31m\nname\x7f.example"
    capture, path = Capture(), tmp_path / "name.pcap"
    pipe = TcpStream(capture, Endpoint("10.3.0.1", 40_000), Endpoint("10.9.0.1", 6010))
    pipe.open(0)
    pipe.up(100, m.hello(b"s" * 16, 0, 1) + m.open_name(2, name, 80) + m.data(2, 1, b"x"))
    capture.write(path)
    fields = ["tm3.dst.name", "tm3.dst.port"]
    told = "evil??[31m?name?.example"
    for passes in ([], ["-2"]):
        (row,) = tshark.field_values(path, fields, *passes, "-Y", "tm3")
        assert row == [f"{told},{told}", "80,80"]
    shown = [tshark.run(path, *way) for way in (["-V"], ["-q", "-o", "tm3.statistics:table"])]
    assert all("\x1b" not in text and "\t[31m" not in text for text in shown)
