# SPDX-License-Identifier: MIT
"""What connections carry, found by Wireshark's own dissectors, whatever way it took."""

import json
import random
import struct
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

REQUESTS = 12


def exchange(number: int) -> tuple[bytes, bytes]:
    request = f"GET /page/{number}?x={'y' * (number * 90)} HTTP/1.1\r\nHost: w{number}\r\n\r\n"
    body = (f"answer {number} " * 3000)[: 1 + number * 2500]
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return request.encode(), (answer + body).encode()


def split(rng: random.Random, raw: bytes) -> list[bytes]:
    parts = []
    while raw:
        size = rng.choice([3, 100, 700, 1440, 4096])
        parts.append(raw[:size])
        raw = raw[size:]
    return parts


def ways(rng: random.Random, raw: bytes, conn: int, first: int) -> list[bytes]:
    return [m.data(conn, first + n, part) for n, part in enumerate(split(rng, raw))]


def send_shuffled(rng: random.Random, pipes: list[TcpStream], chunks: list[bytes], time_us: int,
                  up: bool) -> int:  # fmt: skip
    """Neighbours change places, several share a segment, each pair of them on some pipe."""
    order = sorted(range(len(chunks)), key=lambda at: at + rng.choice([0, 0, 1.5, 4]))
    while order:
        count = rng.randint(1, 3)
        some, order = order[:count], order[count:]
        time_us += 300
        rng.choice(pipes).send(time_us, b"".join(chunks[at] for at in some), up)
    return time_us


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Requests and answers over four pipes, every message anywhere; several at once."""
    rng = random.Random(5)
    capture, path = Capture(), tmp_path_factory.mktemp("content") / "web.pcap"
    pipes = []
    for number in range(4):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    for number in range(REQUESTS):
        request, answer = exchange(number)
        uplink = [m.syn(number + 1, "192.0.2.80", 80), *ways(rng, request, number + 1, 1)]
        time_us = send_shuffled(rng, pipes, uplink, 1000 + number * 7000, True)
        send_shuffled(rng, pipes, ways(rng, answer, number + 1, 0), time_us, False)
    capture.write(path)
    return path


@pytest.mark.parametrize("passes", ["one", "two"])
def test_http_is_filtered_and_whole(web: Path, passes: str) -> None:
    arguments = ["-2"] if passes == "two" else []
    fields = ["http.request.uri", "http.host", "http.file_data"]
    rows = tshark.field_values(web, fields, *arguments, "-Y", "http")
    uris = {uri for row in rows for uri in row[0].split(",") if uri}
    assert uris == {exchange(n)[0].decode().split()[1] for n in range(REQUESTS)}
    bodies = sorted(len(tshark.body(cell)) for row in rows for cell in row[2].split(",") if cell)
    assert bodies == sorted(1 + n * 2500 for n in range(REQUESTS)) or len(bodies) >= REQUESTS
    one = tshark.field_values(
        web, ["tm3.dst.ip"], *arguments, "-Y", 'http.request and http.request.uri == "/page/0?x="'
    )
    assert len(one) == 1


def test_bodies_are_byte_for_byte(web: Path, tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    tshark.run(web, "-q", "--export-objects", f"http,{folder}")
    found = sorted(path.read_bytes() for path in folder.iterdir())
    assert found == sorted(exchange(n)[1].split(b"\r\n\r\n", 1)[1] for n in range(REQUESTS))


def test_columns_tell_both(web: Path) -> None:
    rows = tshark.columns(web, "-Y", "http.request")
    assert {row[0] for row in rows} == {"TM³/HTTP"}
    assert all("GET /page/" in row[1] and "↑ data" in row[1] for row in rows)


def test_handing_on_is_a_preference(web: Path) -> None:
    assert tshark.field_values(web, ["http"], "-Y", "http", "-o", "tm3.content:FALSE") == []


def dns_over_tcp(name: str) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", 1, 1)
    return struct.pack(">H", len(query)) + query


def tls_hello(name: str) -> bytes:
    raw = name.encode()
    listed = b"\0" + struct.pack(">H", len(raw)) + raw
    extension = struct.pack(">HHH", 0, len(listed) + 2, len(listed)) + listed
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\xc0\x2f" + b"\1\0"
    body += struct.pack(">H", len(extension)) + extension
    hello = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(hello)) + hello


def test_tls_dns_and_a_body_that_ends_with_the_connection(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "more.pcap"
    pipes = []
    for number in range(2):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    hello, query = tls_hello("www.example.org"), dns_over_tcp("example.net")
    pipes[1].up(1000, m.data(2, 1, hello[:40]))
    pipes[0].up(2000, m.syn(2, "192.0.2.1", 443) + m.data(2, 2, hello[40:]))
    pipes[0].up(3000, m.syn(3, "192.0.2.53", 53) + m.data(3, 1, query))
    pipes[0].up(4000, m.syn(4, "192.0.2.1", 80) + m.data(4, 1, b"GET /old HTTP/1.0\r\n\r\n"))
    pipes[1].down(5000, m.data(4, 1, b"until the end"))
    pipes[1].down(6000, m.fin(4, 2))
    pipes[0].down(7000, m.data(4, 0, b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"))
    capture.write(path)
    fields = ["tls.handshake.extensions_server_name", "dns.qry.name", "http.file_data"]
    for arguments in ([], ["-2"]):
        rows = tshark.field_values(path, fields, *arguments, "-Y", "tls or dns or http")
        cells = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
        assert cells[0] == ["www.example.org"]
        assert cells[1] == ["example.net"]
        assert "until the end" in tshark.body(cells[2][0])


def test_bodies_are_the_same_however_they_are_announced(tmp_path: Path) -> None:
    """One connection, one answer after the other: with a length (one of them not to be believed,
    as it answers HEAD), in chunks, several in one message, and one cut off by the capture's end.
    Two passes, and one, and the answers themselves agree; so do the frames that they end in."""
    rng, head = random.Random(9), b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    bodies = [bytes(rng.choices(b"abcdefgh \n", k=size)) for size in (90_000, 7, 40_000, 33_333, 5)]
    plain = [head + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    for at in range(0, len(bodies[2]), 8000):
        chunked += b"1f40\r\n" + bodies[2][at : at + 8000] + b"\r\n"
    to_head = head + b"Content-Length: 70000\r\n\r\n"
    answers = [plain[0], to_head, plain[1] + plain[3], chunked + b"0\r\n\r\n", plain[0] + plain[4],
               plain[2][:25_000]]  # fmt: skip
    capture, path = Capture(), tmp_path / "bodies.pcap"
    pipes = []
    for number in range(4):
        client = Endpoint("10.5.0.1", 40_000 + number)
        pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
        pipes[-1].open(number * 10)
    pipes[0].up(1000, m.syn(1, "192.0.2.1", 80))
    number, time_us = 0, 2000
    for count, answer in enumerate(answers, 1):
        how = "HEAD" if answer is to_head else "GET"
        request = f"{how} /{count} HTTP/1.1\r\nHost: w\r\n\r\n"
        pipes[0].up(time_us, m.data(1, count, request.encode()))
        parts = [answer[at : at + 1440] for at in range(0, len(answer), 1440)]
        chunks = [m.data(1, number + n, part) for n, part in enumerate(parts)]
        number += len(chunks)
        time_us = send_shuffled(rng, pipes, chunks, time_us + 100, up=False) + 100
    capture.write(path)
    fields = ["frame.number", "http.response.code", "http.content_length", "http.file_data"]
    rows = tshark.field_values(path, fields, "-Y", "http.response")
    assert rows == tshark.field_values(path, fields, "-2", "-Y", "http.response")
    said = "".join(tshark.body(cell) for row in rows for cell in row[3].split(","))
    text = [body.decode().replace("\n", "\\n") for body in bodies]
    for body in (text[0], text[1], text[3], text[2], text[4]):
        assert body in said
    assert sum(row[1].count("200") for row in rows) == 7


def test_any_order_of_clicks(web: Path) -> None:
    """The same frame looks the same whichever was looked at before, and as tshark -2 has it."""
    count = len(tshark.field_values(web, ["frame.number"]))
    rng = random.Random(3)
    clicks = [rng.randint(1, count) for _ in range(3 * count)]
    requests = [{"method": "frame", "params": {"frame": n, "proto": True}} for n in clicks]
    seen: dict[int, str] = {}
    for number, answer in zip(clicks, tshark.sharkd(web, requests), strict=True):
        tree = json.dumps(answer["result"])
        assert seen.setdefault(number, tree) == tree, f"frame {number}"
    shown = {number for number, tree in seen.items() if "Hypertext Transfer Protocol" in tree}
    wanted = {int(row[0]) for row in tshark.field_values(web, ["frame.number"], "-2", "-Y", "http")}
    assert shown == wanted & set(seen)
    assert len(shown) > REQUESTS
