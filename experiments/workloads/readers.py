# SPDX-License-Identifier: MIT
"""An actor with applications that ask for much and take little of it, or nothing.

All of them are one thread's. A reset is noticed also by who does not read.
"""

import select
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.workloads.actors import BIN_S, ENDLESS, Actor, Scene
from experiments.workloads.descriptors import descriptors
from experiments.workloads.exchange import REPLY_BYTES, Connection, CutShort, Reply, Request
from experiments.workloads.pattern import CHUNK, check

TICK_MS = 10
IDLE_TICK_MS = 100  # where nobody reads: thousands of them are a millisecond's work each time
SPARE = 256  # descriptors beside those of the readers


@dataclass
class Reader:
    """A download without end, of which so much was taken."""

    connection: Connection
    request: Request
    head: bytearray = field(default_factory=bytearray)  # of the reply
    taken: int = 0

    def take(self, upto: int) -> None:
        """What is there of it. Raises OSError at its end."""
        while self.taken < upto:
            wanted = REPLY_BYTES - len(self.head) or min(CHUNK, upto - self.taken)
            try:
                data = self.connection.sock.recv(wanted)
            except BlockingIOError:
                return
            if not data:
                raise CutShort("a download without end has ended")
            self._look_at(data)

    def _look_at(self, data: bytes) -> None:
        if len(self.head) < REPLY_BYTES:
            self.head += data
            if len(self.head) == REPLY_BYTES:
                Reply.parsed(bytes(self.head))
            return
        check(self.request.down_start, self.taken, data)
        self.taken += len(data)


@dataclass(frozen=True, kw_only=True)
class Readers(Actor):
    """`count` of them: each takes `first` bytes as fast as they come, then `rate` bytes a second.

    When each has had its first bytes, or was reset, there is a file `path`. `rcvbuf`: bytes of each
    one's SO_RCVBUF, if not the kernel's own. `pause_s`: between one that dials and the next.
    """

    count: int = 1
    first: int = 0
    rate: float = 0.0
    path: str = ""
    rcvbuf: int = 0
    pause_s: float = 0.0
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        readers = self._all(scene)
        resets: list[float] = []
        taken: list[tuple[float, int]] = []  # by all of them until then
        alive, settled = dict(readers), None
        tick_ms = TICK_MS if self.first or self.rate else IDLE_TICK_MS
        poll = select.poll()
        for number in readers:
            poll.register(number, 0)  # errors only
        try:
            while not scene.over.is_set():
                now = scene.now()
                upto = self.first + int(self.rate * (now - (settled or now)))
                gone = {number for number, _ in poll.poll(tick_ms)}
                if upto:
                    gone |= {it for it in alive if it not in gone and not _took(alive[it], upto)}
                for number in gone:
                    poll.unregister(number)
                    del alive[number]
                    resets.append(scene.now())
                if settled is None and all(it.taken >= self.first for it in alive.values()):
                    settled = scene.now()
                    Path(self.path).touch()
                if not taken or now > taken[-1][0] + BIN_S:
                    taken.append((now, sum(it.taken for it in readers.values())))
        finally:
            for it in readers.values():
                it.connection.sock.close()
        return {"resets_s": resets, "taken": taken}

    def _all(self, scene: Scene) -> dict[int, Reader]:
        found = {}
        descriptors(self.count + SPARE)
        for _ in range(self.count):
            connection = scene.dial(self.port, rcvbuf=self.rcvbuf)
            request = scene.request(down=ENDLESS)
            connection.ask(request)
            connection.sock.setblocking(False)
            found[connection.sock.fileno()] = Reader(connection, request)
            time.sleep(self.pause_s)
        return found


def _took(it: Reader, upto: int) -> bool:
    try:
        it.take(upto)
    except OSError:
        return False
    return True
