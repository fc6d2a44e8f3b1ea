# SPDX-License-Identifier: MIT
"""Actors that dial anew when their connection ends, as a user would, and tell what they missed.

Moments are of time.monotonic(), which namespaces of one kernel share, so that what befalls the
pipes can be held against them.
"""

import select
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from experiments.workloads.actors import ENDLESS, Actor, Bins, Scene
from experiments.workloads.exchange import Connection, CutShort, read_stream
from experiments.workloads.pattern import CHUNK, check, piece

PAUSE_S = 0.05  # before another connect()
APART_S = 0.001  # arrivals that are nearer to each other are one
QUERIES = 1 << 20  # of a connection, more than there will be


@dataclass
class Ends:
    """Of connections, before the run's: when, and whether in order (a FIN) or by a reset."""

    resets: list[float] = field(default_factory=list)
    clean: list[float] = field(default_factory=list)

    def add(self, why: OSError) -> None:
        (self.clean if isinstance(why, CutShort) else self.resets).append(time.monotonic())


def again_and_again(scene: Scene, port: int, use: Any) -> Ends:
    """`use` has one connection after the other until the scene is over."""
    ends = Ends()
    while not scene.over.is_set():
        try:
            with scene.dial(port) as connection:
                scene.to_hang_up.append(connection)
                use(connection)
        except OSError as why:
            if not scene.over.is_set():
                ends.add(why)
                scene.over.wait(PAUSE_S)
    return ends


@dataclass(frozen=True, kw_only=True)
class BulkAgain(Actor):
    """A download without end: when something of it came, and how much in each bin."""

    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        bins, came = Bins(scene), [time.monotonic()]

        def use(connection: Connection) -> None:
            before = bins.total

            def seen(done: int) -> None:
                bins.upto(before + done)
                now = time.monotonic()
                if now - came[-1] >= APART_S:
                    came.append(now)

            request = scene.request(down=ENDLESS)
            connection.ask(request)
            connection.reply(request)
            read_stream(connection.sock, request.down, request.down_start, seen)
            raise CutShort("a download without end has ended")

        ends = again_and_again(scene, self.port, use)
        return {"began": scene.began, "bins": bins.bins, "came": came, **vars(ends)}


@dataclass(frozen=True, kw_only=True)
class EchoAgain(Actor):
    """A query every so often, answered at once; of each when it was due and how long until it was
    answered, or one after it where its connection ended."""

    size: int = 40
    every_s: float = 0.02
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        clock = _Clock(scene.began, self.every_s)
        ends = again_and_again(scene, self.port, lambda it: self._use(scene, it, clock))
        clock.upto(time.monotonic())
        clock.all_until(time.monotonic())
        return {"due": clock.due, "wait": clock.wait, **vars(ends)}

    def _use(self, scene: Scene, connection: Connection, clock: "_Clock") -> None:
        """Answers are read as they come; queries are written by the clock."""
        sock, total = connection.sock, self.size * QUERIES
        request = scene.request(up=total, down=total, frame_bytes=self.size, queries=True)
        sock.sendall(request.packed())
        clock.upto(time.monotonic())
        first, came = len(clock.due), 0
        while not scene.over.is_set():
            late = max(0.0, clock.next - time.monotonic())
            if select.select([sock], [], [], late)[0]:
                came += _checked(sock, request.down_start, came)
                if came >= self.size:
                    clock.answered(first + came // self.size, time.monotonic())
            if time.monotonic() >= clock.next:
                number = clock.ask() - first
                sock.sendall(piece(request.up_start, number * self.size, self.size))


def _checked(sock: socket.socket, start: int, came: int) -> int:
    data = sock.recv(CHUNK)
    if not data:
        raise CutShort("an echo's connection has ended")
    check(start, came, data)
    return len(data)


class _Clock:
    """Queries by when they are due, whether or not there is a connection for them."""

    def __init__(self, began: float, every_s: float) -> None:
        self.every_s = every_s
        self.next = began
        self.due: list[float] = []
        self.wait: list[float] = []  # of as many of them as are answered

    def ask(self) -> int:
        self.due.append(self.next)
        self.next += self.every_s
        return len(self.due) - 1

    def upto(self, now: float) -> None:
        while self.next <= now:
            self.ask()

    def answered(self, count: int, now: float) -> None:
        """All before that one: those of former connections have waited until now as well."""
        for due in self.due[len(self.wait) : count]:
            self.wait.append(round(now - due, 5))

    def all_until(self, now: float) -> None:
        self.answered(len(self.due), now)
