# SPDX-License-Identifier: MIT
"""An actor with a thin stream: a small query every so often, whether or not the last was answered.

What an online game or a remote desktop sends. TCP repairs a lost query only when the next ones
arrive, or after a time-out; and a query that comes early waits for the one before it.
"""

import threading
import time
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.exchange import Connection, CutShort, Request, read_exactly
from experiments.workloads.pattern import check, piece


@dataclass(frozen=True, kw_only=True)
class Thin(Actor):
    """`count` queries of `size` bytes on one connection, each answered by as many bytes."""

    size: int = 40
    count: int = 400
    every_s: float = 0.05

    def run(self, scene: Scene) -> dict[str, Any]:
        total = self.size * self.count
        request = scene.request(up=total, down=total, frame_bytes=self.size, queries=True)
        asked: list[float] = []
        with scene.dial(self.port) as connection:
            connection.sock.sendall(request.packed())
            writer = threading.Thread(target=self._ask, args=(connection, request, asked))
            writer.daemon = True
            writer.start()
            answered = [self._answer(connection, request, n) for n in range(self.count)]
            writer.join()
            connection.reply(request)
        return {"seconds": [then - at for at, then in zip(asked, answered, strict=True)]}

    def _ask(self, connection: Connection, request: Request, asked: list[float]) -> None:
        """By the clock, so that one that was late does not delay all that follow."""
        began = time.monotonic()
        for n in range(self.count):
            time.sleep(max(0.0, began + n * self.every_s - time.monotonic()))
            query = piece(request.up_start, n * self.size, self.size)
            asked.append(time.monotonic())
            connection.sock.sendall(query)

    def _answer(self, connection: Connection, request: Request, n: int) -> float:
        data = read_exactly(connection.sock, self.size)
        at = time.monotonic()
        if not data:
            raise CutShort(f"the connection ended after {n} of {self.count} answers")
        check(request.down_start, n * self.size, data)
        return at
