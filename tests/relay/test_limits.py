# SPDX-License-Identifier: MIT
"""The ill-behaved: each attack costs who makes it, rp stays small, and a friend gets through.

Sources of 127.0.0.0/8 are peers that differ, and so are networks of 64 bits.
"""

import itertools
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.relay import records, wire, wire_ext
from tests.relay.ends import echo, serving
from tests.relay.friend import friend
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, local_proxy, remote_proxy
from tests.relay.strangers import (
    is_open,
    limit_counted,
    ping,
    pipe_from,
    push,
    session_of,
    small,
    spoke_seldom,
)
from tests.relay.waiting import equals, until
from tests.relay.wire import Pipe

WAITING_EACH = 64
SESSIONS_EACH = 8
HELLO_S = 5
SAID_EVERY_S = 10


def flood_of_pipes(box: Namespace, port: int, pipes: int, sources: int) -> None:
    """So many pipes that say nothing, 500 of them open at a time."""
    with ExitStack() as stack:
        for n in range(pipes):
            if n % 500 == 0:
                stack.close()
            stack.enter_context(pipe_from(box, f"127.2.0.{n % sources + 1}", port))


def test_ten_thousand_pipes_that_say_nothing(box: Namespace, tmp_path: Path) -> None:
    """5,000 in the lobby and as many in the reception, from 20 addresses."""
    with (
        remote_proxy(box, tmp_path, *LISTEN, asan=False) as rp,
        friend(box, tmp_path) as him,
        small(rp, 16),
    ):
        for port in (wire.PORT, wire_ext.PORT):
            done = threading.Event()

            def attack(_: threading.Event, port: int = port, done: threading.Event = done) -> None:
                flood_of_pipes(box, port, 5000, 20)
                done.set()

            him.beside(f"silent pipes at {port}", attack)
            assert done.is_set()
        with local_proxy(box, tmp_path, "--socks", "1081", "--redirect", "off", name="late"):
            pass
        assert not him.lp.lines("no pipes|lost")


def test_pipes_of_one_address_that_wait(box: Namespace, tmp_path: Path) -> None:
    """The oldest goes, and it is said once."""
    with (
        remote_proxy(box, tmp_path, *LISTEN) as rp,
        ExitStack() as stack,
    ):
        idle = rp.fd_count()
        other = stack.enter_context(pipe_from(box, "127.0.0.6"))
        pipes = [stack.enter_context(pipe_from(box, "127.0.0.5")) for _ in range(2 * WAITING_EACH)]
        remain = [False] * WAITING_EACH + [True] * WAITING_EACH
        equals("pipes that wait", lambda: [is_open(sock) for sock in pipes], remain)
        assert rp.fd_count() - idle == WAITING_EACH + 1
        assert is_open(other)
        spoke_seldom(rp, r"127\.0\.0\.5.* have not said HELLO yet", 1)
        said = rp.expect(r"127\.0\.0\.5: in the last 10 s .* too many waited", 1.5 * SAID_EVERY_S)
        assert f" {WAITING_EACH - 1} more pipes" in said


def test_a_hello_byte_by_byte(box: Namespace, tmp_path: Path) -> None:
    """It has its time in all; and a friend can begin a session meanwhile."""
    hello = wire_ext.Hello(b"d" * 16, 0, 1).to_bytes()
    with remote_proxy(box, tmp_path, *LISTEN) as rp, ExitStack() as stack:
        idle = rp.fd_count()
        began = time.monotonic()
        pipes = [stack.enter_context(pipe_from(box, "127.0.0.5")) for _ in range(WAITING_EACH)]
        for byte in hello[:10]:
            for sock in pipes:
                sock.send(bytes([byte]))
            time.sleep(0.2)
        equals("pipes that drip", lambda: rp.fd_count() - idle, WAITING_EACH)
        with local_proxy(box, tmp_path, pipes=4):
            pass
        assert time.monotonic() - began < HELLO_S or not is_open(pipes[0])
        equals("pipes that drip", lambda: rp.fd_count() - idle, 0, 2 * HELLO_S)
        spoke_seldom(rp, rf"did not say HELLO within {HELLO_S} s", 1)


def test_no_more_than_one_message_is_taken_for_a_hello(box: Namespace, tmp_path: Path) -> None:
    """Its head is enough: who sends on without end is reset, and nothing was kept of it."""
    with remote_proxy(box, tmp_path, *LISTEN, asan=False) as rp, small(rp, 4), ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(pipe_from(box, "127.0.0.5"))
            with suppress(OSError):
                sock.sendall(wire.data(0, 0, b"\x01" * 4096) * 1000)
            until("the pipe to be closed", lambda sock=sock: not is_open(sock))
        spoke_seldom(rp, "began with something else than HELLO", 1)


