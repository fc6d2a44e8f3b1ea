# SPDX-License-Identifier: MIT
"""--metrics: read by Prometheus' own parser, and by those who mean no good."""

import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.relay import records
from tests.relay.ends import echo, ending_of, read_exactly, read_to_end, serving, socks, unix
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, finish, program
from tests.relay.proxies import RP_READY, extended_pair, local_proxy, remote_proxy
from tests.relay.records import Record
from tests.relay.waiting import equals, until

PORT = 9600
DEADLINE_S = 5
CLIENTS = 8
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost:9600\r\n\r\n"
TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Figures:
    """What was exposed, by metric and labels."""

    value: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def of(self, name: str, **labels: object) -> float:
        return self.value[name, frozenset((key, str(value)) for key, value in labels.items())]

    def has(self, name: str) -> int:
        return sum(1 for known, _ in self.value if known == name)


def parsed(text: str) -> Figures:
    figures = Figures()
    for family in text_string_to_metric_families(text):
        assert family.type in ("counter", "gauge") and family.documentation, family
        assert family.name not in figures.kinds, f"{family.name} is there twice"
        figures.kinds[family.name] = family.type
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample
            key = sample.name, frozenset(sample.labels.items())
            assert key not in figures.value, f"{key} is there twice"
            figures.value[key] = sample.value
    return figures


def exchanged(sock: socket.socket, request: bytes = GET) -> tuple[str, dict[str, str], str]:
    """Status, headers and body of the answer; the connection ends behind it."""
    sock.sendall(request)
    told = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, body = told.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    return status, headers, body


def scraped(box: Namespace) -> Figures:
    with box.connect(("127.0.0.1", PORT)) as sock:
        status, headers, body = exchanged(sock)
    assert (status, headers["Content-Type"]) == ("HTTP/1.1 200 OK", TYPE)
    return parsed(body)


def differing(figures: Figures, record: Record) -> list[str]:
    """Of a record of a pipe, the fields that --metrics tells otherwise."""
    names = ("session", "path", "pipe", "transport")
    labels = {name: record[name] for name in names}
    told_apart = ("type", "time", *names, "state", "cc")
    found = []
    for name, value in record.items():
        if name in told_apart:
            continue
        kind = figures.kinds[f"tm3_pipe_{name}"]
        if figures.of(f"tm3_pipe_{name}" + "_total" * (kind == "counter"), **labels) != value:
            found.append(name)
    return found


