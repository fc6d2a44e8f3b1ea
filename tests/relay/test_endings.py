# SPDX-License-Identifier: MIT
"""How connections end: an orderly end arrives as one, and so does a reset.

Over the extension, but for what the baseline alone does: it knows no half-closed connection, and a
reader that stops holds up the others.
"""

import socket
import time
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.ends import (
    Ending,
    Handler,
    Server,
    read_exactly,
    read_to_end,
    reset,
    sending,
    serving,
    socks,
)
from tests.relay.netns import Namespace
from tests.relay.proxies import extended_pair, pair
from tests.relay.waiting import equals, until

BULK = payload.seeded(8_000_000, seed=11)
WHOLE = Ending("eof", len(BULK), payload.digest(BULK))


def ended(stats: Path) -> list[str]:
    return [str(record["end"]) for record in records.of(stats, "conn")]


def resetting(data: bytes) -> Handler:
    """A handler that waits for one byte, sends `data` and resets."""

    def handler(sock: socket.socket) -> None:
        read_exactly(sock, 1)
        sock.sendall(data)
        reset(sock)

    return handler


def test_server_fin_after_all_its_bytes(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "lp.jsonl"
    with (
        serving(box, sending(BULK)) as server,
        extended_pair(box, tmp_path, lp=["--stats", str(stats)]),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        assert read_to_end(sock) == WHOLE
    assert ended(stats) == ["peer-fin"]


def test_client_fin_after_all_its_bytes(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "lp.jsonl"
    with (
        serving(box, read_to_end) as server,
        extended_pair(box, tmp_path, lp=["--stats", str(stats)]),
    ):
        with socks(box, "127.0.0.1", server.port) as sock:
            sock.sendall(BULK)
        assert server.results.get(timeout=20) == WHOLE
    assert ended(stats) == ["local-fin"]


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_server_reset_is_a_reset_for_the_client(box: Namespace, tmp_path: Path, size: int) -> None:
    stats = tmp_path / "lp.jsonl"
    with (
        serving(box, resetting(b"x" * size)) as server,
        extended_pair(box, tmp_path, lp=["--stats", str(stats)]),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        sock.sendall(b"!")
        assert read_to_end(sock).how == "reset"
    assert ended(stats) == ["peer-reset"]


def test_client_reset_is_a_reset_for_the_server(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"

    def handler(sock: socket.socket) -> Ending:
        sock.sendall(b"!")
        return read_to_end(sock)

    with serving(box, handler) as server, extended_pair(box, tmp_path, rp=["--stats", str(stats)]):
        sock = socks(box, "127.0.0.1", server.port)
        read_exactly(sock, 1)
        reset(sock)
        end = server.results.get(timeout=10)
        assert isinstance(end, Ending) and end.how == "reset", end
    assert ended(stats) == ["peer-reset"]


def test_client_closes_in_mid_download(box: Namespace, tmp_path: Path) -> None:
    """The server, still sending, sees its peer go; nothing stays behind."""

    def endless(sock: socket.socket) -> str:
        try:
            while True:
                sock.sendall(BULK)
        except ConnectionError as error:
            return type(error).__name__

    with serving(box, endless) as server, extended_pair(box, tmp_path) as proxies:
        sock = socks(box, "127.0.0.1", server.port)
        read_exactly(sock, 1_000_000)
        sock.close()
        assert server.results.get(timeout=10) in ("ConnectionResetError", "BrokenPipeError")
        proxies.settled()


def test_server_closes_in_mid_upload(box: Namespace, tmp_path: Path) -> None:
    def handler(sock: socket.socket) -> None:
        read_exactly(sock, 1_000_000)

    with serving(box, handler) as server, extended_pair(box, tmp_path) as proxies:
        with socks(box, "127.0.0.1", server.port) as sock, pytest.raises(ConnectionError):
            for _ in range(200):
                sock.sendall(BULK)
        proxies.settled()


def test_slow_reader_gets_everything_before_the_end(box: Namespace, tmp_path: Path) -> None:
    """The server is long gone when the client reads: no byte may be lost for that."""
    data = BULK[:3_000_000]
    with (
        serving(box, sending(data)) as server,
        extended_pair(box, tmp_path),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        got = b""
        for _ in range(10):
            got += read_exactly(sock, 50_000)
            time.sleep(0.05)  # what makes it slow
        end = read_to_end(sock)
        assert (end.how, len(got) + end.size) == ("eof", len(data))
        assert end.sha256 == payload.digest(data[len(got) :])


def test_bytes_under_way_reach_a_client_that_still_sends(box: Namespace, tmp_path: Path) -> None:
    """close() with unread bytes would reset, and with that destroy what the client has not got."""
    data = BULK[:400_000]
    with (
        serving(box, sending(data)) as server,
        extended_pair(box, tmp_path, lp=["--forward", f"7000:127.0.0.1:{server.port}"]),
        box.open_socket() as sock,
    ):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", 7000))
        got = b""
        while len(got) < len(data):
            sock.sendall(b"more of the request")
            block = sock.recv(2048)
            assert block, f"an end after {len(got)} of {len(data)} bytes"
            got += block
        assert got == data


def test_a_client_that_ends_first_still_gets_only_what_was_sent(
    box: Namespace, tmp_path: Path
) -> None:
    """Baseline knows no half-open connection: the end crosses data that is under way."""
    data = BULK[:2_000_000]
    with serving(box, sending(data)) as server, pair(box, tmp_path) as proxies:
        for _ in range(10):
            with socks(box, "127.0.0.1", server.port) as sock:
                sock.sendall(b"request")
                sock.shutdown(socket.SHUT_WR)
                end = read_to_end(sock)
                assert end.how in ("eof", "reset"), end
                assert end.sha256 == payload.digest(data[: end.size])
            assert isinstance(server.results.get(timeout=10), Ending | OSError)
        proxies.settled()


HALF_CLOSED = 300_000


def half_closed(box: Namespace, server: Server) -> Ending:
    """What an application sees that ends its side right behind its request."""
    with socks(box, "127.0.0.1", server.port) as sock:
        sock.sendall(b"request")
        sock.shutdown(socket.SHUT_WR)
        return read_to_end(sock)


@pytest.mark.parametrize("thinks_s", [0.0, 0.3])
def test_a_lost_answer_is_no_clean_end(box: Namespace, tmp_path: Path, thinks_s: float) -> None:
    """All or a part of the answer comes behind the application's end. It must not look whole."""

    def handler(sock: socket.socket) -> Ending:
        assert read_exactly(sock, 7) == b"request"
        time.sleep(thinks_s)  # a server that takes its time
        sock.sendall(BULK[:HALF_CLOSED])
        sock.shutdown(socket.SHUT_WR)
        return read_to_end(sock)

    with serving(box, handler) as server, pair(box, tmp_path):
        for _ in range(5):
            end = half_closed(box, server)
            assert end.how == "reset" or end.size == HALF_CLOSED, end


def test_who_half_closes_for_no_answer_sees_a_clean_end(box: Namespace, tmp_path: Path) -> None:
    """An upload, say: the server reads to the end and goes."""
    with serving(box, read_to_end) as server, pair(box, tmp_path):
        assert half_closed(box, server).how == "eof"
        assert server.results.get(timeout=10).how == "eof"


def test_a_stalled_reader_holds_up_others_for_a_short_while_only(
    box: Namespace, tmp_path: Path
) -> None:
    """Past 16 MiB in order the stalled connection is reset after 2 s without progress."""

    def endless(sock: socket.socket) -> None:
        try:
            while True:
                sock.sendall(BULK)
        except OSError:
            return

    stats = tmp_path / "lp.jsonl"
    with (
        serving(box, endless) as flood,
        serving(box, sending(BULK)) as server,
        pair(box, tmp_path, lp=records.soon(stats), asan=False),
    ):
        stalled = socks(box, "127.0.0.1", flood.port)
        read_exactly(stalled, 1000)
        until("the stalled connection to be ended", lambda: "limit" in ended(stats), 15)
        assert read_to_end(stalled).how == "reset"
        stalled.close()
        with socks(box, "127.0.0.1", server.port) as sock:
            assert read_to_end(sock) == WHOLE


def test_ids_last_through_many_short_connections(box: Namespace, tmp_path: Path) -> None:
    """More connections than lp has ids for at rest at once; each gets its own answer."""

    def handler(sock: socket.socket) -> None:
        sock.sendall(read_exactly(sock, 8)[::-1])

    with (
        serving(box, handler) as server,
        extended_pair(box, tmp_path, lp=["--forward", f"7000:127.0.0.1:{server.port}"]) as proxies,
    ):
        for n in range(1500):
            with box.connect(("127.0.0.1", 7000)) as sock:
                sock.sendall(n.to_bytes(8, "big"))
                assert read_exactly(sock, 8) == n.to_bytes(8, "little")
        equals("rp's descriptors", proxies.rp.fd_count, proxies.rp_fds)
