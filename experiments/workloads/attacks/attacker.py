# SPDX-License-Identifier: MIT
"""Who attacks: the pipes that it has, from whatever address it likes, and what it counted.

It runs where rp does, so that it needs no link: each of 127.0.0.0/8 is an address of its own to rp,
and so is each that a route calls local (`network_of_64`).
"""

import errno
import itertools
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from experiments.workloads.attacks.allowance import Allowance

IPV6_FREEBIND = 78  # an address that only a route calls local
DIAL_S = 2.0
TICK_S = 0.05
SOURCES = 200  # of a flood
LOOK_EACH = 20
# rp has no more places, or had one and reset it while this was being dialled.
REFUSED = (ConnectionError, TimeoutError)


@dataclass
class Attacker:
    """`pipes`: how many a session of the baseline has here. `host6`: rp's address of IPv6.

    `begin` is called when an attack is prepared, and returns when it may go.
    """

    pipes: int = 4
    host: str = "127.0.0.1"
    host6: str = "::1"
    port: int = 6000
    extended: int = 6010
    seconds: float = 10.0  # by which it spreads what is bounded in number
    processors: float = 0.25  # that it may use
    over: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    counts: "Counter[str]" = field(default_factory=Counter)
    allowance: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self.allowance = Allowance(self.processors)

    def begin(self) -> None:
        self.ready.set()
        self.go.wait()
        self.allowance = Allowance(self.processors)

    def pace(self) -> None:
        """Between two pieces of work: waits until what it used has been earned."""
        self.over.wait(self.allowance.owed_s())

    def going(self) -> bool:
        return not self.over.is_set()

    def each(self, count: int) -> Iterator[int]:
        """Numbers, spread over nine tenths of the time; fewer where it is over before."""
        began, every_s = time.monotonic(), 0.9 * self.seconds / count
        for number in range(count):
            if self.over.wait(max(0.0, began + number * every_s - time.monotonic())):
                return
            yield number

    def dial(self, source: str, port: int, rcvbuf: int = 0) -> socket.socket | None:
        """None where rp has no place for it."""
        self.pace()
        six = ":" in source
        sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
        try:
            if six:
                sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
            if rcvbuf:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            sock.bind((source, 0))
            sock.settimeout(DIAL_S)
            sock.connect((self.host6 if six else self.host, port))
        except REFUSED:
            sock.close()
            self.counts["refused"] += 1
            return None
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRNOTAVAIL:  # all ports are in TIME_WAIT
                raise
            self.over.wait(TICK_S)
            return None
        sock.setblocking(False)
        self.counts["pipes"] += 1
        return sock

    def send(self, sock: socket.socket, block: bytes) -> None:
        """As much as is taken at once; all of it, of what is short."""
        self.pace()
        with suppress(BlockingIOError, ConnectionError):
            self.counts["bytes"] += sock.send(block)


class Crowd:
    """Pipes that are held open, the newest `most` of them; the rest are closed. `heard` is told
    what rp says on each."""

    def __init__(
        self, attacker: Attacker, most: int, heard: Callable[[bytes], None] = lambda _: None
    ) -> None:
        self.attacker = attacker
        self.most = most
        self.heard = heard
        self.socks: dict[int, socket.socket] = {}  # by descriptors, the oldest first
        self._poll = select.poll()

    def add(self, sock: socket.socket | None) -> None:
        if sock is None:
            return
        self.socks[sock.fileno()] = sock
        self._poll.register(sock, select.POLLIN | select.POLLRDHUP)
        if len(self.socks) > self.most:
            self.drop(next(iter(self.socks)))

    def drop(self, number: int) -> None:
        self._poll.unregister(number)
        self.socks.pop(number).close()

    def look(self) -> int:
        """How many of them rp has ended since; they are closed. What it says is read."""
        gone = [number for number, _ in self._poll.poll(0) if self._ended(self.socks[number])]
        for number in gone:
            self.drop(number)
        self.attacker.counts["ended by rp"] += len(gone)
        return len(gone)

    def flood(
        self,
        network: str,
        port: Callable[[int], int],
        say: Callable[[int, socket.socket], None],
    ) -> None:
        """Pipes one behind the other, from addresses of `network` in turn, until the time is over:
        `say` is told the number of each that rp has a place for."""
        for number in itertools.count():
            if not self.attacker.going():
                break
            sock = self.attacker.dial(f"{network}.{number % SOURCES + 1}", port(number))
            self.add(sock)
            if sock:
                say(number, sock)
            if number % LOOK_EACH == 0:
                self.look()

    def close(self) -> None:
        for number in list(self.socks):
            self.drop(number)

    def _ended(self, sock: socket.socket) -> bool:
        try:
            said = sock.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            return True
        if said:
            self.heard(said)
        return not said
