# SPDX-License-Identifier: MIT
"""SOCKS5 as lp speaks it: CONNECT for IPv4 addresses and names, and a clear no to the rest."""

import random
import socket
from pathlib import Path

import pytest

from tests.relay.ends import (
    answers,
    echo,
    read_exactly,
    read_to_end,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
)
from tests.relay.netns import Namespace
from tests.relay.proxies import local_proxy, pair
from tests.relay.waiting import equals

UNREACHABLE_NETWORK = 3
UNREACHABLE_HOST = 4
NO_SUCH_COMMAND = 7
NO_SUCH_ADDRESS_TYPE = 8
NO_METHOD = b"\x05\xff"
LINES = 16  # of one client in 10 s


def refuses(ns: Namespace, request: bytes, code: int) -> None:
    with socks_greet(ns) as sock:
        sock.sendall(request)
        assert socks_reply(sock) == code
        assert read_to_end(sock, 5).how in ("eof", "reset")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connects(box: Namespace, tmp_path: Path, host: str) -> None:
    with (
        serving(box, echo) as server,
        pair(box, tmp_path),
        socks(box, host, server.port) as sock,
    ):
        answers(sock)


def test_request_in_single_bytes(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        pair(box, tmp_path),
        box.connect(("127.0.0.1", 1080)) as sock,
    ):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"\x05\x02\x00\x02":
            sock.sendall(bytes([byte]))
        assert read_exactly(sock, 2) == b"\x05\x00"
        for byte in socks_request("localhost", server.port):
            sock.sendall(bytes([byte]))
        assert socks_reply(sock) == 0
        answers(sock)


def test_everything_in_one_write(box: Namespace, tmp_path: Path) -> None:
    """A client that does not wait for the replies; what follows the request is payload."""
    with (
        serving(box, echo) as server,
        pair(box, tmp_path),
        box.connect(("127.0.0.1", 1080)) as sock,
    ):
        sock.sendall(b"\x05\x01\x00" + socks_request("127.0.0.1", server.port) + b"early bird")
        assert read_exactly(sock, 2) == b"\x05\x00"
        assert socks_reply(sock) == 0
        assert read_exactly(sock, 10) == b"early bird"


def test_what_is_not_supported_is_refused(box: Namespace, tmp_path: Path) -> None:
    with pair(box, tmp_path):
        refuses(box, socks_request("::1", 80), NO_SUCH_ADDRESS_TYPE)
        refuses(box, b"\x05\x01\x00\x07\x01\x02\x03\x04\x00\x50", NO_SUCH_ADDRESS_TYPE)
        refuses(box, socks_request("127.0.0.1", 80, command=2), NO_SUCH_COMMAND)
        refuses(box, socks_request("127.0.0.1", 80, command=3), NO_SUCH_COMMAND)
        refuses(box, socks_request("127.0.0.1", 80, command=99), NO_SUCH_COMMAND)
        refuses(box, socks_request("no-such-name.invalid", 80), UNREACHABLE_HOST)


def test_a_client_that_wants_a_password_is_told_no(box: Namespace, tmp_path: Path) -> None:
    with pair(box, tmp_path), box.connect(("127.0.0.1", 1080)) as sock:
        sock.sendall(b"\x05\x01\x02")
        assert read_exactly(sock, 2) == NO_METHOD
        assert read_to_end(sock, 5).how in ("eof", "reset")


def test_garbage_ends_only_its_connection(box: Namespace, tmp_path: Path) -> None:
    """The first of a client are told of one by one, and all are counted."""
    rng = random.Random(5)
    openings = [b"GET / HTTP/1.1\r\n\r\n", b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b"\x05\x00"]
    openings += [bytes([rng.choice((0, 4, 6, 255))]) + rng.randbytes(40) for _ in range(30)]
    with serving(box, echo) as server, pair(box, tmp_path) as proxies:
        for opening in openings:
            with box.connect(("127.0.0.1", 1080)) as sock:
                sock.sendall(opening)
                end = read_to_end(sock, 5)
                assert end.how in ("eof", "reset"), f"{opening!r}: {end}"
        assert len(proxies.lp.lines("does not speak SOCKS5")) == LINES
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock)


@pytest.mark.slow
def test_a_half_open_handshake_times_out(box: Namespace, tmp_path: Path) -> None:
    with pair(box, tmp_path):
        silent = box.connect(("127.0.0.1", 1080))
        halfway = socks_greet(box)
        halfway.sendall(b"\x05\x01\x00\x03\x20abc")
        for sock in (silent, halfway):
            with sock:
                end = read_to_end(sock, 45)
                assert end.how in ("eof", "reset"), end


def test_a_client_that_leaves_during_the_handshake_leaves_nothing(
    box: Namespace, tmp_path: Path
) -> None:
    with serving(box, echo) as server, pair(box, tmp_path) as proxies:
        whole = b"\x05\x01\x00" + socks_request("localhost", server.port)
        for length in range(len(whole)):
            with box.connect(("127.0.0.1", 1080)) as sock:
                sock.sendall(whole[:length])
        equals("lp's descriptors", proxies.lp.fd_count, proxies.lp_fds)


def test_without_rp_the_reply_says_so(box: Namespace, tmp_path: Path) -> None:
    """Once clearly refused while rp is away, and not left waiting."""
    with local_proxy(box, tmp_path, ready=r"^lp: .*127\.0\.0\.1:6000"):
        for _ in range(3):
            with socks_greet(box) as sock:
                sock.sendall(socks_request("127.0.0.1", 80))
                assert socks_reply(sock) == UNREACHABLE_NETWORK
                assert read_to_end(sock, 5).how in ("eof", "reset")
