# SPDX-License-Identifier: MIT
"""Every malformed message of the protocol, sent by hand to each proxy.

Bad framing ends the session, a bad message of a connection ends that connection, and one log
line names the pipe, the offset and the field.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.relay import payload, wire
from tests.relay.ends import Ending, echo, read_exactly, read_to_end, serving
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import LP_READY, local_proxy, remote_proxy
from tests.relay.waiting import equals, until
from tests.relay.wire import BY_RST, Message, Pipe, raw_lp, raw_rp

GOOD_ID = 7
BAD_LENGTHS = [0, 1, 7, 8, 4105, 4106, 0x8000, 0xFFFD]
PIPES = 3
FIRST_BYTES = 14 + 8 + len(b"first")  # of the healthy connection, on pipe 0


def next_message(pipes: list[Pipe], conn: int | None = None) -> Message:
    """The next message, on whichever pipe; of connection `conn` if it is given."""
    found: list[Message] = []

    def look() -> bool:
        for pipe in pipes:
            try:
                message = pipe.receive(0.005)
            except TimeoutError:
                continue
            assert message is not None, "the pipe ended"
            if conn in (None, message.conn):
                found.append(message)
                return True
        return False

    until(f"a message of connection {conn or '(any)'}", look, 5)
    return found[0]


@dataclass(frozen=True)
class Raw:
    """rp, the test's own pipes to it, and one healthy connection that echoes."""

    rp: Program
    pipes: list[Pipe]
    port: int
    idle: int

    def echoes(self, number: int, text: bytes) -> None:
        """The healthy connection gets `text` back; `number` is the next of its uplink."""
        self.pipes[0].send(wire.data(GOOD_ID, number, text))
        got = b""
        while len(got) < len(text):
            got += self.next(GOOD_ID).body
        assert got == text

    def next(self, conn: int) -> Message:
        return next_message(self.pipes, conn)

    def complaint(self, pipe: int, offset: int, field: str) -> str:
        """The one line about it: which pipe, at which byte, which field."""
        pattern = rf"(?i)(offset|byte)\D*\d+.*\b{field}"
        line = self.rp.expect(pattern, 5)
        for what, number in (("pipe", pipe), ("offset|byte", offset)):
            assert re.search(rf"(?i)\b({what})s?\D{{0,4}}\b{number}\b", line), (
                f"{line!r} does not name {what} {number}"
            )
        assert len(self.rp.lines(pattern)) == 1, self.rp.log
        return line


@contextmanager
def raw(box: Namespace, tmp_path: Path) -> Iterator[Raw]:
    with serving(box, echo) as server, remote_proxy(box, tmp_path, pipes=PIPES) as rp:
        idle = rp.fd_count()
        with raw_lp(box, PIPES) as pipes:
            session = Raw(rp, pipes, server.port, idle)
            pipes[0].send(wire.syn(GOOD_ID, "127.0.0.1", server.port))
            session.echoes(1, b"first")
            yield session
        equals("rp's descriptors", rp.fd_count, idle)


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_a_bad_length_ends_the_session(box: Namespace, tmp_path: Path, length: int) -> None:
    with raw(box, tmp_path) as session:
        good = wire.syn(9, "127.0.0.1", session.port) + wire.data(9, 1, b"x" * 100)
        session.pipes[1].send(good, wire.header(9, 2, length), b"y" * 64)
        for pipe in session.pipes:
            assert pipe.ended(5), "a pipe of the session is still open"
        with local_proxy(box, tmp_path, pipes=PIPES):
            pass
        line = session.complaint(1, len(good), "length")
        assert str(length) in line or f"{length:#x}" in line.lower()


@pytest.mark.parametrize(
    ("conn", "message", "field"),
    [
        (0, wire.data(0, 0, b"zero"), "id"),
        (5, wire.syn(5, "127.0.0.1", 80, number=1), "number"),
        (5, wire.syn(5, "127.0.0.1", 80, number=0xFFFFFFFF), "number"),
        (5, wire.header(5, 1, wire.FIN) + b"\x00", "reason"),
        (5, wire.header(5, 1, wire.FIN) + b"\x77", "reason"),
        (5, wire.header(5, 1, wire.FIN) + b"\xff", "reason"),
    ],
    ids=["id-0", "syn-1", "syn-minus-1", "fin-00", "fin-77", "fin-ff"],
)
def test_a_bad_message_ends_its_connection_only(
    box: Namespace, tmp_path: Path, conn: int, message: bytes, field: str
) -> None:
    with raw(box, tmp_path) as session:
        before = b""
        if field == "reason":
            before = wire.syn(conn, "127.0.0.1", session.port)
        session.pipes[2].send(before, message)
        session.complaint(2, len(before), field)
        if field == "reason":
            end = session.next(conn)
            assert (end.kind, end.body) == ("fin", bytes([BY_RST]))
        session.echoes(2, b"the others go on")


