# SPDX-License-Identifier: MIT
"""The application: it has one connection, and a new one where that fails or where it is told to.

What it is told is in a file: the address from which to dial ("" leaves it to the kernel), or
`none`; behind it `move` where a connection from another address is to be replaced. The new one is
asked for what comes next, and the old one goes on until it brings something.
"""

import select
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.workloads.rtapp.chunk import NUMBER, SIZE, number_of

LOOK_S = 0.005
DIALS_S = 1.0  # until an attempt is given up, to connect, or to get what was asked for
NONE = "none"


@dataclass(frozen=True)
class Told:
    address: str | None  # to dial from; None: there is no network
    move: bool

    @staticmethod
    def read(path: Path) -> "Told":
        address, _, word = path.read_text().partition(" ")
        return Told(None if address == NONE else address, word == "move")


def tell(path: Path, address: str | None, *, move: bool) -> None:
    """In one piece: who reads it meanwhile reads the old one."""
    told = path.with_suffix(".new")
    told.write_text((NONE if address is None else address) + (" move" if move else ""))
    told.replace(path)


class Connection:
    def __init__(self, address: str, server: tuple[str, int], number: int) -> None:
        self.address, self.since = address, time.monotonic()
        self.asked = False
        self._request = NUMBER.pack(number)
        self._have = b""
        self.sock = socket.socket()
        self.sock.setblocking(False)
        if address:
            self.sock.bind((address, 0))
        self.sock.connect_ex(server)

    def ask(self) -> None:
        """Once it is there. Raises OSError."""
        error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, "cannot connect")
        self.sock.send(self._request)
        self.asked, self.since = True, time.monotonic()

    def chunks(self) -> list[bytes]:
        """Those that are whole now. Raises OSError."""
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionError("the server has ended it")
        self._have += data
        whole = len(self._have) // SIZE * SIZE
        found = [self._have[at : at + SIZE] for at in range(0, whole, SIZE)]
        self._have = self._have[whole:]
        return found


@dataclass
class Application:
    """`came`: of each chunk in order when it was there, by time.monotonic()."""

    server: tuple[str, int]
    seed: int
    told_at: Path
    came: list[float] = field(default_factory=list)
    again: int = 0  # chunks that had come before
    dialled: int = 0
    failed: int = 0
    _now: Connection | None = None
    _next: Connection | None = None

    def run(self, over: Path) -> None:
        """Until that file is there."""
        while not over.exists():
            self._dial(Told.read(self.told_at))
            self._look()
        for connection in self._open():
            connection.sock.close()

    def _open(self) -> list[Connection]:
        return [it for it in (self._now, self._next) if it is not None]

    def _dial(self, told: Told) -> None:
        if self._next is not None:
            late = time.monotonic() - self._next.since > DIALS_S
            if late or (told.move and self._next.address != told.address):
                self._drop(self._next)
        elsewhere = self._now is not None and told.move and self._now.address != told.address
        if told.address is None or self._next or not (self._now is None or elsewhere):
            return
        try:
            self._next = Connection(told.address, self.server, len(self.came))
            self.dialled += 1
        except OSError:
            self.failed += 1  # that address is not there

    def _drop(self, connection: Connection) -> None:
        connection.sock.close()
        self.failed += 1
        if connection is self._now:
            self._now = None
        else:
            self._next = None

    def _look(self) -> None:
        its = self._open()
        dialling = [it.sock for it in its if not it.asked]
        readable, writable, _ = select.select(
            [it.sock for it in its if it.asked], dialling, [], LOOK_S
        )
        for it in its:
            if it not in self._open():  # another one has just taken its place
                continue
            try:
                if it.sock in writable:
                    it.ask()
                if it.sock in readable:
                    self._take(it)
            except OSError:
                self._drop(it)

    def _take(self, connection: Connection) -> None:
        for data in connection.chunks():
            number = number_of(self.seed, data)
            if number > len(self.came):
                raise RuntimeError(f"chunk {number} came, not {len(self.came)}")
            if connection is self._next:
                if self._now is not None:
                    self._now.sock.close()
                self._now, self._next = connection, None
            if number < len(self.came):
                self.again += 1  # the former one brought it meanwhile
            else:
                self.came.append(time.monotonic())

    def found(self) -> dict[str, Any]:
        return {
            "came": self.came,
            "again": self.again,
            "dialled": self.dialled,
            "failed": self.failed,
        }
