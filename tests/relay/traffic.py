# SPDX-License-Identifier: MIT
"""Connections that open, talk and end in all ways, each of whose bytes is known.

A connection begins with a header that only the test's own server understands: who it is, what is
to happen, how many bytes go each way. Both ends play their parts and report what they saw; a
`Traffic` compares, and knows of each connection how often it reached the server.
"""

import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.relay import payload
from tests.relay.ends import read_exactly, reset, serving
from tests.relay.netns import Namespace
from tests.relay.waiting import until

HEADER = struct.Struct("<QBII")
PATTERN = payload.seeded(payload.PATTERN_BYTES, seed=3) * 2
BLOCK = 1 << 16
# Longer than any pause that a test makes: who waits longer is stuck.
PATIENCE_S = 90.0

# What happens. Both: both ends send, and close their sides when they have. The others end early.
BOTH, CLIENT_RESETS, SERVER_RESETS = range(3)


def stretch(token: int, at: int, size: int) -> bytes:
    """Bytes `at` and on of the stream that `token` names."""
    start = (token * 7919 + at) % payload.PATTERN_BYTES
    return PATTERN[start : start + size]


@dataclass(frozen=True)
class Plan:
    token: int
    what: int
    up: int
    down: int

    def header(self) -> bytes:
        return HEADER.pack(self.token, self.what, self.up, self.down)


def plan_of(header: bytes) -> Plan:
    return Plan(*HEADER.unpack(header))


def write(sock: socket.socket, token: int, size: int) -> None:
    for at in range(0, size, BLOCK):
        sock.sendall(stretch(token, at, min(BLOCK, size - at)))


@dataclass
class Traffic:
    """What went over, and what was wrong with it."""

    most: int = 400_000  # bytes each way
    pause_s: float = 0.0  # of each worker between two connections
    accepted: int = 0
    came: Counter[int] = field(default_factory=Counter)  # by token, at the server
    saw: dict[int, str] = field(default_factory=dict)  # by token, how the server's reading ended
    done: Counter[int] = field(default_factory=Counter)  # by what happened
    moved: int = 0  # bytes that were read, about
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, sock: socket.socket, token: int) -> tuple[str, int]:
        """Reads to the end, comparing: `eof` or `reset`, and after how many bytes."""
        at = 0
        while True:
            try:
                data = sock.recv(BLOCK)
            except (ConnectionResetError, BrokenPipeError):
                return "reset", at
            if not data:
                return "eof", at
            assert data == stretch(token, at, len(data)), f"other bytes than were sent, at {at}"
            at += len(data)
            self.moved += len(data)

    def talk(self, sock: socket.socket, writes: tuple[int, int], reads: tuple[int, int]) -> str:
        """Writes and reads at once, each a token and a size; how the connection ended."""
        ends: list[tuple[str, int] | BaseException] = []

        def reader() -> None:
            try:
                ends.append(self.read(sock, reads[0]))
            except BaseException as error:
                ends.append(error)

        thread = threading.Thread(target=reader)
        thread.start()
        broke = False
        try:
            write(sock, *writes)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            broke = True  # the kernel tells of a reset once: to the writer, and 0 to the reader
        thread.join()
        (end,) = ends
        if isinstance(end, BaseException):
            raise end
        if broke:
            return "reset"
        assert end[0] == "reset" or end[1] == reads[1], f"an end in order after {end[1]} bytes"
        return end[0]

    def serve(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        with self.lock:
            self.accepted += 1
        try:
            plan = plan_of(read_exactly(sock, HEADER.size))
        except (AssertionError, ConnectionError):
            return  # the client had reset it before
        with self.lock:
            self.came[plan.token] += 1
        try:
            if plan.what == SERVER_RESETS:
                write(sock, ~plan.token, plan.down)
                reset(sock)
                return
            ways = (~plan.token, plan.down), (plan.token, plan.up)
            self.saw[plan.token] = self.talk(sock, *ways)
        except BaseException as error:
            self.wrong.append(f"the server of {plan}: {error!r}")

    def play(self, sock: socket.socket, plan: Plan) -> None:
        """The client's part."""
        sock.settimeout(PATIENCE_S)
        sock.sendall(plan.header())
        if plan.what == CLIENT_RESETS:
            with suppress(ConnectionError):
                write(sock, plan.token, plan.up)
            reset(sock)
            return
        how = self.talk(sock, (plan.token, plan.up), (~plan.token, plan.down))
        wanted = "eof" if plan.what == BOTH else "reset"
        assert how == wanted, f"the client of {plan} saw {how}"

    def plan(self, rng: random.Random) -> Plan:
        def size() -> int:
            return int(self.most ** rng.random()) if rng.random() < 0.9 else 0

        what = rng.choice((BOTH, BOTH, BOTH, CLIENT_RESETS, SERVER_RESETS))
        return Plan(rng.getrandbits(62), what, size(), size())

    def work(self, connect: Callable[[], socket.socket], seed: int) -> None:
        rng = random.Random(seed)
        while not self.over.is_set():
            plan = self.plan(rng)
            try:
                with connect() as sock:
                    self.play(sock, plan)
            except BaseException as error:
                self.wrong.append(f"{plan}: {error!r}")
                return
            with self.lock:
                self.done[plan.what] += 1
            self.over.wait(self.pause_s)

    def check(self) -> None:
        assert not self.wrong, self.wrong[:5]
        twice = [token for token, times in self.came.items() if times > 1]
        assert not twice, f"{len(twice)} connections reached the server more than once"
        assert len(self.came) <= self.done.total()
        clean = sum(how == "eof" for how in self.saw.values())
        assert clean == self.done[BOTH], f"{clean} clean ends of {self.done}"


@contextmanager
def traffic(
    ns: Namespace,
    port: int,
    *,
    workers: int = 4,
    most: int = 400_000,
    pause_s: float = 0.0,
    far: Namespace | None = None,
    host: str = "127.0.0.1",
) -> Iterator[Traffic]:
    """Connections one after the other to `port`, which lp forwards to port 8000 of `host`.

    That is in `far`, or in the same namespace.
    """
    going = Traffic(most, pause_s)
    with serving(far or ns, going.serve, (host, 8000)) as server:
        threads = [
            threading.Thread(
                target=going.work, args=(lambda: ns.connect(("127.0.0.1", port)), seed)
            )
            for seed in range(workers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield going
        finally:
            going.over.set()
            for thread in threads:
                thread.join()
        until(
            "the server to have seen all ends",
            lambda: server.results.qsize() >= going.accepted,
            PATIENCE_S,
        )
    going.check()