def test_numbers_far_ahead_end_the_connection(box: Namespace, tmp_path: Path) -> None:
    with raw(box, tmp_path) as session:
        syn = wire.syn(5, "127.0.0.1", session.port)
        session.pipes[1].send(syn, wire.data(5, (1 << 20) + 5, b"from the future"))
        session.complaint(1, len(syn), "number")
        end = session.next(5)
        assert (end.kind, end.body) == ("fin", bytes([BY_RST]))
        session.echoes(2, b"the others go on")


@pytest.mark.parametrize(
    "message", [wire.data(5, 0, b"early"), wire.fin(5, 0)], ids=["data", "fin"]
)
def test_number_0_is_a_syns_alone(box: Namespace, tmp_path: Path, message: bytes) -> None:
    """It would make the SYN behind it a duplicate, and the connection wait for ever."""
    with raw(box, tmp_path) as session:
        held = session.rp.fd_count()
        late = wire.syn(5, "127.0.0.1", session.port) + wire.data(5, 1, b"x")
        session.pipes[0].send(message, late)
        session.complaint(0, FIRST_BYTES, "number")
        assert session.next(5) == Message("fin", 5, 0, bytes([BY_RST]))
        session.echoes(2, b"the others go on")
        assert session.rp.fd_count() == held


def test_a_syn_behind_its_refusal_opens_nothing(box: Namespace, tmp_path: Path) -> None:
    """Its connection is over since the FIN 0x99: nobody would own what it opens."""
    with raw(box, tmp_path) as session:
        held = session.rp.fd_count()
        session.pipes[0].send(wire.data(5, 3_000_000, b"far ahead"))
        assert session.next(5) == Message("fin", 5, 0, bytes([BY_RST]))
        session.pipes[0].send(wire.syn(5, "127.0.0.1", session.port), wire.data(5, 1, b"hello"))
        session.echoes(2, b"behind it")
        assert session.rp.fd_count() == held


def test_a_pipe_that_ends_inside_a_message_ends_the_session(box: Namespace, tmp_path: Path) -> None:
    with raw(box, tmp_path) as session:
        session.pipes[1].send(wire.data(GOOD_ID, 2, b"x" * 1000)[:300])
        session.pipes[1].sock.shutdown(1)
        for pipe in session.pipes:
            assert pipe.ended(5)


def test_messages_cut_at_every_byte(box: Namespace, tmp_path: Path) -> None:
    """Not malformed at all: TCP may deliver any piece at any time."""
    with raw(box, tmp_path) as session:
        message = wire.data(GOOD_ID, 2, b"cut me")
        number = 2
        for cut in range(1, len(message)):
            pipe = session.pipes[cut % PIPES]
            piece = wire.data(GOOD_ID, number, b"cut me")
            pipe.send(piece[:cut])
            session.rp.fd_count()  # gives rp a moment to read the first piece alone
            pipe.send(piece[cut:])
            got = b""
            while len(got) < 6:
                got += session.next(GOOD_ID).body
            assert got == b"cut me"
            number += 1


def test_duplicates_and_strangers_are_dropped(box: Namespace, tmp_path: Path) -> None:
    """A number twice, data and FIN for ids that never were, over several pipes."""
    with raw(box, tmp_path) as session:
        session.pipes[1].send(wire.data(GOOD_ID, 1, b"again"), wire.data(GOOD_ID, 1, b"again"))
        session.pipes[2].send(wire.fin(300, 0), wire.data(301, 9, b"?"), wire.fin(302, 4, BY_RST))
        session.echoes(2, b"only once")
        assert len(session.rp.log.splitlines()) < 12, session.rp.log


