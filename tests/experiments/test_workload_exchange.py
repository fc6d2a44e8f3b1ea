# SPDX-License-Identifier: MIT
"""Client and server of the transfers on loopback: wrong and missing bytes do not pass."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from base.sources import ROOT
from experiments.workloads import serve
from experiments.workloads.exchange import (
    REPLY_BYTES,
    REQUEST_BYTES,
    Connection,
    CutShort,
    Refused,
    Reply,
    Request,
    read_exactly,
)
from experiments.workloads.pattern import WrongByte, piece

Handler = Callable[[socket.socket], None]


@contextmanager
def serving(handler: Handler) -> Iterator[tuple[str, int]]:
    """One connection, handled in a thread."""
    with serve.listener("127.0.0.1", "0") as listener:

        def run() -> None:
            sock, _ = listener.accept()
            with sock:
                handler(sock)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(timeout=10)
        assert not thread.is_alive()


def honest(sock: socket.socket) -> None:
    while serve.exchange(sock):
        pass


def test_sizes_of_the_heads() -> None:
    request = Request("cubic", 1, 2, 3, 4, 5, 6)
    assert Request.parsed(request.packed()) == request
    assert Request.parsed(queries(80).packed()) == queries(80)
    assert len(request.packed()) == REQUEST_BYTES
    reply = Reply("bbr", 7, 8, right=False)
    assert Reply.parsed(reply.packed()) == reply
    assert len(reply.packed()) == REPLY_BYTES


def test_exchanges_on_one_connection() -> None:
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        for up, down in ((0, 0), (1, 0), (0, 1), (700_000, 700_000), (16_384, 5)):
            seen: list[int] = []
            times = connection.exchange(Request("cubic", up, 11, down, 12), seen.append)
            assert connection.began <= connection.connected <= times.asked
            assert times.asked <= times.first <= times.last
            assert (seen or [0])[-1] == down


def test_frames_come_when_they_are_due() -> None:
    """No byte of a frame is there before its time, which runs since the request."""
    request = Request("cubic", down=4_000, frame_bytes=1_000, interval_us=30_000)
    came: list[tuple[float, int]] = []
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        asked = connection.exchange(
            request, lambda done: came.append((time.monotonic(), done))
        ).asked
    assert came[-1][1] == 4_000
    for seen, done in came:
        assert seen - asked >= 0.03 * ((done - 1) // 1_000), came


def answering(data: bytes, reply: Reply | None = None) -> Handler:
    """A server that says that it has everything and then sends `data`."""

    def handler(sock: socket.socket) -> None:
        request = Request.parsed(read_exactly(sock, REQUEST_BYTES))
        if request.up:
            read_exactly(sock, request.up)
        sock.sendall((reply or Reply("cubic", request.up, 0)).packed() + data)

    return handler


RIGHT = piece(12, 0, 1_000)
WRONG = RIGHT[:500] + bytes([RIGHT[500] ^ 1]) + RIGHT[501:]


@pytest.mark.parametrize(
    ("handler", "error", "says"),
    [
        (answering(WRONG), WrongByte, "byte 500 is"),
        (answering(piece(13, 0, 1_000)), WrongByte, "byte 0 is"),
        (answering(RIGHT[:-1]), CutShort, "after 999 of 1000 bytes"),
        (answering(b""), CutShort, "after 0 of 1000 bytes"),
        (answering(RIGHT, Reply("cubic", 29, 0)), WrongByte, "got 29 of 30 bytes"),
        (answering(RIGHT, Reply("cubic", 30, 0, right=False)), WrongByte, "30 of 30 bytes right"),
        (answering(RIGHT, Reply("bbr", 30, 0)), Refused, "is bbr, not cubic"),
        (answering(RIGHT, Reply("", 0, 0)), WrongByte, "got 0"),
    ],
)
def test_a_server_that_lies(handler: Handler, error: type[Exception], says: str) -> None:
    with serving(handler) as at, Connection(at, "cubic", seconds=10) as connection:
        with pytest.raises(error, match=says):
            connection.exchange(Request("cubic", up=30, down=1_000, down_start=12))


def test_an_upload_with_a_wrong_byte_is_seen_by_the_server() -> None:
    request = Request("cubic", up=100, up_start=5)
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        connection.sock.sendall(request.packed() + piece(6, 0, 100))
        with pytest.raises(WrongByte, match="the server got 0 of 100 bytes right"):
            connection.reply(request)


def test_an_upload_that_ends_early_is_not_acknowledged() -> None:
    request = Request("cubic", up=100, up_start=5)
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        connection.sock.sendall(request.packed() + piece(5, 0, 60))
        connection.sock.shutdown(socket.SHUT_WR)
        with pytest.raises(WrongByte, match="the server got 60 of 100"):
            connection.reply(request)


def test_a_congestion_control_that_is_not_there() -> None:
    with pytest.raises(OSError):
        Connection(("127.0.0.1", 9), "no-such")


def queries(up: int) -> Request:
    return Request("cubic", up=up, up_start=11, down=up, down_start=7, frame_bytes=40, queries=True)


def test_the_course_s_server_outlives_a_wrong_request() -> None:
    """Of nonsense, of a name that is none, of a congestion control that is not there or not all."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        at = found.getsockname()
    argv = [sys.executable, "-m", "experiments.workloads.walkthrough", "server", str(at[1]), "1"]
    right = Request("cubic", 5, 1, 5, 2).packed()
    names = (b"\xff".ljust(16, b"\0"), b"none".ljust(16, b"\0"), b"cubic\0x".ljust(16, b"\0"))
    wrong = [b"G" * REQUEST_BYTES, *(right[:4] + it + right[20:] for it in names)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        try:
            assert server.stderr.readline().startswith(b"server: ready")
            for data in wrong:
                with socket.create_connection(at, 10) as sock:
                    sock.sendall(data)
                assert server.stderr.readline().startswith(b"server: 127.0.0.1: "), data
            with Connection(at, "cubic", seconds=10) as connection:
                connection.exchange(Request("cubic", 5, 1, 5, 2))
            assert server.stderr.readline() == b"server: 1 of 1 for 127.0.0.1\n"
        finally:
            server.kill()


def test_each_query_is_answered_before_the_next() -> None:
    request = queries(100)
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        connection.sock.sendall(request.packed())
        for done, size in ((0, 40), (40, 40), (80, 20)):
            connection.sock.sendall(piece(11, done, size))
            assert read_exactly(connection.sock, size) == piece(7, done, size)
        assert connection.reply(request).received == 100


def test_a_wrong_query_is_not_answered() -> None:
    request = queries(80)
    with serving(honest) as at, Connection(at, "cubic", seconds=10) as connection:
        connection.sock.sendall(request.packed() + piece(11, 0, 40))
        assert read_exactly(connection.sock, 40) == piece(7, 0, 40)
        connection.sock.sendall(bytes(40))
        with pytest.raises(WrongByte, match="got 40 of 80 bytes right"):
            connection.reply(request)
