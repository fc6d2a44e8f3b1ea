# SPDX-License-Identifier: MIT
"""Pipes over SCTP: each message is one user message; packets bundle them, in any order."""

import ipaddress
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

LP, RP = Endpoint("10.5.0.1", 40_000), Endpoint("10.9.0.1", 6000)
DATA, INIT, INIT_ACK, SHUTDOWN = 0, 1, 2, 7
WHOLE, FIRST, LAST, UNORDERED = 3, 2, 1, 4
IN_ORDER, EARLY, LATE = "1", "2", "3"


def chunk(kind: int, flags: int, body: bytes) -> bytes:
    raw = struct.pack(">BBH", kind, flags, 4 + len(body)) + body
    return raw + bytes(-len(raw) % 4)


def sctp_packet(src: Endpoint, dst: Endpoint, tag: int, *chunks: bytes) -> bytes:
    sctp = struct.pack(">HHII", src.port, dst.port, tag, 0) + b"".join(chunks)
    addresses = b"".join(ipaddress.IPv4Address(each.address).packed for each in (src, dst))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(sctp), 0, 0x4000, 64, 132, 0) + addresses
    return b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x08\0" + ip + sctp


@dataclass
class Association:
    capture: Capture
    client: Endpoint = LP
    server: Endpoint = RP
    tsn: dict[bool, int] = field(default_factory=lambda: {True: 100, False: 900})

    def packet(self, time_us: int, up: bool, *chunks: bytes) -> None:
        near, far = (self.client, self.server) if up else (self.server, self.client)
        self.capture.add(time_us, sctp_packet(near, far, 7 if up else 8, *chunks))

    def open(self, time_us: int) -> None:
        self.packet(time_us, True, chunk(INIT, 0, struct.pack(">IIHHI", 8, 1 << 16, 4, 4, 100)))
        self.packet(
            time_us + 1, False, chunk(INIT_ACK, 0, struct.pack(">IIHHI", 7, 1 << 16, 4, 4, 900))
        )

    def data(self, up: bool, raw: bytes, flags: int = WHOLE | UNORDERED, ppid: int = 0) -> bytes:
        head = struct.pack(">IHHI", self.tsn[up], 1, 0, ppid)
        self.tsn[up] += 1
        return chunk(DATA, flags, head + raw)


def write(path: Path) -> None:
    """Bundles, a message over two packets, two of those in one packet; HTTP inside."""
    capture = Capture()
    sctp = Association(capture)
    sctp.open(0)
    request = b"GET /over/sctp HTTP/1.1\r\nHost: w\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"
    parts = [head + b"x" * 3000, b"y" * 3000, b"z" * 3000]
    first = sctp.data(True, m.syn(1, "192.0.2.80", 80))
    sctp.packet(1000, True, first, sctp.data(True, m.data(1, 1, request)))
    pieces = []
    for number in (1, 0):
        raw = m.data(1, number, parts[number])
        half = len(raw) // 2
        pieces.append(sctp.data(False, raw[:half], FIRST | UNORDERED))
        pieces.append(sctp.data(False, raw[half:], LAST | UNORDERED))
    sctp.packet(2000, False, pieces[0])
    sctp.packet(3000, False, pieces[2])
    sctp.packet(4000, False, pieces[1], pieces[3])
    sctp.packet(5000, False, sctp.data(False, m.data(1, 2, parts[2])))
    sctp.packet(6000, True, sctp.data(True, m.fin(1, 2)), sctp.data(True, m.data(2, 1, b"early")))
    sctp.packet(7000, True, sctp.data(True, m.syn(2, "192.0.2.2", 9)))
    sctp.packet(8000, True, chunk(SHUTDOWN, 0, struct.pack(">I", 900)))
    capture.write(path)


@pytest.mark.parametrize("passes", ["one", "two"])
def test_bundles_and_fragments(tmp_path: Path, passes: str) -> None:
    path, arguments = tmp_path / "sctp.pcap", ["-2"] if passes == "two" else []
    write(path)
    rows = [each for _, each in tshark.messages(path, *arguments)]
    assert [(r["tm3.conn"], r["tm3.direction"], r["tm3.seq"], r["tm3.order"]) for r in rows] == [
        ("1", "1", "0", IN_ORDER), ("1", "1", "1", IN_ORDER),
        ("1", "2", "1", EARLY), ("1", "2", "0", LATE), ("1", "2", "2", IN_ORDER),
        ("1", "1", "2", IN_ORDER), ("2", "1", "1", EARLY), ("2", "1", "0", LATE),
    ]  # fmt: skip
    assert all(tshark.experts(row) == [] for row in rows)
    fields = ["http.request.uri", "http.content_length", "http.file_data"]
    (asked, answered) = tshark.field_values(path, fields, *arguments, "-Y", "http")
    assert asked[0] == "/over/sctp"
    assert answered[1] == "9000"
    assert tshark.body(answered[2]).endswith("yz" + "z" * 2999)


