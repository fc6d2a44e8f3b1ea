# SPDX-License-Identifier: MIT
"""An actor whose one transfer goes on without end, and that tells when something of it arrived."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import Queue
from typing import Any

from experiments.workloads.actors import ENDLESS, Actor, Bins, Scene, Way
from experiments.workloads.exchange import Connection, CutShort, Request, read_stream

APART_S = 0.001  # arrivals that are nearer to each other are one
UP_PIECE = 1448  # the server replies to each: a segment's worth, so that pauses are told finely
UP_AHEAD = 4096  # pieces without a reply at most


@dataclass(frozen=True, kw_only=True)
class Steady(Actor):
    """Arrivals are by time.monotonic(), which client and server share. Of an upload the server
    tells when it had each piece. A connection that ends fails the run."""

    way: Way = "down"
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        bins, came = Bins(scene), [time.monotonic()]

        def arrived(size: int, at: float) -> None:
            bins.add(size, at - scene.began)
            if at - came[-1] >= APART_S:
                came.append(at)

        with scene.dial(self.port) as connection:
            scene.to_hang_up.append(connection)
            try:
                (_down if self.way == "down" else _up)(scene, connection, arrived)
            except OSError:
                if not scene.over.is_set():
                    raise
        return {"began": scene.began, "bins": bins.bins, "came": came}


def _down(scene: Scene, connection: Connection, arrived: Any) -> None:
    request = scene.request(down=ENDLESS)
    connection.ask(request)
    connection.reply(request)
    before = 0

    def seen(done: int) -> None:
        nonlocal before
        arrived(done - before, time.monotonic())
        before = done

    read_stream(connection.sock, request.down, request.down_start, seen)
    raise CutShort("a download without end has ended")


def _up(scene: Scene, connection: Connection, arrived: Any) -> None:
    asked: Queue[Request] = Queue(UP_AHEAD)

    def write() -> None:
        with suppress(OSError):  # the reader meets the same, and tells
            while not scene.over.is_set():
                request = scene.request(up=UP_PIECE)
                asked.put(request)
                connection.ask(request)

    threading.Thread(target=write, daemon=True).start()
    while True:
        reply = connection.reply(asked.get(timeout=scene.seconds))
        arrived(UP_PIECE, reply.clock_ns / 1e9)