def test_random_bytes_never_hurt(box: Namespace, tmp_path: Path) -> None:
    """Garbage on a pipe ends that session; rp stays and takes a real lp."""
    with serving(box, echo), remote_proxy(box, tmp_path, pipes=2) as rp:
        idle = rp.fd_count()
        for seed in range(25):
            with raw_lp(box, 2) as pipes:
                threads = [
                    threading.Thread(target=flood, args=(pipe, payload.seeded(200_000, seed + n)))
                    for n, pipe in enumerate(pipes)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(timeout=20)
                assert all(pipe_over(pipe) for pipe in pipes)
            equals("rp's descriptors", rp.fd_count, idle)
        with local_proxy(box, tmp_path, pipes=2):
            pass


def flood(pipe: Pipe, data: bytes) -> None:
    pipe.sock.settimeout(10)
    try:
        pipe.sock.sendall(data)
    except OSError:
        return


def pipe_over(pipe: Pipe) -> bool:
    return read_to_end(pipe.sock, 10).how in ("eof", "reset")


# --- the same towards lp ------------------------------------------------------


@dataclass(frozen=True)
class RawDown:
    """A real lp, and the test as its rp."""

    lp: Program
    pipes: list[Pipe]


@contextmanager
def raw_down(box: Namespace, tmp_path: Path) -> Iterator[RawDown]:
    forward = ("--forward", "7000:127.0.0.1:8000")
    with raw_rp(box) as rp:
        with local_proxy(box, tmp_path, *forward, pipes=PIPES, ready=None) as lp:
            pipes = rp.accept(PIPES)
            try:
                lp.expect(LP_READY)
                yield RawDown(lp, pipes)
            finally:
                for pipe in pipes:
                    pipe.sock.close()


def test_what_lp_sends_for_a_connection(box: Namespace, tmp_path: Path) -> None:
    """The SYN has number 0, the address as written, the port little-endian; data starts at 1."""
    with raw_down(box, tmp_path) as session:
        with box.connect(("127.0.0.1", 7000)) as app:
            syn = next_message(session.pipes)
            assert (syn.kind, syn.number) == ("syn", 0)
            assert syn.body == bytes([127, 0, 0, 1, 8000 & 255, 8000 >> 8])
            assert 1 <= syn.conn <= 32767
            app.sendall(b"hello")
            data = next_message(session.pipes)
            assert (data.kind, data.conn, data.number, data.body) == ("data", syn.conn, 1, b"hello")
            session.pipes[1].send(wire.data(syn.conn, 1, b"world"))
            session.pipes[2].send(wire.data(syn.conn, 0, b"hello "))
            assert read_exactly(app, 11) == b"hello world"
        fin = next_message(session.pipes)
        assert (fin.kind, fin.number, fin.body) == ("fin", 2, bytes([wire.BY_FIN]))


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_lp_ends_the_session_on_a_bad_length(box: Namespace, tmp_path: Path, length: int) -> None:
    with raw_down(box, tmp_path) as session:
        with box.connect(("127.0.0.1", 7000)) as app:
            syn = next_message(session.pipes)
            good = wire.data(syn.conn, 0, b"good")
            session.pipes[1].send(good, wire.header(syn.conn, 1, length), b"y" * 64)
            end = read_to_end(app, 5)
            assert end.how == "reset", end
        for pipe in session.pipes:
            assert pipe.ended(5)
        line = session.lp.expect(r"(?i)\blength", 5)
        assert re.search(r"(?i)pipe\D{0,4}1\b", line), line
        assert re.search(rf"\b{len(good)}\b", line), line


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda conn: wire.syn(conn, "127.0.0.1", 80), "SYN"),
        (lambda conn: wire.header(conn, 0, wire.FIN) + b"\x42", "reason"),
        (lambda conn: wire.data(conn, 1 << 21, b"future"), "number"),
    ],
    ids=["syn-downlink", "fin-42", "far-ahead"],
)
def test_lp_ends_the_connection_on_a_bad_message(
    box: Namespace, tmp_path: Path, build: Callable[[int], bytes], field: str
) -> None:
    with raw_down(box, tmp_path) as session:
        with (
            box.connect(("127.0.0.1", 7000)) as bad,
            box.connect(("127.0.0.1", 7000)) as good,
        ):
            ids = sorted(next_message(session.pipes).conn for _ in range(2))
            session.pipes[0].send(build(ids[0]))
            line = session.lp.expect(rf"(?i)\b{field}", 5)
            assert re.search(r"(?i)pipe\D{0,4}0\b", line), line
            assert read_to_end(bad, 5) == Ending("reset", 0, payload.digest(b""))
            session.pipes[1].send(wire.data(ids[1], 0, b"fine"))
            assert read_exactly(good, 4) == b"fine"