def test_a_network_of_64_bits_is_one_peer(box: Namespace, tmp_path: Path) -> None:
    """Pipes and sessions from 200 of its addresses; a friend of the next network gets in."""
    box.ip("-6", "route", "add", "local", "2001:db8::/32", "dev", "lo")
    where = ("--listen", "[::1]:6000", "--extended", "[::1]:6010", "--listen", "127.0.0.1")
    with remote_proxy(box, tmp_path, *where, asan=False) as rp, ExitStack() as stack:
        idle = rp.fd_count()
        sources = [f"2001:db8:0:5::{n:x}" for n in range(1, 201)]
        pipes = [stack.enter_context(pipe_from(box, source)) for source in sources]
        equals("pipes that wait", lambda: sum(map(is_open, pipes)), WAITING_EACH)
        assert rp.fd_count() - idle == WAITING_EACH
        for sock in pipes:
            sock.close()
        equals("pipes that wait", lambda: rp.fd_count() - idle, 0)
        told = []
        for n, source in enumerate(sources[: 3 * SESSIONS_EACH]):
            pipe = Pipe(stack.enter_context(pipe_from(box, source)))
            pipe.send(wire_ext.Hello(n.to_bytes(16, "big"), 0, 1).to_bytes())
            told.append(wire_ext.status_of(pipe.receive()))
        new, busy = [wire_ext.NEW], [wire_ext.BUSY]
        assert told == new * SESSIONS_EACH + busy * 2 * SESSIONS_EACH
        session_of(box, "2001:db8:0:6::1", b"a friend").sock.close()
        spoke_seldom(rp, r"a session of 2001:db8:0:5::.* told to come later", 1)


def test_a_flood_from_a_network_of_64_bits(box: Namespace, tmp_path: Path) -> None:
    """Pipes and sessions from ever new addresses of it are those of one peer, however many.

    They come until both limits were met and many more have come, however long that takes.
    """
    box.ip("-6", "route", "add", "local", "2001:db8::/32", "dev", "lo")
    where = ("--extended", "[::1]:6010", "--extended", "127.0.0.1:6010", *LISTEN)
    came = itertools.count(1)
    look_each = 50
    most: list[int] = []
    waits = r"2001:db8:0:5::.* have not said HELLO yet"
    later = r"a session of 2001:db8:0:5::.* told to come later"

    with (
        remote_proxy(box, tmp_path, *where, asan=False) as rp,
        friend(box, tmp_path) as him,
        small(rp, 16),
    ):
        idle = rp.fd_count()

        def flood(over: threading.Event) -> None:
            pipes: deque[socket.socket] = deque()
            while not over.is_set():
                number = next(came)
                pipes.append(pipe_from(box, f"2001:db8:0:5::{number >> 16:x}:{number & 0xFFFF:x}"))
                if number % 2:
                    with suppress(OSError):
                        pipes[-1].send(wire_ext.Hello(number.to_bytes(16, "big"), 0, 1).to_bytes())
                if len(pipes) > 4 * WAITING_EACH:
                    pipes.popleft().close()
                if number % look_each == 0:
                    most.append(rp.fd_count() - idle)
            for sock in pipes:
                sock.close()

        def met() -> bool:
            many = len(most) * look_each > 4 * WAITING_EACH
            return many and all(rp.lines(it) for it in (waits, later))

        him.beside("a network of 64 bits", flood, met=met)
        # Sockets of the friend's own connects, and pipes that were accepted and are not judged yet.
        assert max(most) <= WAITING_EACH + SESSIONS_EACH + 64, max(most)
        spoke_seldom(rp, later, 1)


def test_sessions_of_a_network_of_64_bits_share_a_line(box: Namespace, tmp_path: Path) -> None:
    """Whatever is refused to them: pipes that may not join, connects that have to wait."""
    box.ip("-6", "route", "add", "local", "2001:db8::/32", "dev", "lo")
    stats = tmp_path / "stats.jsonl"
    where = ("--listen", "[::1]:6000", "--extended", "[::1]:6010", "--max-opens", "1")
    where += ("--permit", "127.0.0.0/8")
    with (
        remote_proxy(box, tmp_path, *where, *records.soon(stats)) as rp,
        ExitStack() as stack,
    ):
        for n in range(SESSIONS_EACH):
            source = f"2001:db8:0:5::{n + 1:x}"
            pipe = session_of(box, source, b"of many %d" % n)
            stack.enter_context(pipe.sock)
            pipe.send(*(wire_ext.open_(conn, "127.0.0.1", 9) for conn in range(1, 5)))
            twin = stack.enter_context(pipe_from(box, source))
            twin.sendall(wire_ext.Hello((b"of many %d" % n).ljust(16, b"."), 0, 1).to_bytes())
        for kind in ("join", "opens"):
            until(
                f"{kind} to be counted", lambda it=kind: limit_counted(stats, it) >= SESSIONS_EACH
            )
        for pattern in ("may not join", r"\(--max-opens\)$"):
            assert len(rp.lines(rf"session \d+: .*{pattern}")) == 1, rp.log


