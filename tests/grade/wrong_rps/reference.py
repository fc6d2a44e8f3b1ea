# SPDX-License-Identifier: MIT
"""A remote proxy of the hand-out's four levels, in plain Python, written apart from the grader.

One thread, epoll, nothing blocks. Methods are small so that faults.py can replace any of them.
"""

from __future__ import annotations

import contextlib
import errno
import select
import signal
import socket
import struct
import time
from collections.abc import Callable

HEADER = 8
SYN, FIN = 65535, 65534
CLOSED, RESET = 0x88, 0x99
CHUNK = 4096
# After its FIN a server may still be sending; so long it is listened to before it is reset.
LINGER_S = 0.2


class Pipe:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.read = bytearray()
        self.unsent = bytearray()


class Remote:
    """A connection to a server, or the messages that came before its SYN."""

    def __init__(self, ident: int) -> None:
        self.id = ident
        self.sock: socket.socket | None = None
        self.connected = False
        self.uplink_next = 0
        self.early: dict[int, tuple[int, bytes]] = {}  # number: (type or length, body)
        self.unsent = bytearray()
        self.downlink_next = 0
        self.closing = False  # LP's FIN was due: write what is left, then end
        self.close_at = 0.0


class Proxy:
    def __init__(self, pipes: int) -> None:
        self.count = pipes
        self.pipes: list[Pipe] = []
        self.turn = 0
        self.remotes: dict[int, Remote] = {}
        self.ended: dict[int, int] = {}  # id: the number its last owner expected next
        self.lingering: list[Remote] = []
        self.paused: list[Remote] = []
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[int], None]] = {}

    def run(self) -> None:
        listener = self.listen()
        while len(self.pipes) < self.count:
            sock, _address = listener.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe = Pipe(sock)
            self.pipes.append(pipe)
        for pipe in self.pipes:
            self.watch_pipe(pipe)
        while True:
            self.turn_once()

    def listen(self) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", 6000))
        listener.listen(64)
        return listener

    def turn_once(self) -> None:
        for fd, events in self.epoll.poll(LINGER_S if self.lingering else -1):
            handler = self.handlers.get(fd)
            if handler:
                handler(events)
        now = time.monotonic()
        while self.lingering and self.lingering[0].close_at <= now:
            self.drop(self.lingering.pop(0))

    def watch(self, sock: socket.socket, events: int, handler: Callable[[int], None]) -> None:
        fd = sock.fileno()
        if not events:
            if self.handlers.pop(fd, None):
                self.epoll.unregister(fd)
        elif fd in self.handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self.handlers.update({fd: handler} if events else {})

    # -- pipes ------------------------------------------------------------------------------

    def watch_pipe(self, pipe: Pipe) -> None:
        events = select.EPOLLIN | (select.EPOLLOUT if pipe.unsent else 0)
        self.watch(pipe.sock, events, lambda events: self.on_pipe(pipe, events))

    def on_pipe(self, pipe: Pipe, events: int) -> None:
        if events & select.EPOLLOUT:
            self.flush_pipe(pipe)
        if events & (select.EPOLLIN | select.EPOLLHUP):
            chunk = pipe.sock.recv(1 << 17)
            if not chunk:
                raise SystemExit(0)
            self.parse(pipe, chunk)

    def flush_pipe(self, pipe: Pipe) -> None:
        with contextlib.suppress(BlockingIOError):
            while pipe.unsent:
                del pipe.unsent[: pipe.sock.send(pipe.unsent)]
        self.watch_pipe(pipe)
        if not pipe.unsent:
            resumed, self.paused = self.paused, []
            for remote in resumed:
                self.watch_remote(remote)

    def parse(self, pipe: Pipe, chunk: bytes) -> None:
        pipe.read += chunk
        at = 0
        while len(pipe.read) - at >= HEADER:
            ident, number, length = struct.unpack_from("<HIH", pipe.read, at)
            size = self.size_of(length)
            if len(pipe.read) - at < size:
                break
            self.uplink(ident, number, length, bytes(pipe.read[at + HEADER : at + size]))
            at += size
        del pipe.read[:at]

    def size_of(self, length: int) -> int:
        return {SYN: HEADER + 6, FIN: HEADER + 1}.get(length, length)

    def free_pipe(self) -> Pipe | None:
        """The next one in turn that is not blocked."""
        for _ in self.pipes:
            self.turn = (self.turn + 1) % self.count
            if not self.pipes[self.turn].unsent:
                return self.pipes[self.turn]
        return None

    def downlink(self, remote: Remote, kind: int, body: bytes) -> None:
        pipe = self.free_pipe() or self.pipes[self.turn]
        pipe.unsent += struct.pack("<HIH", remote.id, remote.downlink_next, kind) + body
        remote.downlink_next += 1
        self.flush_pipe(pipe)

    # -- uplink -----------------------------------------------------------------------------

    def uplink(self, ident: int, number: int, kind: int, body: bytes) -> None:
        remote = self.remote_for(ident, number, kind)
        if remote is None:
            return
        remote.early[number] = (kind, body)
        while remote.uplink_next in remote.early:
            kind, body = remote.early.pop(remote.uplink_next)
            remote.uplink_next += 1
            self.due(remote, kind, body)

    def remote_for(self, ident: int, number: int, kind: int) -> Remote | None:
        remote = self.remotes.get(ident)
        if remote is None:
            if kind != SYN and number >= self.ended.get(ident, 1 << 32):
                return None  # for a connection that is over
            remote = self.remotes[ident] = Remote(ident)
        return remote

    def due(self, remote: Remote, kind: int, body: bytes) -> None:
        if kind == SYN:
            self.ended.pop(remote.id, None)
            self.connect(remote, *self.destination(body))
        elif kind == FIN:
            self.lp_ended(remote, body[0])
        else:
            remote.unsent += body
            self.flush_remote(remote)

    def destination(self, body: bytes) -> tuple[str, int]:
        return socket.inet_ntoa(body[:4]), struct.unpack("<H", body[4:])[0]

    def connect(self, remote: Remote, address: str, port: int) -> None:
        remote.sock = socket.socket()
        remote.sock.setblocking(False)
        remote.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = remote.sock.connect_ex((address, port))
        if code in (0, errno.EINPROGRESS):
            self.watch_remote(remote)
        else:
            self.failed(remote)

    def failed(self, remote: Remote) -> None:
        self.server_ended(remote, RESET)

    def lp_ended(self, remote: Remote, reason: int) -> None:
        self.forget(remote)
        if reason == RESET:
            self.drop(remote)
        else:
            remote.closing = True
            self.flush_remote(remote)

    def forget(self, remote: Remote) -> None:
        """The id is free for another connection."""
        if self.remotes.get(remote.id) is remote:
            del self.remotes[remote.id]
            self.ended[remote.id] = remote.uplink_next

    # -- servers ----------------------------------------------------------------------------

    def watch_remote(self, remote: Remote) -> None:
        if remote.sock is None or remote.sock.fileno() < 0:
            return
        events = select.EPOLLIN if remote.connected else select.EPOLLOUT
        events |= select.EPOLLOUT if remote.unsent else 0
        self.watch(remote.sock, events, lambda events: self.on_remote(remote, events))

    def pause_remote(self, remote: Remote) -> None:
        events = select.EPOLLOUT if remote.unsent else 0
        self.watch(remote.sock, events, lambda events: self.on_remote(remote, events))
        self.paused.append(remote)

    def on_remote(self, remote: Remote, events: int) -> None:
        if not remote.connected:
            if remote.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.failed(remote)
                return
            remote.connected = True
        if events & select.EPOLLOUT:
            self.flush_remote(remote)
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self.read_remote(remote)

    def flush_remote(self, remote: Remote) -> None:
        if not remote.connected or remote.sock.fileno() < 0:
            return
        try:
            while remote.unsent:
                del remote.unsent[: remote.sock.send(remote.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.server_ended(remote, RESET)
            return
        if remote.closing and not remote.unsent and not remote.close_at:
            self.finish(remote)
        self.watch_remote(remote)

    def finish(self, remote: Remote) -> None:
        """All is written: end in order, and do not wait long for the server's own end."""
        with contextlib.suppress(OSError):
            remote.sock.shutdown(socket.SHUT_WR)
        remote.close_at = time.monotonic() + LINGER_S
        self.lingering.append(remote)

    def read_remote(self, remote: Remote) -> None:
        if remote.sock.fileno() < 0:
            return
        if self.free_pipe() is None and not remote.closing:
            self.pause_remote(remote)
            return
        try:
            body = remote.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.server_ended(remote, RESET)
            return
        if not body:
            self.server_ended(remote, CLOSED)
        elif not remote.closing:
            self.downlink(remote, self.length_of(body), body)

    def length_of(self, body: bytes) -> int:
        return HEADER + len(body)

    def server_ended(self, remote: Remote, reason: int) -> None:
        if not remote.closing:
            self.send_fin(remote, reason)
        self.forget(remote)
        self.drop(remote, by_reset=False)

    def send_fin(self, remote: Remote, reason: int) -> None:
        self.downlink(remote, FIN, bytes([reason]))

    def drop(self, remote: Remote, by_reset: bool = True) -> None:
        if remote in self.lingering:
            self.lingering.remove(remote)
        if remote.sock is None or remote.sock.fileno() < 0:
            return
        self.watch(remote.sock, 0, self.handlers.get)
        if by_reset and not remote.close_at:
            remote.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        remote.sock.close()


signal.signal(signal.SIGINT, signal.SIG_DFL)
