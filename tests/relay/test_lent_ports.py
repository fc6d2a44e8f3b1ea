# SPDX-License-Identifier: MIT
"""Ports that rp lends, where one end is the test: what an evil lp asks for, and an evil rp says."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.relay import wire, wire_ext
from tests.relay.ends import answers, echo, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import LISTEN, RP_READY, local_proxy, remote_proxy
from tests.relay.waiting import equals, until
from tests.relay.wire import Pipe, RawRp, raw_lp

PORT = 7000
PERMIT = ("--permit-listen", f"{PORT}")
LISTENS, IN_USE, DENIED, LIMIT, FAILED = 0, 1, 4, 5, 255
FEATURES = wire_ext.VERSION_1 | wire_ext.LISTEN


@contextmanager
def asking(box: Namespace, features: int = FEATURES) -> Iterator[Pipe]:
    """The only pipe of a session."""
    with raw_lp(box, 1, ("127.0.0.1", wire_ext.PORT)) as (pipe,):
        pipe.send(wire_ext.Hello(b"who wants a port", 0, 1, features=features).to_bytes())
        assert wire_ext.status_of(pipe.receive()) == wire_ext.NEW
        yield pipe


def answer(pipe: Pipe) -> tuple[int, int, int]:
    """The next LISTENING."""
    while (said := wire_ext.listening_of(pipe.receive())) is None:
        pass
    return said


def asked(pipe: Pipe, host: str, port: int = PORT, protocol: int = wire_ext.TCP) -> int:
    pipe.send(wire_ext.listen(9, host, port, protocol))
    while (said := answer(pipe))[0] != 9:
        pass
    assert said[2] == (0 if said[1] else port)
    return said[1]


def test_what_no_permit_covers(box: Namespace, tmp_path: Path) -> None:
    """However an address is written; and the session goes on."""
    with remote_proxy(box, tmp_path, *LISTEN, *PERMIT) as rp, asking(box) as pipe:
        for host in ("0.0.0.0", "::", "::ffff:0.0.0.0", "::127.0.0.1", "10.0.0.1"):
            assert asked(pipe, host) == DENIED, host
        for port in (0, 1, PORT - 1, PORT + 1, 65535):
            assert asked(pipe, "127.0.0.1", port) == DENIED, port
        assert asked(pipe, "localhost") == FAILED
        assert asked(pipe, "127.0.0.1", protocol=wire_ext.UDP) == FAILED
        assert not box.listening(PORT)
        pipe.send(wire_ext.listen(64, "127.0.0.1", PORT), wire_ext.listen(65535, "::1", PORT))
        assert asked(pipe, "::ffff:127.0.0.1") == LISTENS
        assert box.listening(PORT)
        assert asked(pipe, "127.0.0.1") == LISTENS
        assert asked(pipe, "127.0.0.2") == FAILED
        assert len(rp.lines("wants rp to listen")) == 1, rp.log


def test_nobody_listens_where_it_was_not_agreed(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path, *LISTEN, *PERMIT), asking(box, wire_ext.VERSION_1) as pipe:
        pipe.send(wire_ext.listen(0, "127.0.0.1", PORT))
        pipe.send(wire_ext.open_(1, "127.0.0.1", 9))
        while (message := pipe.receive()) is None or message.body[:1] != b"\x03":
            assert message is not None and wire_ext.listening_of(message) is None
        assert not box.listening(PORT)


def test_who_asks_too_often(box: Namespace, tmp_path: Path) -> None:
    """Each try at an address that is taken costs calls of the kernel: 64 of them a second."""
    taken = box.open_socket()
    with taken, remote_proxy(box, tmp_path, *LISTEN, *PERMIT), asking(box) as pipe:
        taken.bind(("127.0.0.1", PORT))
        taken.listen(1)
        pipe.send(*[wire_ext.listen(n, "127.0.0.1", PORT) for n in range(64)])
        assert sorted(answer(pipe) for _ in range(64)) == [(n, IN_USE, 0) for n in range(64)]
        pipe.send(*[wire_ext.listen(5, "127.0.0.1", PORT)] * 50_000)
        while (said := answer(pipe)) != (5, LIMIT, 0):
            assert said == (5, IN_USE, 0)
        until("it is tried once more", lambda: asked(pipe, "127.0.0.1") == IN_USE)


def test_a_session_with_a_port_is_not_idle(box: Namespace, tmp_path: Path) -> None:
    """So it need not go for a newcomer, whom a session that only waits makes room for."""
    one = ("--max-sessions", "1")
    with remote_proxy(box, tmp_path, *LISTEN, *PERMIT, *one), asking(box) as pipe:
        assert asked(pipe, "127.0.0.1") == LISTENS
        with box.open_socket() as sock:
            sock.bind(("127.0.0.5", 0))
            sock.connect(("127.0.0.1", wire_ext.PORT))
            newcomer = Pipe(sock)
            newcomer.send(wire_ext.Hello(b"who came second.", 0, 1).to_bytes())
            assert wire_ext.status_of(newcomer.receive()) == wire_ext.BUSY
        assert asked(pipe, "127.0.0.1") == LISTENS


def test_ports_go_where_descriptors_are_short(box: Namespace, tmp_path: Path) -> None:
    """Who has most gives one up, for one who has fewer: of an lp without connections a port."""
    permit = ("--permit-listen", "7000-7063")
    argv = ["prlimit", "--nofile=100:100", binary("rp"), *LISTEN, *permit, "4"]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        sock = stack.enter_context(box.open_socket())
        sock.bind(("127.0.0.5", 0))
        sock.connect(("127.0.0.1", wire_ext.PORT))
        greedy = Pipe(sock)
        greedy.send(wire_ext.Hello(b"who has the most", 0, 1, features=FEATURES).to_bytes())
        greedy.send(*(wire_ext.listen(n, "127.0.0.1", PORT + n) for n in range(64)))
        told = [answer(greedy)[1] for _ in range(64)]
        assert told.count(LISTENS) > 30, told
        stack.enter_context(local_proxy(box, tmp_path))
        held = [stack.enter_context(socks(box, "127.0.0.1", server.port)) for _ in range(25)]
        for one in held:
            answers(one)
        rp.expect("no longer listening on .*: another one needs the descriptor")
        assert answer(greedy)[1] == LIMIT


# --- an rp by hand --------------------------------------------------------------


@contextmanager
def asked_by_lp(box: Namespace, tmp: Path, port: int) -> Iterator[tuple[Pipe, Program]]:
    """The only pipe of an lp whose --remote-forward leads to `port`, and that has asked."""
    rp = RawRp(box, ("127.0.0.1", wire_ext.PORT))
    rule = ("--remote-forward", f"{PORT}:127.0.0.1:{port}")
    try:
        with local_proxy(box, tmp, *rule, pipes=1, ready=None) as lp:
            (pipe,) = rp.accept(1)
            assert wire_ext.hello_of(pipe.receive()).features & wire_ext.LISTEN
            pipe.send(wire_ext.welcome(wire_ext.NEW, FEATURES))
            hears(pipe, 13)
            yield pipe, lp
            pipe.sock.close()
    finally:
        rp.listener.close()


def hears(pipe: Pipe, kind: int) -> bytes:
    """The next message of the extension that is of this type."""
    while True:
        message = pipe.receive()
        assert message is not None, "the pipe ended"
        if message.kind == "data" and not message.conn and message.body[0] == kind:
            return message.body


def has_read_all(pipe: Pipe) -> None:
    pipe.send(wire.data(0, 0, struct.pack("<BQQ", 5, 4711, 0)))
    while struct.unpack_from("<Q", hears(pipe, 6), 1) != (4711,):
        pass


def test_an_rp_that_says_no_again_and_again(box: Namespace, tmp_path: Path) -> None:
    """Each other reason would be another line; lp says what it asked for, and what ended."""
    with asked_by_lp(box, tmp_path, 1) as (pipe, lp):
        for _ in range(100):
            pipe.send(*(wire_ext.listening(0, result, PORT) for result in (0, 1, 2)))
        pipe.send(*(wire_ext.listening(n, IN_USE) for n in (1, 63, 64, 65535)))
        has_read_all(pipe)
        assert len(lp.lines("rp listens on")) == 1, lp.log
        assert len(lp.lines("rp does not listen on")) == 1, lp.log


def test_what_an_rp_may_open(box: Namespace, tmp_path: Path) -> None:
    """A listener that lp asked for, and nothing else: never an address of rp's choice."""
    came: list[socket.socket] = []

    def counted(sock: socket.socket) -> int:
        came.append(sock)
        return echo(sock)

    with serving(box, counted) as server, asked_by_lp(box, tmp_path, server.port) as (pipe, _):
        pipe.send(wire_ext.open_of(32768, 1), wire_ext.open_of(32769, 65535))
        for conn in (32768, 32769):
            assert struct.unpack_from("<HB", hears(pipe, 3), 1) == (conn, DENIED)
        pipe.send(wire_ext.open_of(32770, 0, "127.0.0.1", kind="\4"))
        conn, result = struct.unpack_from("<HB", hears(pipe, 3), 1)
        assert conn == 32770 and result
        pipe.send(wire_ext.open_of(65535, 0))
        assert struct.unpack_from("<HB", hears(pipe, 3), 1) == (65535, 0)
        equals("connections that came", lambda: len(came), 1)