def test_connects_that_are_denied_share_a_line(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "stats.jsonl"
    with (
        remote_proxy(box, tmp_path, *LISTEN, *records.soon(stats)) as rp,
        session_of(box, "127.0.0.5", b"denied").sock as sock,
    ):
        Pipe(sock).send(*(wire_ext.open_(it, "169.254.169.254", 80) for it in range(1, 51)))
        until("all to be counted", lambda: limit_counted(stats, "denied") == 50)
        spoke_seldom(rp, r"connection \d+ to 169\.254\.169\.254:80 denied", 1)


def test_a_full_house_has_a_place_for_a_newcomer(box: Namespace, tmp_path: Path) -> None:
    """64 sessions of 8 peers, a connection open on each: who has most loses its oldest."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, pipes=1, asan=False) as rp,
        ExitStack() as stack,
    ):
        pipes = []
        for n in range(64):
            pipes.append(Pipe(stack.enter_context(pipe_from(box, f"127.0.1.{n % 8 + 1}", 6000))))
            pipes[-1].send(wire.syn(1, "127.0.0.1", server.port), wire.data(1, 1, b"here"))
            message = pipes[-1].receive()
            assert message is not None and message.body == b"here"
        with friend(box, tmp_path, pipes=1) as him:
            him.figures()
            assert pipes[0].ended(), "the oldest of all is of one that has most"
            assert sum(is_open(pipe.sock) for pipe in pipes[1:]) == 63
        spoke_seldom(rp, r"session 1 of 127\.0\.1\.1 has to go: its address has most sessions", 1)


def test_a_flood_of_pings(box: Namespace, tmp_path: Path) -> None:
    """Nobody reads the answers: nothing grows for them."""
    with (
        remote_proxy(box, tmp_path, *LISTEN, asan=False) as rp,
        friend(box, tmp_path) as him,
        session_of(box, "127.0.0.5", b"pings").sock as sock,
        small(rp, 16),
    ):
        block = b"".join(ping(token) for token in range(2000))
        blocks = []
        him.beside("PINGs", lambda over: blocks.append(push(Pipe(sock), block, over)))
        assert blocks[0] > 10, "no flood"


@pytest.mark.parametrize(
    ("extended", "message", "ids"),
    [
        (True, lambda conn: wire_ext.open_(conn, "127.0.0.1", 9), 32_000),
        (False, lambda conn: wire.syn(conn, "127.0.0.1", 9), 65_000),
        (False, lambda conn: wire.data(conn, 1, b"b"), 65_000),
    ],
    ids=["opens", "syns", "bytes without a syn"],
)
def test_who_asks_and_reads_no_answer(
    box: Namespace, tmp_path: Path, extended: bool, message: Callable[[int], bytes], ids: int
) -> None:
    """As many connections as there are ids, of eight sessions; whoever is ended comes again.

    A friend gets all of his, since theirs take places as long as there are some and then what
    their sessions may hold. The most that each of them holds is soon too much, so it goes.
    """
    memory, asked = 64, b"".join(map(message, range(1, ids + 1)))
    numbers = itertools.count()

    def ask(over: threading.Event) -> None:
        while not over.is_set():
            if extended:
                sock = session_of(box, "127.0.0.5", b"deaf%d" % next(numbers)).sock
            else:
                sock = pipe_from(box, "127.0.0.5", 6000)
            with sock:
                push(Pipe(sock), asked, over)

    with (
        remote_proxy(box, tmp_path, *LISTEN, "--memory", str(memory), pipes=1, asan=False) as rp,
        friend(box, tmp_path, pipes=1) as him,
        small(rp, round(1.1 * memory)),
    ):
        gone = "too little memory is left for all sessions"
        him.beside("who reads no answer", *[ask] * SESSIONS_EACH, met=lambda: rp.lines(gone))


def test_opened_and_reset_at_once(box: Namespace, tmp_path: Path) -> None:
    """SYN and FIN 0x99 in turn: they cost a line each, and no connect where both came together."""
    stats = tmp_path / "stats.jsonl"
    options = ("--stats", str(stats), "--stats-interval", "0.2", "--max-opens", "200")
    with (
        remote_proxy(box, tmp_path, *LISTEN, *options, pipes=1, asan=False) as rp,
        friend(box, tmp_path, pipes=1) as him,
        serving(box, echo) as server,
        pipe_from(box, "127.0.0.5", 6000) as sock,
        small(rp, 32),
    ):

        def attack(over: threading.Event) -> None:
            ids = itertools.cycle(range(1, 30001))
            pipe = Pipe(sock)
            while not over.is_set():
                some = list(itertools.islice(ids, 300))
                with suppress(TimeoutError):
                    pipe.send(*(wire.syn(conn, "127.0.0.1", server.port) for conn in some))
                    over.wait(0.05)
                    pipe.send(*(wire.fin(conn, 1, wire.BY_RST) for conn in some))
                over.wait(0.05)

        him.beside("opens and resets", attack)
        until("the limit to be counted", lambda: limit_counted(stats, "opens"))
        spoke_seldom(rp, r"session \d+: .* opens more than 200 in a second \(--max-opens\)", 1)


def test_bytes_one_by_one_out_of_order(box: Namespace, tmp_path: Path) -> None:
    """Bookkeeping counts: four sessions of one peer together have half of --memory."""
    options = ("--memory", "64")
    with (
        remote_proxy(box, tmp_path, *LISTEN, *options, pipes=1, asan=False) as rp,
        friend(box, tmp_path, pipes=4) as him,
        serving(box, echo) as server,
        ExitStack() as stack,
        small(rp, 70),
    ):
        pipes = [Pipe(stack.enter_context(pipe_from(box, "127.0.0.5", 6000))) for _ in range(4)]

        blocks = [
            wire.syn(conn, "127.0.0.1", server.port)
            + b"".join(wire.data(conn, number, b"g") for number in range(2, 60000, 2))
            for conn in range(1, 11)
        ]

        def attack(pipe: Pipe, over: threading.Event) -> None:
            for block in blocks:
                with suppress(OSError):
                    pipe.send(block)
                if over.is_set():
                    return

        attacks = [lambda over, pipe=pipe: attack(pipe, over) for pipe in pipes]
        him.beside("bytes out of order", *attacks)
        rp.expect(r"127\.0\.0\.5: |of all it holds most", 15)


def test_who_never_reads(box: Namespace, tmp_path: Path) -> None:
    """Eight sessions whose servers send without end: what is kept for all has its bound, 16 MiB.

    They have nearly all of it, so the friend is slow until the one that has most has to go.
    """

    def endless(sock: socket.socket) -> None:
        with suppress(OSError):
            while True:
                sock.sendall(b"e" * 262_144)

    with (
        remote_proxy(box, tmp_path, *LISTEN, "--memory", "32", asan=False) as rp,
        friend(box, tmp_path) as him,
        serving(box, endless) as server,
        ExitStack() as stack,
        small(rp, 36),
    ):
        for n in range(SESSIONS_EACH):
            pipe = session_of(box, "127.0.0.5", b"deaf%d" % n, pipes=4)
            stack.enter_context(pipe.sock)
            for index in range(1, 4):
                other = Pipe(stack.enter_context(pipe_from(box, "127.0.0.5")))
                other.send(wire_ext.Hello((b"deaf%d" % n).ljust(16, b"."), index, 4).to_bytes())
            pipe.send(wire_ext.open_(1, "127.0.0.1", server.port, window=1 << 30))
        late = r"bytes were not acknowledged for \d+ s, and all sessions keep too much"
        until("room to be made", lambda: him.bulk() and rp.lines(late), 20)
        him.beside("who never reads, from then on")


def test_connections_beyond_the_memory_of_all(box: Namespace, tmp_path: Path) -> None:
    """2 MiB are 1,024 connections: one session has half of them, and a friend still gets some.

    Those that are refused are counted, and have no record each.
    """
    stats = tmp_path / "stats.jsonl"
    options = ("--memory", "8", *records.soon(stats))
    with (
        remote_proxy(box, tmp_path, *LISTEN, *options, pipes=1, asan=False) as rp,
        friend(box, tmp_path, pipes=4) as him,
        serving(box, echo) as server,
        pipe_from(box, "127.0.0.5", 6000) as sock,
    ):
        pipe = Pipe(sock)
        pipe.send(*(wire.syn(conn, "127.0.0.1", server.port) for conn in range(1, 1025)))
        refused = 0
        while refused < 500:
            message = pipe.receive()
            assert message is not None and message.kind == "fin", message
            refused += 1
        spoke_seldom(rp, r"session \d+: .* connections take too much of --memory", 1)
        until("all to be counted", lambda: limit_counted(stats, "connections") >= refused)
        assert not [it for it in records.of(stats, "conn") if it["end"] == "limit"]
        him.figures()
