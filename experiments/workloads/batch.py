# SPDX-License-Identifier: MIT
"""An actor that asks for many objects, a few at a time, as a browser does for a page."""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.exchange import Connection, CutShort, Request, read_stream


@dataclass(frozen=True, kw_only=True)
class Batch(Actor):
    """`count` objects, `parallel` of them under way at a time, and that `rounds` times.

    Each object has a connection of its own. With `kept` one connection carries all rounds: the
    client asks for the next object while up to `parallel` have not arrived in full.
    """

    size: int = 20_000
    count: int = 40
    parallel: int = 6
    rounds: int = 1
    pause_s: float = 0.3
    kept: bool = False

    def run(self, scene: Scene) -> dict[str, Any]:
        began, took = [], []
        for number, fetch in enumerate(self._rounds(scene)):
            if number:
                time.sleep(self.pause_s)
            began.append(scene.now())
            fetch()
            took.append(scene.now() - began[-1])
        return {"began_s": began, "took_s": took}

    def _rounds(self, scene: Scene) -> Iterator[Callable[[], None]]:
        if not self.kept:
            yield from itertools.repeat(lambda: self._each_its_own(scene), self.rounds)
            return
        with scene.dial(self.port) as connection:
            yield from itertools.repeat(lambda: self._on_one(scene, connection), self.rounds)

    def _each_its_own(self, scene: Scene) -> None:
        """Threads take the next object as soon as they have one in full."""
        left = iter(range(self.count))
        failed: list[BaseException] = []

        def work() -> None:
            try:
                for _ in left:
                    with scene.dial(self.port) as connection:
                        connection.exchange(scene.request(down=self.size))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.parallel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    def _on_one(self, scene: Scene, connection: Connection) -> None:
        asked: deque[Request] = deque()

        def ask() -> None:
            request = scene.request(down=self.size)
            asked.append(request)
            connection.ask(request)

        for _ in range(min(self.parallel, self.count)):
            ask()
        for number in range(self.count):
            request = asked.popleft()
            connection.reply(request)
            came = read_stream(connection.sock, request.down, request.down_start)
            if came != request.down:
                raise CutShort(f"the connection ended after {came} of {request.down} bytes")
            if number + self.parallel < self.count:
                ask()