def test_the_list_and_the_statistics(tmp_path: Path) -> None:
    path = tmp_path / "sctp.pcap"
    write(path)
    rows = tshark.columns(path, "-Y", "tm3")
    assert rows[0] == ["TM³/HTTP", "1↑ SYN to 192.0.2.80:80; 1↑ data 1, 36 bytes | "
                       "GET /over/sctp HTTP/1.1 "]  # fmt: skip
    assert all("TSN" not in info for _, info in rows)
    found = json.loads(tshark.run(path, "-q", "-o", "tm3.statistics:json"))
    (pipe,) = found["pipes"]
    assert pipe["carrier"] == "sctp"
    assert (pipe["up"]["messages"], pipe["down"]["messages"]) == (5, 3)
    sizes = tshark.field_values(path, ["frame.len"], "-Y", "ip.src == 10.5.0.1")
    assert pipe["up"]["wire_bytes"] == sum(int(row[0]) for row in sizes)
    assert "tcp_resent" not in pipe["up"]
    tshark.run(path, "-q", "-o", "tm3.statistics:table")


def write_extension(path: Path, uses: int) -> list[str]:
    """Messages with their counts as PPIDs, beside M3UA, whose PPID is 3. What they say."""
    capture = Capture()
    sctp = Association(capture, server=Endpoint("10.9.0.1", 6010))
    other = Association(capture, Endpoint("10.5.0.1", 40_001), Endpoint("10.9.0.1", 2905))
    beat = struct.pack(">BBBBI", 1, 0, 3, 3, 8)  # M3UA: BEAT
    other.packet(0, True, other.data(True, beat, ppid=3))
    sctp.open(100)
    sctp.packet(1000, True, sctp.data(True, m.hello(b"s" * 16, 0, 1), WHOLE))
    sctp.packet(1001, False, sctp.data(False, m.welcome(), WHOLE))
    messages = [m.open_name(5, "example.org", 49_999)]
    messages += [m.data(5, number, b"abc") for number in range(1, uses)]
    for count, raw in enumerate(messages, 1):
        sctp.packet(2000 + count, True, sctp.data(True, raw, ppid=count))
    sctp.packet(9000, False, sctp.data(False, m.synack(5), ppid=1))
    sctp.packet(9001, False, sctp.data(False, m.window(5, 1 << 17), ppid=2))
    other.packet(9002, True, other.data(True, beat, ppid=3))
    capture.write(path)
    said = [
        "OPEN 0 of 5 to example.org:49999",
        *(f"data {number}, 3 bytes" for number in range(1, uses)),
    ]
    return said


@pytest.mark.parametrize("passes", ["one", "two"])
def test_the_extension_s_counts_are_no_protocols(tmp_path: Path, passes: str) -> None:
    """Wireshark knows protocols for most PPIDs up to 75; what is on other ports stays theirs."""
    path, arguments = tmp_path / "extension.pcap", ["-2"] if passes == "two" else []
    said = write_extension(path, 90)
    rows = tshark.columns(path, *arguments)
    first, _, _, hello, welcome, *counted, synack, window, last = rows
    assert first[0] == last[0] == "M3UA (RFC 4666)", "not ours to read"
    assert (hello, welcome) == (["TM³", "↑ HELLO: pipe 0 of 1"], ["TM³", "↓ WELCOME: new"])
    assert {protocol for protocol, _ in (*counted, synack, window)} == {"TM³"}
    assert [info.replace("5↑", "↑").split("↑ ")[1] for _, info in counted] == said
    found = [each for _, each in tshark.messages(path, *arguments)]
    assert len(found) == len(said) + 4
    assert all(tshark.experts(row) == [] for row in found)
    assert [row["tm3.order"] for row in found[2:-2]] == [IN_ORDER] * len(said)


def test_a_session_of_both(tmp_path: Path) -> None:
    """The same ports over TCP and over SCTP: two pipes of one session, until one of them ends."""
    capture, path = Capture(), tmp_path / "both.pcap"
    sctp, tcp = Association(capture), TcpStream(capture, LP, RP)
    sctp.open(0)
    tcp.open(10)
    tcp.up(1000, m.syn(1, "192.0.2.2", 9) + m.data(1, 2, b"early"))
    sctp.packet(2000, True, sctp.data(True, m.data(1, 1, b"late")))
    sctp.packet(3000, True, chunk(SHUTDOWN, 0, struct.pack(">I", 900)))
    sctp.open(4000)
    sctp.packet(5000, True, sctp.data(True, m.syn(1, "192.0.2.3", 9)))
    capture.write(path)
    rows = [each for _, each in tshark.messages(path, "-2")]
    names = ("tm3.session", "tm3.pipe", "tm3.order")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("1", "1", IN_ORDER), ("1", "1", EARLY), ("1", "0", LATE), ("2", "0", IN_ORDER),
    ]  # fmt: skip
