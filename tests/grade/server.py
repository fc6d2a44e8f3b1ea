# SPDX-License-Identifier: MIT
"""Servers for RP to connect to, and their end of each remote connection.

A server listens on every loopback address. Each connection is dialled to an address of its own
(127.16.2.3, ...), so that a server knows which one it has in hand, and RP's reading of the address
is checked each time.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from .failure import Failure
from .lp import RESET_ON_CLOSE
from .stream import Inbox, Pattern

if TYPE_CHECKING:
    from .lab import Lab
    from .lp import Conn

FIRST_ADDRESS = 0x7F100203  # 127.16.2.3: reads differently in every wrong order
_addresses = itertools.count(FIRST_ADDRESS)


class Peer:
    """The server's end of one remote connection."""

    def __init__(self, lab: Lab, sock: socket.socket, conn: Conn) -> None:
        self.lab = lab
        self.sock = sock
        self.conn = conn
        self.inbox = Inbox(f"server of connection {conn.id}")
        self.out = bytearray()
        self.source: tuple[Pattern, int] | None = None
        self.then: Callable[[], None] | None = None
        self.reading = True
        self.echo = False
        self.eof = False
        self.was_reset = False
        self.sent = 0

    @property
    def ended(self) -> bool:
        return self.eof or self.was_reset

    @property
    def sending(self) -> bool:
        return bool(self.out) or self.source is not None

    @property
    def closed(self) -> bool:
        return self.sock.fileno() < 0

    def watch(self) -> None:
        if self.closed:
            return
        events = select.EPOLLIN * (self.reading and not self.ended)
        events |= select.EPOLLOUT * (self.sending and not self.was_reset)
        if events:
            self.lab.watch(self.sock.fileno(), events, self._on_event)
        else:
            self.lab.unwatch(self.sock.fileno())

    # -- orders -----------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        self.out += data
        self._write()

    def stream(self, pattern: Pattern, then: Callable[[], None] | None = None) -> None:
        """Send all of it as fast as it goes, then do what is said."""
        self.source = (pattern, 0)
        self.then = then
        self._write()

    def pause(self) -> None:
        self.reading = False
        self.watch()

    def resume(self) -> None:
        self.reading = True
        self.watch()

    def shutdown(self) -> None:
        """The FIN, while this end still listens for what RP does with it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """As a server's close(): a FIN, or a reset if something was not read."""
        if not self.closed:
            self.lab.unwatch(self.sock.fileno())
            self.sock.close()

    def reset(self) -> None:
        if not self.closed:
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self.close()

    # -- events -----------------------------------------------------------------------------

    def _on_event(self, mask: int) -> None:
        if mask & select.EPOLLOUT:
            self._write()
        if not self.closed and mask & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self._read()

    def _read(self) -> None:
        if not self.reading:
            return
        try:
            chunk = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            self._broken()
            return
        if not chunk:
            self.eof = True
        else:
            self.inbox.feed(chunk)
            if self.echo:
                self.out += chunk
                self._write()
        self.watch()

    def _write(self) -> None:
        try:
            while self.sending:
                if not self.out:
                    self._refill()
                    continue
                count = self.sock.send(memoryview(self.out)[: 1 << 18])
                self.sent += count
                del self.out[:count]
        except BlockingIOError:
            pass
        except OSError:
            self._broken()
            return
        self.watch()
        if self.then and not self.sending:
            then, self.then = self.then, None
            then()

    def _refill(self) -> None:
        assert self.source is not None
        pattern, offset = self.source
        block = pattern.read(offset, 1 << 18)
        self.out += block
        offset += len(block)
        self.source = (pattern, offset) if offset < pattern.size else None

    def _broken(self) -> None:
        self.was_reset = True
        self.out.clear()
        self.source = None
        self.watch()


class Server:
    """Accepts what RP connects; `on_open` says what a new peer does first."""

    def __init__(
        self,
        lab: Lab,
        on_open: Callable[[Peer], None] | None = None,
        rcvbuf: int = 0,
        backlog: int = 4096,
        port: int = 0,
    ) -> None:
        self.lab = lab
        self.on_open = on_open
        self.peers: list[Peer] = []
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.bind(("0.0.0.0", port))
        self.port: int = self.sock.getsockname()[1]
        self.sock.setblocking(False)
        self.backlog = backlog
        lab.servers.append(self)
        self.start_accepting()

    def start_accepting(self) -> None:
        self.sock.listen(self.backlog)
        self.lab.watch(self.sock.fileno(), select.EPOLLIN, self._accept)

    def new_address(self) -> str:
        return socket.inet_ntoa(next(_addresses).to_bytes(4, "big"))

    def _accept(self, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(256):
                sock, _address = self.sock.accept()
                self._open(sock)

    def _open(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        named, port = sock.getsockname()
        conn = self.lab.dialled.get(named)
        if conn is None or conn.port != port:
            sock.close()
            raise Failure(f"RP connected to {named}:{port}, which no SYN asked for")
        if conn.peer is not None:
            sock.close()
            raise Failure(f"RP connected a second time for {conn}")
        peer = Peer(self.lab, sock, conn)
        conn.peer = peer
        self.peers.append(peer)
        if self.on_open:
            self.on_open(peer)
        peer.watch()

    def hints(self) -> list[str]:
        return [
            f"the server of {peer.conn} saw a reset after {len(peer.inbox)} bytes"
            for peer in self.peers
            if peer.was_reset
        ]

    def close(self) -> None:
        for peer in self.peers:
            peer.reset()
        if self.sock.fileno() >= 0:
            self.lab.unwatch(self.sock.fileno())
            self.sock.close()


class EchoServer(Server):
    """Says again what it hears."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab, on_open=self._echo)

    @staticmethod
    def _echo(peer: Peer) -> None:
        peer.echo = True


class ClosedPort(Server):
    """A port of which nobody else can make use, and that refuses."""

    def start_accepting(self) -> None:
        """Never."""


class SilentServer(Server):
    """One whose handshakes are not answered until let_in(): its queue of one is full."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.filler = socket.create_connection(("127.0.0.1", self.port))

    def start_accepting(self) -> None:
        self.sock.listen(0)

    def let_in(self) -> None:
        """Answer from now on: RP's kernel tries again 1 s after its first SYN."""
        sock, _address = self.sock.accept()
        sock.close()
        self.filler.close()
        super().start_accepting()

    def close(self) -> None:
        self.filler.close()
        super().close()
