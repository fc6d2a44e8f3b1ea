# SPDX-License-Identifier: MIT
"""Ends that do what nobody should: they block, leave, hurry or send before their turn.

No connection may get stuck for it, none may open unowned, and nothing may be held without bound.
"""

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.relay import payload, wire
from tests.relay.ends import Ending, echo, read_exactly, read_to_end, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import (
    EXTENDED,
    LISTEN,
    LP_READY,
    RP_READY,
    extended_pair,
    local_proxy,
    remote_proxy,
)
from tests.relay.waiting import equals, until
from tests.relay.wire import BY_RST, Message, Pipe, raw_lp, raw_rp

UPLOAD = payload.seeded(12_288_000, seed=7)
WHOLE = Ending("eof", len(UPLOAD), payload.digest(UPLOAD))
FLOOD = bytes(40_000_000)
NOWHERE = "10.77.0.9"  # an address that has a neighbour entry and no owner
MAX_CONNS = 5


def standing_still(read: Callable[[], int], quiet_s: float = 0.2) -> Callable[[], bool]:
    """True once `read` has answered the same for `quiet_s`, and not zero."""
    seen = [0, time.monotonic()]

    def condition() -> bool:
        now = read()
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return bool(now) and time.monotonic() - seen[1] >= quiet_s

    return condition


def messages(conn: int, data: bytes, first: int) -> list[bytes]:
    """`data` as full-sized messages, and the orderly end."""
    size = wire.PAYLOAD_MAX
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [wire.data(conn, first + n, piece) for n, piece in enumerate(pieces)]
    return [*found, wire.fin(conn, first + len(pieces))]


def test_a_server_that_is_blocked_in_writing_still_gets_the_rest(
    box: Namespace, tmp_path: Path
) -> None:
    """It reads only when all was written, and nobody reads that: the upload ends meanwhile."""
    written = [0]

    def handler(sock: socket.socket) -> Ending:
        view = memoryview(FLOOD)
        sock.settimeout(10)
        while written[0] < len(FLOOD):
            written[0] += sock.send(view[written[0] : written[0] + 65536])
        return read_to_end(sock)

    with (
        serving(box, handler) as server,
        remote_proxy(box, tmp_path, pipes=1),
        raw_lp(box, 1) as (pipe,),
    ):
        pipe.send(wire.syn(1, "127.0.0.1", server.port))
        until("the server to be blocked", standing_still(lambda: written[0]))
        assert written[0] < len(FLOOD), "the server could write it all: nothing was tried"
        pipe.send(*messages(1, UPLOAD, 1))
        assert server.results.get(timeout=10) == WHOLE


def test_a_complete_upload_survives_an_lp_that_leaves_at_once(
    box: Namespace, tmp_path: Path
) -> None:
    release = threading.Event()

    def handler(sock: socket.socket) -> Ending:
        assert release.wait(10)
        return read_to_end(sock)

    with serving(box, handler) as server, remote_proxy(box, tmp_path, pipes=1) as rp:
        idle = rp.fd_count()
        with raw_lp(box, 1) as (pipe,):
            pipe.send(wire.syn(1, "127.0.0.1", server.port), *messages(1, UPLOAD, 1))
            pipe.sock.shutdown(socket.SHUT_WR)
            rp.expect(r"session 1 .*ended")
        release.set()
        assert server.results.get(timeout=10) == WHOLE
        equals("rp's descriptors", rp.fd_count, idle)


