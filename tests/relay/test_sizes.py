# SPDX-License-Identifier: MIT
"""rp --sizes http: it reads what a server says of its answers, and changes nothing.

A server that lies of its answer's size may have it come late, never otherwise.
"""

import socket
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.ends import read_exactly, read_to_end, sending, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import EXTENDED, local_proxy, remote_proxy
from tests.relay.two_paths import ALLOW

BODY = payload.seeded(200_000)
SIZES = (0, 1, 100, len(BODY) - 1, len(BODY), len(BODY) + 1, 1 << 50, (1 << 50) + 1, 1 << 80)


def head(size: int | str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: %s\r\n\r\n" % str(size).encode()


ANSWERS = [head(size) + BODY for size in SIZES] + [
    head("5, 5") + BODY,
    head("-1") + BODY,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffffff\r\n" + BODY,
    BODY,
    b"H" * 100_000,
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000,
    (head(7) + b"0123456") * 5_000,
]


def every_answer(sock: socket.socket) -> None:
    """Each as it is asked for, by a byte; of the last one the end follows."""
    while which := sock.recv(1):
        sock.sendall(ANSWERS[which[0]])


@pytest.mark.parametrize("conns", ["las", "srpt"])
def test_no_byte_is_another(box: Namespace, tmp_path: Path, conns: str) -> None:
    sizes = ("--sizes", "http", "--conn-policy")
    with (
        remote_proxy(box, tmp_path, *ALLOW, *sizes, conns, "--path-policy", "ecf"),
        local_proxy(box, tmp_path, *sizes, "srpt", ready=EXTENDED),
        serving(box, every_answer) as server,
        socks(box, "127.0.0.1", server.port) as first,
    ):
        first.settimeout(30)
        for which, answer in enumerate(ANSWERS):
            with socks(box, "127.0.0.1", server.port) as sock:
                sock.settimeout(30)
                for asked in (first, sock):
                    asked.sendall(bytes([which]))
                for asked in (first, sock):
                    assert read_exactly(asked, len(answer)) == answer, answer[:60]


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        (head(7) + b"012", "less bytes came than it said of its size"),
        (head(7) + b"0123456 and more", "more bytes came than its Content-Length said"),
        (head("5, 5") + b"01234", "its Content-Length is no number, or two of them"),
        (head(7) + b"0123456", None),
    ],
)
def test_who_lies_is_named(box: Namespace, tmp_path: Path, answer: bytes, how: str | None) -> None:
    with (
        remote_proxy(box, tmp_path, *ALLOW, "--sizes", "http", "--conn-policy", "srpt") as rp,
        local_proxy(box, tmp_path, ready=EXTENDED),
        serving(box, sending(answer)) as server,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        assert read_to_end(sock).size == len(answer)
        where = f"to 127.0.0.1:{server.port}: an HTTP answer has another size than it says: "
        if how:
            rp.expect(where + how)
        else:
            assert not rp.lines("an HTTP answer has another size")


def test_it_needs_a_policy_that_asks(box: Namespace) -> None:
    code, out, err = finish([binary("rp"), "--sizes", "http", "4"], box, 10)
    assert (code, out) == (2, "")
    assert "--sizes http goes with a policy that goes by sizes only" in err
