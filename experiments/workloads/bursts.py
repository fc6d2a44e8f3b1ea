# SPDX-License-Identifier: MIT
"""An actor that asks for objects in bursts, and may tell lp how large each of them is."""

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.exchange import REPLY_BYTES, Connection, Request, Times

OPEN_S = 1.0  # until every connection is open at the server, too, and rp has heard of its size
NOT_YET = "error: there is no connection "
AGAIN_S, MOST_S = 0.001, 0.2


class LpRefused(RuntimeError):
    """lp did not take a hint."""


@dataclass(frozen=True, kw_only=True)
class Bursts(Actor):
    """Objects of `sizes`, each asked for at its time of `at_s` on a connection of its own that is
    open by then. Times are from the request to the last byte.

    `control`: the socket on which lp is told of each size; "": it is not told. lp knows a
    connection by its address and port, which redirection keeps where nobody had that port for long:
    they are taken from `first_port` on.
    """

    sizes: Sequence[int]
    at_s: Sequence[float]
    control: str = ""
    first_port: int = 0

    def run(self, scene: Scene) -> dict[str, Any]:
        with ExitStack() as stack:
            connections = [
                stack.enter_context(scene.dial(self.port, source_port=self._port(n)))
                for n in range(len(self.sizes))
            ]
            if self.control:
                self._tell(connections)
            time.sleep(OPEN_S)
            times = self._all(scene, connections)
        return {
            "times_s": [it.last - it.asked for it in times],
            "asked_s": [it.asked - scene.began for it in times],
        }

    def _port(self, number: int) -> int:
        return self.first_port + number if self.first_port else 0

    def _tell(self, connections: Sequence[Connection]) -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(self.control)
            with sock.makefile("rw") as lp:
                for connection, size in zip(connections, self.sizes, strict=True):
                    host, port = connection.sock.getsockname()
                    tell(lp, f"hint {host}:{port} size={size + REPLY_BYTES}")

    def _all(self, scene: Scene, connections: Sequence[Connection]) -> list[Times]:
        """A thread for each, since any may be the next to arrive."""
        requests = [scene.request(down=size) for size in self.sizes]
        began = time.monotonic()
        found: list[Times | BaseException | None] = [None] * len(requests)

        def one(number: int, connection: Connection, request: Request) -> None:
            try:
                time.sleep(max(0.0, began + self.at_s[number] - time.monotonic()))
                found[number] = connection.exchange(request)
            except BaseException as error:
                found[number] = error

        threads = [
            threading.Thread(target=one, args=(n, *each), daemon=True)
            for n, each in enumerate(zip(connections, requests, strict=True))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for it in found:
            if isinstance(it, BaseException):
                raise it
        return [it for it in found if isinstance(it, Times)]


def tell(lp: Any, command: str) -> None:
    """Until lp took it: it may not have accepted a connection that the kernel has answered. Raises
    LpRefused."""
    again_s = AGAIN_S
    while True:
        lp.write(f"{command}\n")
        lp.flush()
        answer = lp.readline().rstrip()
        if answer == "ok":
            return
        if not answer.startswith(NOT_YET) or again_s >= MOST_S:
            raise LpRefused(f"{command}: {answer or 'lp closed its control socket'}")
        time.sleep(again_s)
        again_s *= 2