def test_the_same_as_the_statistics(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    rp = [*records.soon(stats), "--metrics", str(PORT)]
    with (
        serving(box, echo) as server,
        extended_pair(box, tmp_path, pipes=2, rp=rp) as proxies,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        sock.sendall(b"x" * 100_000)
        assert read_exactly(sock, 100_000) == b"x" * 100_000

        def same() -> bool:
            figures = scraped(box)
            newest = records.last_of_pipes(stats)
            return len(newest) == 2 and not any(differing(figures, pipe) for pipe in newest)

        until("both to tell the same of the pipes", same)
        figures = scraped(box)
        assert figures.of("tm3_pipe_rx_bytes_total", session=1, path=0, pipe=0, transport="tcp") > 0
        assert figures.of("tm3_info", program="rp", version="0.1.0") == 1
        assert figures.of("tm3_session_info", session=1, peer="127.0.0.1") == 1
        assert figures.of("tm3_session_pipes", session=1) == 2
        assert figures.of("tm3_session_connections", session=1) == 1
        assert figures.of("tm3_connections_now") == figures.of("tm3_sessions_now") == 1
        assert figures.of("tm3_tx_bytes_total") > 100_000
        sock.close()
        proxies.lp.stop()
        until("the session to end", lambda: records.of(stats, "counters"))
        figures = scraped(box)
        assert figures.of("tm3_sessions_now") == figures.of("tm3_connections_now") == 0
        assert figures.of("tm3_sessions_total") == 1
        assert not figures.has("tm3_pipe_tx_bytes_total")
        # What the process has counted outlives the session it was of.
        last = [pipe for pipe in records.of(stats, "pipe") if pipe["state"] == "end"]
        for name in ("tx_bytes", "rx_bytes", "tx_messages", "rx_messages", "segments"):
            assert figures.of(f"tm3_{name}_total") >= sum(pipe[name] for pipe in last) > 0, name
        (counters,) = records.of(stats, "counters")
        for name in counters.keys() - {"type", "time", "session"}:
            assert figures.of(f"tm3_{name}_total") == counters[name], name
        ends = [record["end"] for record in records.of(stats, "conn")]
        assert len(ends) == 1
        assert figures.of("tm3_connections_ended_total", end=ends[0]) == 1


def test_lp_and_a_path(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "lp.sock"
    with remote_proxy(box, tmp_path, "--listen", "127.0.0.1", pipes=3):
        with local_proxy(box, tmp_path, "--metrics", str(path), pipes=3) as lp:
            lp.expect(f"^lp: metrics on {path}$")
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            until("three pipes", lambda: asked(path).of("tm3_session_pipes", session=1) == 3)
            peer = "127.0.0.1:6010"
            assert asked(path).of("tm3_session_info", session=1, peer=peer) == 1
        assert not path.exists()


def asked(path: Path) -> Figures:
    """No page of a browser reaches a path: any Host will do."""
    with unix(path) as sock:
        status, _, body = exchanged(sock, b"GET /metrics HTTP/1.1\r\nHost: rp.example\r\n\r\n")
    assert status == "HTTP/1.1 200 OK"
    return parsed(body)


@contextmanager
def alone(box: Namespace, tmp_path: Path, *argv: str, name: str = "rp") -> Iterator[Program]:
    command = [binary("rp"), *argv, "--listen", "127.0.0.1", "1"]
    with program(box, command, tmp_path / f"{name}.log", name="rp", ready=RP_READY) as rp:
        yield rp


def test_limits(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    argv = (*records.soon(stats), "--metrics", str(PORT), "--allow", "192.0.2.0/24")
    with alone(box, tmp_path, *argv):
        for _ in range(3):
            assert ending_of(box, 6000).how == "reset"
        until("the record", lambda: [it for it in records.of(stats, "limits") if it["allow"] == 3])
        (limits,) = records.of(stats, "limits")[-1:]
        figures = scraped(box)
        for name in limits.keys() - {"type", "time"}:
            assert figures.of("tm3_limits_total", limit=name) == limits[name], name


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.0\n\n", "200 OK"),
        (b"GET /metrics?x=y HTTP/1.1\r\nAccept: a\r\n\r\n", "200 OK"),
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200 OK"),
        (b"GET /metrics HTTP/1.1\r\nhost:[::1]:80 \r\n\r\n", "200 OK"),
        (b"GET /metrics HTTP/1.0\nHOST:\tLocalhost\n\n", "200 OK"),
        (b"GET /metrics HTTP/1.1\r\nA: b\r\nHost: rebound.example\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost: rebound.example:9600\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost.example\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.example\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n", "403 Forbidden"),
        (b"GET /metrics HTTP/1.1\r\nHost: ::1\r\nHost: x\r\n\r\n", "403 Forbidden"),
        (b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n", "403 Forbidden"),
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics\r\n\r\n", "400 Bad Request"),
        (b"GET http://x/metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"get /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"\r\n\r\n", "400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\x01", "400 Bad Request"),  # somebody speaks TLS
        (b"GET /\0 HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"GET /" + b"x" * 100_000, "400 Bad Request"),
        (b"A" * 20, "400 Bad Request"),
    ],
    ids=lambda value: ascii(value[:24]) if isinstance(value, bytes) else None,
)
def test_requests(box: Namespace, tmp_path: Path, request_: bytes, status: str) -> None:
    with (
        alone(box, tmp_path, "--metrics", f"[::1]:{PORT}"),
        box.connect(("::1", PORT)) as sock,
    ):
        told, headers, _ = exchanged(sock, request_)
        assert told == f"HTTP/1.1 {status}"
        assert headers["Connection"] == "close"


def test_slow_and_silent_ones(box: Namespace, tmp_path: Path) -> None:
    """They hold a few places for a few seconds, and no scraper has to wait for them."""
    with alone(box, tmp_path, "--metrics", str(PORT)) as rp, ExitStack() as stack:
        idle, memory = rp.fd_count(), rp.rss_kib()
        many = [stack.enter_context(box.connect(("127.0.0.1", PORT))) for _ in range(100)]
        for sock in many[::2]:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        equals("descriptors", rp.fd_count, idle + CLIENTS)
        started = time.monotonic()
        assert scraped(box).of("tm3_sessions_now") == 0
        assert time.monotonic() - started < DEADLINE_S - 1
        assert rp.fd_count() <= idle + CLIENTS
        assert {read_to_end(sock, 1).how for sock in many[:90]} <= {"eof", "reset"}
        assert rp.rss_kib() < memory + 4096
        equals("descriptors", rp.fd_count, idle, DEADLINE_S + 5)


def test_who_does_not_read(box: Namespace, tmp_path: Path) -> None:
    with (
        alone(box, tmp_path, "--metrics", str(PORT), "--max-sessions", "99",
              "--max-sessions-each", "99") as rp,
        ExitStack() as stack,
    ):  # fmt: skip
        for _ in range(90):
            stack.enter_context(box.connect(("127.0.0.1", 6000)))
        until("90 sessions", lambda: scraped(box).of("tm3_sessions_now") == 90)
        figures = scraped(box)
        assert figures.of("tm3_sessions_left_out") == 26
        assert figures.has("tm3_session_info") == figures.has("tm3_pipe_cwnd") == 64
        idle = rp.fd_count()
        with box.entered(), socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            sock.connect(("127.0.0.1", PORT))
            sock.sendall(GET)
            equals("descriptors", rp.fd_count, idle + 1)
            equals("descriptors", rp.fd_count, idle, DEADLINE_S + 5)


# --- what is in the way ---


def in_the_way(box: Namespace, where: str) -> str:
    argv = [binary("rp"), "--listen", "127.0.0.1:6001", "--metrics", where, "1"]
    code, out, err = finish(argv, box, 10)
    lines = err.splitlines()
    assert (code, out, len(lines)) == (2, "", 1), err
    assert lines[0].startswith("rp: --metrics: cannot listen"), err
    return lines[0]


def test_an_address_of_somebody(box: Namespace, tmp_path: Path) -> None:
    with alone(box, tmp_path, "--metrics", str(PORT)):
        assert "Address already in use" in in_the_way(box, str(PORT))
        assert scraped(box).of("tm3_sessions_now") == 0


def test_a_path_of_somebody(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "rp.sock"
    path.write_text("a file")
    assert "something is there that is no socket" in in_the_way(box, str(path))
    assert path.read_text() == "a file"
    path.unlink()
    with alone(box, tmp_path, "--metrics", str(path)):
        assert "another process listens there" in in_the_way(box, str(path))
        assert asked(path).of("tm3_sessions_now") == 0
    assert not path.exists()


def test_what_a_killed_one_left(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "rp.sock"
    with alone(box, tmp_path, "--metrics", str(path)) as rp:
        rp.kill()
    assert path.is_socket()
    with alone(box, tmp_path, "--metrics", str(path), name="again"):
        assert asked(path).of("tm3_sessions_now") == 0
    assert not path.exists()


def test_a_path_that_is_anothers_by_now(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "rp.sock"
    with alone(box, tmp_path, "--metrics", str(path)):
        path.unlink()
        path.write_text("somebody's")
    assert path.read_text() == "somebody's"


def test_as_another_user(box: Namespace, tmp_path: Path) -> None:
    nobody = 65534
    path = tmp_path / "run" / "rp.sock"
    path.parent.mkdir()
    os.chown(path.parent, nobody, nobody)
    for folder in tmp_path.parents[:2]:
        assert folder.stat().st_uid == 0
    with alone(box, tmp_path, "--user", "nobody", "--metrics", str(path)) as rp:
        assert (path.stat().st_uid, path.stat().st_gid) == (nobody, nobody)
        assert asked(path).of("tm3_sessions_now") == 0
        rp.send_signal(signal.SIGHUP)
        rp.expect("SIGHUP: going on")
        assert asked(path).of("tm3_sessions_now") == 0
