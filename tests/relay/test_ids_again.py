# SPDX-License-Identifier: MIT
"""Ids used again in the baseline, over pipes that are late against each other by up to a second:
each application and each server has all of its own bytes, and nobody else's."""

import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.relay import records, wire
from tests.relay.delays import FAR, delayed_pipes
from tests.relay.ends import RST_ON_CLOSE, read_exactly, reset, serving
from tests.relay.netns import Namespace
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.traffic import stretch
from tests.relay.waiting import until
from tests.relay.wire import Message, Pipe, raw_lp

DELAYS_S = (0.0, 0.3, 0.6, 1.0)  # of the pipes, one way
QUESTION = struct.Struct("<QII")  # a token, and bytes each way
MOST = 30_000  # of these
PATIENCE_S = 30.0
ASKERS = 32
IDS = 32_767
RESTING_RATE = 900  # connections a second; each id rests 30 s, so 1,092 could be had


@dataclass(frozen=True)
class Question:
    token: int
    up: int
    down: int

    def to_bytes(self) -> bytes:
        return QUESTION.pack(self.token, self.up, self.down) + stretch(self.token, 0, self.up)

    def answer(self) -> bytes:
        return stretch(~self.token, 0, self.down)


def any_question(rng: random.Random) -> Question:
    return Question(rng.getrandbits(62), rng.randrange(MOST), rng.randrange(1, MOST))


@dataclass
class Asked:
    """A server answers when it has read all of a question, and waits for the end. Who asks ends
    when the answer was whole: the baseline has no half-open connections."""

    came: Counter[int] = field(default_factory=Counter)  # by token
    ended: Counter[int] = field(default_factory=Counter)
    asked: int = 0
    beside: int = 0  # connections that asked nothing
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        try:
            question = Question(*QUESTION.unpack(read_exactly(sock, QUESTION.size)))
            with self.lock:
                self.came[question.token] += 1
            whole = question.to_bytes()[QUESTION.size :]
            assert read_exactly(sock, question.up) == whole, "other bytes than were sent"
            sock.sendall(question.answer())
            with suppress(ConnectionResetError):
                assert not sock.recv(1), "more bytes than were sent"
            with self.lock:
                self.ended[question.token] += 1
        except BaseException as error:
            self.wrong.append(f"a server: {error!r}")

    def has_ended(self, question: Question) -> None:
        until("the server to see the end", lambda: self.ended[question.token], PATIENCE_S)

    def check(self) -> None:
        assert not self.wrong, self.wrong[:5]
        assert self.came.total() == len(self.came) == self.asked


class Lp:
    """An lp of others, which does not rest ids: an id is used again as soon as the server saw the
    end of its last use, since nothing of that is under way then. One message a write."""

    def __init__(self, pipes: list[Pipe], port: int, asked: Asked) -> None:
        self.pipes = pipes
        self.port = port
        self.asked = asked
        self.inbox: dict[int, SimpleQueue[Message]] = {
            conn: SimpleQueue() for conn in range(1, ASKERS + 1)
        }
        self.lock = threading.Lock()
        self.uses: Counter[int] = Counter()

    def used_enough(self) -> bool:
        return self.uses.total() >= 150 and min(self.uses[conn] for conn in self.inbox) >= 3

    def read(self, pipe: Pipe) -> None:
        with suppress(OSError):
            while (message := pipe.receive(2 * PATIENCE_S)) is not None:
                self.inbox[message.conn].put(message)

    def send(self, messages: list[bytes], turn: int) -> None:
        for n, message in enumerate(messages):
            with self.lock:
                self.pipes[(turn + n) % len(self.pipes)].send(message)

    def answer(self, conn: int, size: int) -> bytes:
        """In order, whatever the pipes did; nothing else is there."""
        early: dict[int, bytes] = {}
        found = b""
        number = 0
        while len(found) < size:
            message = self.inbox[conn].get(timeout=PATIENCE_S)
            assert message.kind == "data" and message.number not in early, message
            early[message.number] = message.body
            while number in early:
                found += early.pop(number)
                number += 1
        assert not early and self.inbox[conn].empty()
        return found

    def use(self, conn: int, rng: random.Random) -> None:
        question = any_question(rng)
        left = question.to_bytes()
        out = [wire.syn(conn, "127.0.0.1", self.port)]
        while left:
            size = rng.randint(1, wire.PAYLOAD_MAX)
            out.append(wire.data(conn, len(out), left[:size]))
            left = left[size:]
        turn = rng.randrange(len(self.pipes))
        self.send(out, turn)
        assert self.answer(conn, question.down) == question.answer(), "another answer"
        reason = rng.choice((wire.BY_FIN, wire.BY_RST))
        self.send([wire.fin(conn, len(out), reason)], turn + len(out))
        with self.asked.lock:
            self.asked.asked += 1
        self.uses[conn] += 1
        self.asked.has_ended(question)

    def go_on(self, conn: int) -> None:
        rng = random.Random(conn)
        try:
            while not self.asked.over.is_set():
                self.use(conn, rng)
        except BaseException as error:
            self.asked.wrong.append(f"lp, id {conn}: {error!r}")


