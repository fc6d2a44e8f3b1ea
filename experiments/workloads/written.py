# SPDX-License-Identifier: MIT
"""An actor that uploads and notes when the kernel took which bytes: what an application sees."""

import socket
import time
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import ENDLESS, Actor, Scene
from experiments.workloads.exchange import REPLY_BYTES, CutShort, Reply, read_exactly
from experiments.workloads.pattern import WrongByte, view

PIECE = 16_384  # of one write


@dataclass(frozen=True, kw_only=True)
class Written(Actor):
    """Bytes as fast as the kernel takes them for `seconds`; then all that the server did not have
    yet. `at` is the clock that all programs of a machine share."""

    seconds: float = 10.0

    def run(self, scene: Scene) -> dict[str, Any]:
        request = scene.request(up=ENDLESS)
        at: list[float] = []
        totals: list[int] = []
        done = 0
        with scene.dial(self.port) as connection:
            connection.sock.sendall(request.packed())
            while scene.now() < self.seconds:
                done += connection.sock.send(view(request.up_start, done, PIECE))
                at.append(time.monotonic())
                totals.append(done)
            connection.sock.shutdown(socket.SHUT_WR)
            reply = read_exactly(connection.sock, REPLY_BYTES)
        if not reply:
            raise CutShort("the connection ended before the reply")
        had = Reply.parsed(reply).received
        if had != done:
            raise WrongByte(f"the server got {had} of {done} bytes right")
        return {"at": at, "bytes": totals}