def test_connections_that_are_over_but_connecting_count(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """SYN, a byte, FIN towards an address that never answers: each holds a descriptor."""
    near, _ = two
    near.ip("neigh", "add", NOWHERE, "lladdr", "02:00:00:00:00:09", "dev", "wire-l")
    options = ("--max-conns", str(MAX_CONNS), "--connect-timeout", "4")
    with remote_proxy(near, tmp_path, *options, pipes=1) as rp:
        idle = rp.fd_count()
        with raw_lp(near, 1) as (pipe,):
            equals("rp's descriptors with the pipe", rp.fd_count, idle + 1)
            one = wire.syn(1, NOWHERE, 80) + wire.data(1, 1, b"x") + wire.fin(1, 2)
            pipe.send(*[one] * 300)
            pipe.send(wire.syn(2, "127.0.0.1", 1))  # refused either way: all before was read
            while (answer := pipe.receive()) == Message("fin", 1, 0, bytes([BY_RST])):
                pass
            assert answer == Message("fin", 2, 0, bytes([BY_RST]))
            assert rp.fd_count() == idle + 1 + MAX_CONNS
        equals("rp's descriptors", rp.fd_count, idle, 10)


def test_applications_that_do_not_read_their_end_count(box: Namespace, tmp_path: Path) -> None:
    """What waits for them keeps their descriptors: lp takes no more until one has read."""
    options = ("--max-conns", str(MAX_CONNS), "--forward", "7000:127.0.0.1:9")
    data = UPLOAD[:4_096_000]
    with (
        raw_rp(box) as rp,
        local_proxy(box, tmp_path, *options, pipes=1, ready=None) as lp,
        ExitStack() as stack,
    ):
        (pipe,) = rp.accept(1)
        stack.enter_context(pipe.sock)
        lp.expect(LP_READY)
        apps = []
        for _ in range(MAX_CONNS):
            apps.append(stack.enter_context(box.open_socket()))
            apps[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            apps[-1].connect(("127.0.0.1", 7000))
            pipe.send(*messages(next_syn(pipe), data, 0))
        last = stack.enter_context(box.connect(("127.0.0.1", 7000)))
        last.sendall(b"!")
        with pytest.raises(TimeoutError):
            message = pipe.receive(1)
            pytest.fail(f"lp took one more than {MAX_CONNS}: {message}")
        assert read_to_end(apps[0]) == Ending("eof", len(data), payload.digest(data))
        next_syn(pipe)


def next_syn(pipe: Pipe) -> int:
    message = pipe.receive()
    assert message is not None and message.kind == "syn", message
    return message.conn


@pytest.mark.parametrize("side", ["lp", "rp"])
def test_urgent_data_are_part_of_the_stream(box: Namespace, tmp_path: Path, side: str) -> None:
    """The mark stops a read short: what is behind it must not wait for more to come."""
    with box.open_socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(10)
        forward = f"7000:127.0.0.1:{listener.getsockname()[1]}"
        with (
            extended_pair(box, tmp_path, lp=["--forward", forward]) as proxies,
            box.connect(("127.0.0.1", 7000)) as client,
            listener.accept()[0] as server,
        ):
            proxy = getattr(proxies, side)
            sender, receiver = (client, server) if side == "lp" else (server, client)
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            receiver.settimeout(5)
            for turn in range(3):
                stopped(proxy)  # so that it finds all of it at once
                sender.send(b"hello")
                sender.send(b"!", socket.MSG_OOB)
                sender.send(b"world")
                proxy.send_signal(signal.SIGCONT)
                assert read_exactly(receiver, 11) == b"hello!world", f"turn {turn}"


def stopped(proxy: Program) -> None:
    proxy.send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{proxy.pid}/stat")
    until(f"{proxy.name} to be stopped", lambda: stat.read_text().rpartition(")")[2][1] == "T")


@pytest.mark.parametrize("limited", ["rp", "lp"])
def test_a_full_quota_of_statistics_ends_nothing(
    box: Namespace, tmp_path: Path, limited: str
) -> None:
    """A file that may not grow is SIGXFSZ by default; it is to be one line in the log."""
    stats = tmp_path / "stats.jsonl"
    quota = 16_384  # no more than the log may have
    options = ("--stats", str(stats), "--stats-interval", "0.01")

    def argv(name: str, *args: str) -> list[str | Path]:
        prefix = ["prlimit", f"--fsize={quota}"] if name == limited else []
        more = options if name == limited else ()
        return [*prefix, binary(name), *more, *args]

    with (
        serving(box, echo) as server,
        program(
            box, argv("rp", *LISTEN, "4"), tmp_path / "rp.log", name="rp", ready=RP_READY
        ) as rp,
        program(
            box, argv("lp", "127.0.0.1", "4"), tmp_path / "lp.log", name="lp", ready=EXTENDED
        ) as lp,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        {"rp": rp, "lp": lp}[limited].expect(rf"--stats: .*{os.strerror(errno.EFBIG)}")
        assert stats.stat().st_size <= quota
        sock.sendall(b"still here")
        assert read_exactly(sock, 10) == b"still here"