@contextmanager
def at_work(asked: Asked, *jobs: threading.Thread) -> Iterator[None]:
    for job in jobs:
        job.start()
    try:
        yield
    finally:
        asked.over.set()
        for job in jobs:
            job.join()
    asked.check()


@pytest.mark.slow
def test_an_lp_that_does_not_rest_its_ids(box: Namespace, tmp_path: Path) -> None:
    """rp forgets an id as soon as all of its last use came, orderly end or reset: each of the next
    one's messages is the next one's, on whatever pipe (decision 0001)."""
    asked = Asked()
    with (
        delayed_pipes(box, DELAYS_S),
        serving(box, asked.serve) as server,
        remote_proxy(box, tmp_path, "--listen", FAR, "--pipe-policy", "rr"),
        raw_lp(box, len(DELAYS_S)) as pipes,
    ):
        lp = Lp(pipes, server.port, asked)
        readers = [threading.Thread(target=lp.read, args=(pipe,)) for pipe in pipes]
        for reader in readers:
            reader.start()
        users = [threading.Thread(target=lp.go_on, args=(conn,)) for conn in lp.inbox]
        try:
            with at_work(asked, *users):
                until("150 uses, three of each", lambda: asked.wrong or lp.used_enough(), 60)
        finally:
            for pipe in pipes:
                pipe.sock.shutdown(socket.SHUT_RDWR)
            for reader in readers:
                reader.join()
    assert min(lp.uses.values()) >= 3, lp.uses


def ask(box: Namespace, asked: Asked, seed: int) -> None:
    """One question after the other, through lp."""
    rng = random.Random(seed)
    try:
        while not asked.over.is_set():
            question = any_question(rng)
            with box.connect(("127.0.0.1", 7000), PATIENCE_S) as sock:
                sock.sendall(question.to_bytes())
                found = read_exactly(sock, question.down)
                assert found == question.answer(), "another answer"
                if rng.random() < 0.5:
                    reset(sock)
            with asked.lock:
                asked.asked += 1
    except BaseException as error:
        asked.wrong.append(f"an application: {error!r}")


def use_up(box: Namespace, asked: Asked) -> None:
    """Connections to where nobody listens, each of which has an id for a moment."""
    began = time.monotonic()
    with box.entered():
        while not asked.over.is_set():
            with (
                suppress(ConnectionResetError),
                socket.create_connection(("127.0.0.1", 7001), 10) as sock,
            ):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
            asked.beside += 1
            time.sleep(max(0.0, began + asked.beside / RESTING_RATE - time.monotonic()))


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_ids_that_rested_are_used_again_at_full_rate(box: Namespace, tmp_path: Path) -> None:
    """lp walks through all its ids, nearly as fast as they come back, and on."""
    asked = Asked()
    stats = tmp_path / "lp.jsonl"
    turns = ("--pipe-policy", "rr")
    with (
        delayed_pipes(box, DELAYS_S),
        serving(box, asked.serve, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, "--listen", FAR, *turns, asan=False),
        local_proxy(
            *(box, tmp_path, "--extend", "never", *turns, *records.soon(stats)),
            *("--forward", "7000:127.0.0.1:8000", "--forward", "7001:127.0.0.1:9"),
            asan=False,
        ) as lp,
    ):
        askers = [threading.Thread(target=ask, args=(box, asked, seed)) for seed in range(ASKERS)]
        others = threading.Thread(target=use_up, args=(box, asked))
        with at_work(asked, others, *askers):
            until(
                "ids to be used again for some seconds",
                lambda: asked.wrong or asked.beside >= IDS + 3_000,
                120,
            )
        assert not lp.lines("connection ids are in use or rest")
    uses = Counter(record["id"] for record in records.of(stats, "conn"))
    assert len(uses) > IDS * 0.99
    assert max(uses.values()) == 2
    assert list(uses.values()).count(2) >= 2_500
