# SPDX-License-Identifier: MIT
"""rp's connects to servers: bounded, given back at once, and never in the way of others."""

import signal
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from tests.relay import wire
from tests.relay.ends import echo, read_to_end, serving
from tests.relay.late import lateness
from tests.relay.netns import Namespace
from tests.relay.proxies import remote_proxy
from tests.relay.waiting import equals
from tests.relay.wire import Message, Pipe, raw_lp

NOWHERE = "10.77.0.9"  # an address that has a neighbour entry and no owner
MAX_CONNECTS = 5
FLOOD = 30_000
BYTE = b"x"
UNACCEPTED = 24  # where tcp_info has tcpi_unacked: of a listener, how many wait to be accepted


def nowhere(near: Namespace) -> None:
    near.ip("neigh", "add", NOWHERE, "lladdr", "02:00:00:00:00:09", "dev", "wire-l")


def test_a_connect_that_nobody_waits_for_is_given_back(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """SYN and FIN without a byte between them: there is nothing to deliver."""
    near, _ = two
    nowhere(near)
    with remote_proxy(near, tmp_path, pipes=1) as rp:
        idle = rp.fd_count()
        with raw_lp(near, 1) as (pipe,):
            pipe.send(*[wire.syn(conn, NOWHERE, 80) for conn in range(1, 101)])
            equals("rp's descriptors while it connects", rp.fd_count, idle + 101)
            pipe.send(*[wire.fin(conn, 1) for conn in range(1, 101)])
            equals("rp's descriptors", rp.fd_count, idle + 1, 3)


def test_what_was_sent_before_the_end_is_delivered(box: Namespace, tmp_path: Path) -> None:
    """SYN, data and FIN in one piece: the connect goes on, and so do the bytes."""
    with (
        serving(box, read_to_end) as server,
        remote_proxy(box, tmp_path, pipes=1),
        raw_lp(box, 1) as (pipe,),
    ):
        pipe.send(
            wire.syn(1, "127.0.0.1", server.port) + wire.data(1, 1, b"early") + wire.fin(1, 2)
        )
        ending = server.results.get(timeout=10)
        assert (ending.how, ending.size) == ("eof", 5)


def test_what_came_while_rp_was_stopped_is_in_time(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """The server answers after a second; rp is stopped for longer than it would wait."""
    near, far = two
    nowhere(near)
    far.ip("address", "add", f"{NOWHERE}/32", "dev", "wire-r")
    mac = far.ip("-br", "link", "show", "wire-r").split()[2]
    with (
        serving(far, echo, (NOWHERE, 8000)),
        remote_proxy(near, tmp_path, "--connect-timeout", "2", pipes=1) as rp,
        raw_lp(near, 1) as (pipe,),
    ):
        rp.expect("session 1: 1 pipe")
        idle = rp.fd_count()
        pipe.send(wire.syn(1, NOWHERE, 8000) + wire.data(1, 1, BYTE))
        equals("rp's descriptors while it connects", rp.fd_count, idle + 1)
        rp.send_signal(signal.SIGSTOP)
        pipe.send(wire.fin(2, 1))  # so that the pipe is in front of the server
        near.ip("neigh", "replace", NOWHERE, "lladdr", mac, "dev", "wire-l")
        time.sleep(3)  # what is tested
        rp.send_signal(signal.SIGCONT)
        assert pipe.receive() == Message("data", 1, 0, BYTE)


def test_connects_under_way_are_bounded(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """More of them wait, as long as a connect may take, and go on when there is a place."""
    near, _ = two
    nowhere(near)
    options = ("--max-connects", str(MAX_CONNECTS), "--connect-timeout", "2")
    with (
        serving(near, echo) as server,
        remote_proxy(near, tmp_path, *options, pipes=1) as rp,
    ):
        idle = rp.fd_count()
        with raw_lp(near, 1) as (pipe,):
            pipe.send(*[wire.syn(conn, NOWHERE, 80) for conn in range(1, 21)])
            pipe.send(wire.syn(30, "127.0.0.1", server.port) + wire.data(30, 1, BYTE))
            rp.expect(r"others have to wait: 5 connects of this session are under way")
            assert rp.fd_count() == idle + 1 + MAX_CONNECTS
            with pytest.raises(TimeoutError):
                pipe.receive(0.3)
            pipe.send(*[wire.fin(conn, 1) for conn in range(1, 21)])
            assert pipe.receive(1) == Message("data", 30, 0, BYTE)
            pipe.send(*[wire.syn(conn, NOWHERE, 80) for conn in range(41, 61)])
            refused = [pipe.receive(4) for _ in range(20)]
            assert {it.conn for it in refused if it and it.kind == "fin"} == set(range(41, 61))
        assert len(rp.lines("under way")) == 1


def unaccepted(listener: socket.socket) -> int:
    told = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, UNACCEPTED + 4)
    return int(struct.unpack_from("=I", told, UNACCEPTED)[0])


def test_a_burst_of_connects_that_can_be_is_served(box: Namespace, tmp_path: Path) -> None:
    """More at once than may be under way, to a server that is there.

    Its backlog has room for all, so none of them waits for this process: where one is full SYNs are
    dropped, and what takes --connect-timeout is given up.
    """
    count = 3000
    options = ("--max-connects", "1", "--connect-timeout", "600")
    with (
        box.open_socket() as listener,
        remote_proxy(box, tmp_path, *options, pipes=1) as rp,
        raw_lp(box, 1) as (pipe,),
    ):
        listener.bind(("127.0.0.1", 0))
        listener.listen(count)  # a new namespace's net.core.somaxconn is 4096
        port = listener.getsockname()[1]
        one = [
            wire.syn(conn, "127.0.0.1", port) + wire.data(conn, 1, BYTE) + wire.fin(conn, 2)
            for conn in range(1, count + 1)
        ]
        pipe.send(*one)
        equals("connects that reached the server", lambda: unaccepted(listener), count, 20)
        for _ in range(count):
            with listener.accept()[0] as sock:
                ending = read_to_end(sock)
            assert (ending.how, ending.size) == ("eof", 1)
        rp.expect("and others have to wait: 1 connect of this session is under way")


def longest_echo(pipe: Pipe, port: int, seconds: float) -> float:
    """The longest time that one byte took to a server and back."""
    pipe.send(wire.syn(1, "127.0.0.1", port))
    longest, number = 0.0, 1
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        pipe.send(wire.data(1, number, BYTE))
        message = pipe.receive(30)
        assert message and message.body == BYTE, message
        longest = max(longest, time.monotonic() - began)
        number += 1
    return longest


def test_a_flood_of_connects_does_not_hold_others_up(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    near, _ = two
    nowhere(near)
    flood = b"".join(
        wire.syn(conn, NOWHERE, 80) + wire.data(conn, 1, BYTE) + wire.fin(conn, 2)
        for conn in range(1, FLOOD + 1)
    )
    with (
        serving(near, echo) as server,
        remote_proxy(near, tmp_path, pipes=1, asan=False) as rp,
        raw_lp(near, 1) as (honest,),
        raw_lp(near, 1) as (attacker,),
    ):
        attacker.sock.settimeout(60)
        attack = threading.Thread(target=attacker.sock.sendall, args=(flood,))
        attack.start()
        try:
            with lateness() as late:
                longest = longest_echo(honest, server.port, 5)
        finally:
            attack.join()
        assert longest < late.allowed(1.0), f"{late.worst:.3f} s late"
        rp.expect("connects of this session are under way")
