# SPDX-License-Identifier: MIT
"""Flows of datagrams of the ill-behaved: how many, how many bytes, and what the log says."""

import resource
import socket
from contextlib import ExitStack
from pathlib import Path

from tests.relay import records, wire_ext
from tests.relay.datagrams import UDP_ASSOCIATE, answering, associated, grant
from tests.relay.ends import echo, serving, socks_greet, socks_request
from tests.relay.friend import friend
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, local_proxy, remote_proxy
from tests.relay.strangers import limit_counted, session_of, small, spoke_seldom
from tests.relay.waiting import equals, until
from tests.relay.wire import Pipe

GENERAL_FAILURE = 1


def test_flows_are_opens(box: Namespace, tmp_path: Path) -> None:
    """Those past --max-opens are refused and counted, and get no socket; said once."""
    stats, flows = tmp_path / "stats.jsonl", 500
    options = ("--stats", str(stats), "--stats-interval", "0.2", "--max-opens", "20")
    with (
        answering(box) as server,
        remote_proxy(box, tmp_path, *LISTEN, *options, asan=False) as rp,
        local_proxy(box, tmp_path, asan=False),
        session_of(box, "127.0.0.5", b"flows").sock as sock,
        associated(box) as client,
    ):
        assert client.ask(b"x", "127.0.0.1", server.port) == b"x"
        idle = rp.fd_count()
        ids = range(1, flows + 1)
        Pipe(sock).send(*(wire_ext.open_flow(n, "127.0.0.1", server.port) for n in ids))
        equals("flows", lambda: rp.fd_count() - idle + limit_counted(stats, "opens"), flows)
        assert rp.fd_count() - idle < flows / 2
        spoke_seldom(rp, r"session \d+: .* opens more than 20 in a second \(--max-opens\)", 1)
        assert client.ask(b"y", "127.0.0.1", server.port) == b"y"


def test_flows_have_half_of_the_places(box: Namespace, tmp_path: Path) -> None:
    """The others are refused, counted and said once; a connection still finds a place."""
    stats, flows, places = tmp_path / "stats.jsonl", 30, 20
    options = ("--stats", str(stats), "--stats-interval", "0.2", "--max-conns", str(places))
    with (
        answering(box) as server,
        serving(box, echo) as web,
        remote_proxy(box, tmp_path, *LISTEN, *options) as rp,
        session_of(box, "127.0.0.5", b"half").sock as sock,
    ):
        pipe, idle = Pipe(sock), rp.fd_count()
        ids = range(1, flows + 1)
        pipe.send(*(wire_ext.open_flow(n, "127.0.0.1", server.port) for n in ids))
        equals("refusals", lambda: limit_counted(stats, "flows"), flows - places // 2)
        equals("flows", lambda: rp.fd_count() - idle, places // 2)
        spoke_seldom(rp, r"session \d+: .* it has 10 flows of datagrams already", 1)
        pipe.send(wire_ext.open_(flows + 1, "127.0.0.1", web.port))
        equals("sockets", lambda: rp.fd_count() - idle, places // 2 + 1)
        assert limit_counted(stats, "connections") == 0


def test_an_association_that_cannot_be_made_is_told(box: Namespace, tmp_path: Path) -> None:
    """lp has no descriptor for its port: the client is told, and so is the log, once."""
    stats, clients = tmp_path / "lp.jsonl", 20
    with (
        remote_proxy(box, tmp_path, *LISTEN),
        local_proxy(box, tmp_path, *records.soon(stats)) as lp,
        ExitStack() as stack,
    ):
        asking = [stack.enter_context(socks_greet(box)) for _ in range(clients)]
        soft, hard = resource.prlimit(lp.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(lp.pid, resource.RLIMIT_NOFILE, (3, hard))
        for control in asking:
            control.sendall(socks_request("0.0.0.0", 0, command=UDP_ASSOCIATE))
            assert grant(control)[0] == GENERAL_FAILURE
        equals("refusals", lambda: limit_counted(stats, "descriptors"), clients)
        said = r"refused a SOCKS5 UDP ASSOCIATE from 127\.0\.0\.1:\d+: no descriptor is left for it"
        spoke_seldom(lp, said + r"; more: ulimit -n \(now 3\)", 1)
        resource.prlimit(lp.pid, resource.RLIMIT_NOFILE, (soft, hard))
        with associated(box):
            pass


def test_datagrams_that_break_the_rules(box: Namespace, tmp_path: Path) -> None:
    """Each ends its flow; one line tells of all."""
    flows = range(1, 101)
    with (
        answering(box) as server,
        remote_proxy(box, tmp_path, *LISTEN) as rp,
        session_of(box, "127.0.0.5", b"wrong").sock as sock,
    ):
        pipe, idle = Pipe(sock), rp.fd_count()
        pipe.send(*(wire_ext.open_flow(n, "127.0.0.1", server.port) for n in flows))
        equals("flows", lambda: rp.fd_count() - idle, len(flows))
        six = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
        pipe.send(*(wire_ext.datagram(n, b"x", 4, six, 7) for n in flows))
        equals("flows", lambda: rp.fd_count() - idle, 0)
        spoke_seldom(rp, "an address of a datagram is not of its kind", 16)


def test_datagrams_that_nobody_takes(box: Namespace, tmp_path: Path) -> None:
    """Eight sessions of one address that read nothing have half of --memory, not 16 MiB each."""
    sessions, flows, rounds = 8, 60, 70
    with (
        answering(box, lambda _: None) as server,
        remote_proxy(box, tmp_path, *LISTEN, "--memory", "16", asan=False) as rp,
        friend(box, tmp_path) as him,
        ExitStack() as stack,
    ):
        for n in range(sessions):
            pipe = session_of(box, "127.0.0.5", b"deaf%d" % n)
            stack.enter_context(pipe.sock).setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            for flow in range(1, flows + 1):
                pipe.send(
                    wire_ext.open_flow(flow, "127.0.0.1", server.port),
                    wire_ext.datagram(flow, b"here"),
                )
        equals("flows", lambda: len(server.clients), sessions * flows)
        with small(rp, 24):
            for _ in range(rounds):
                for client in server.clients:
                    server.sock.sendto(bytes(4000), client)
            said = r"127\.0\.0\.5.* of all it holds most|of all it holds most.* dropped datagrams"
            until("memory to be short", lambda: rp.lines(said))
            him.figures()
        spoke_seldom(rp, r"dropped datagrams of \d+ bytes", 1)
