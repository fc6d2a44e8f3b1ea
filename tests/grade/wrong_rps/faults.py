# SPDX-License-Identifier: MIT
"""Remote proxies with one fault each: the mistakes that are really made, and some worse ones."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

from .reference import CLOSED, FIN, HEADER, RESET, SYN, Pipe, Proxy, Remote

FAULTS: dict[str, type[Proxy]] = {}


def fault(name: str) -> Callable[[type[Proxy]], type[Proxy]]:
    def add(kind: type[Proxy]) -> type[Proxy]:
        FAULTS[name] = kind
        return kind

    return add


def with_faults(names: list[str]) -> type[Proxy]:
    """One that has all. Of two that replace the same, the first has to go on to the next."""
    return type("Wrong", tuple(FAULTS[name] for name in names), {})


# -- programs that do not work at all -----------------------------------------------------------


@fault("never-listens")
class NeverListens(Proxy):
    def run(self) -> None:
        while True:
            signal.pause()


@fault("exits")
class Exits(Proxy):
    def run(self) -> None:
        print("remote_proxy: bind: something is wrong", file=sys.stderr)
        raise SystemExit(3)


@fault("crash-on-syn")
class CrashOnSyn(Proxy):
    def connect(self, remote: Remote, address: str, port: int) -> None:
        print("connecting to", address, flush=True)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)


@fault("hang")
class Hangs(Proxy):
    def turn_once(self) -> None:
        signal.pause()


@fault("spin")
class Spins(Proxy):
    def turn_once(self) -> None:
        while True:
            pass


@fault("print-endlessly")
class PrintsEndlessly(Proxy):
    """Works, but never stops talking."""

    def run(self) -> None:
        threading.Thread(target=self.talk, daemon=True).start()
        super().run()

    @staticmethod
    def talk() -> None:
        while True:
            os.write(1, b"number of pipes ready: 1\n" * 100)
            time.sleep(0.001)


@fault("flood")
class Floods(Proxy):
    """Sends the first bytes of a download again and again."""

    def downlink(self, remote: Remote, kind: int, body: bytes) -> None:
        while True:
            super().downlink(remote, kind, body)


@fault("leaves-children")
class LeavesChildren(Proxy):
    """A child that left the process group outlives its parent's crash."""

    def run(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    signal.pause()
            os._exit(0)
        raise SystemExit(1)


# -- level 1 --------------------------------------------------------------------------------------


@fault("port-big-endian")
class PortBigEndian(Proxy):
    def destination(self, body: bytes) -> tuple[str, int]:
        return socket.inet_ntoa(body[:4]), struct.unpack(">H", body[4:])[0]


@fault("address-backwards")
class AddressBackwards(Proxy):
    def destination(self, body: bytes) -> tuple[str, int]:
        address, port = super().destination(body)
        return ".".join(reversed(address.split("."))), port


@fault("length-without-header-uplink")
class LengthWithoutHeaderUplink(Proxy):
    def size_of(self, length: int) -> int:
        return super().size_of(length) + (0 if length in (SYN, FIN) else HEADER)


@fault("length-without-header-downlink")
class LengthWithoutHeaderDownlink(Proxy):
    def length_of(self, body: bytes) -> int:
        return len(body)


@fault("drops-4104")
class Drops4104(Proxy):
    """Takes the largest message for one that is too large."""

    def uplink(self, ident: int, number: int, kind: int, body: bytes) -> None:
        if HEADER + len(body) < 4104:
            super().uplink(ident, number, kind, body)


@fault("no-carry")
class NoCarry(Proxy):
    """What is left of a read without a whole message is thrown away."""

    def parse(self, pipe: Pipe, chunk: bytes) -> None:
        super().parse(pipe, chunk)
        pipe.read.clear()


@fault("one-message-a-read")
class OneMessageARead(Proxy):
    def parse(self, pipe: Pipe, chunk: bytes) -> None:
        if len(chunk) >= HEADER:
            ident, number, length = struct.unpack_from("<HIH", chunk)
            self.uplink(ident, number, length, chunk[HEADER : self.size_of(length)])


@fault("never-sends-fin")
class NeverSendsFin(Proxy):
    def send_fin(self, remote: Remote, reason: int) -> None:
        pass


@fault("fin-always-88")
class FinAlways88(Proxy):
    def send_fin(self, remote: Remote, reason: int) -> None:
        super().send_fin(remote, CLOSED)


@fault("numbers-from-1")
class NumbersFrom1(Proxy):
    def connect(self, remote: Remote, address: str, port: int) -> None:
        remote.downlink_next = 1
        super().connect(remote, address, port)


@fault("empty-message-at-end")
class EmptyMessageAtEnd(Proxy):
    """recv() gave 0, so 0 bytes are sent on."""

    def send_fin(self, remote: Remote, reason: int) -> None:
        if reason == CLOSED:
            self.downlink(remote, HEADER, b"")
        super().send_fin(remote, reason)


@fault("short-writes-to-server")
class ShortWritesToServer(Proxy):
    def flush_remote(self, remote: Remote) -> None:
        super().flush_remote(remote)
        if remote.connected:
            remote.unsent.clear()


@fault("short-writes-to-pipe")
class ShortWritesToPipe(Proxy):
    def flush_pipe(self, pipe: Pipe) -> None:
        super().flush_pipe(pipe)
        pipe.unsent.clear()


@fault("early-data-lost")
class EarlyDataLost(Proxy):
    """Data that come while the connect is under way go nowhere."""

    def due(self, remote: Remote, kind: int, body: bytes) -> None:
        if kind in (SYN, FIN) or remote.connected:
            super().due(remote, kind, body)


@fault("one-connection")
class OneConnection(Proxy):
    def forget(self, remote: Remote) -> None:
        raise SystemExit(0)


# -- level 2 --------------------------------------------------------------------------------------


@fault("ignores-numbers")
class IgnoresNumbers(Proxy):
    """Delivers in the order of arrival, as level 1 allows."""

    def uplink(self, ident: int, number: int, kind: int, body: bytes) -> None:
        remote = self.remote_for(ident, number, kind)
        if remote is not None:
            remote.uplink_next += 1
            self.due(remote, kind, body)


@fault("fin-at-once")
class FinAtOnce(Proxy):
    """Orders the data, but not the FIN."""

    def uplink(self, ident: int, number: int, kind: int, body: bytes) -> None:
        remote = self.remotes.get(ident)
        if kind == FIN and remote is not None and remote.sock is not None:
            remote.uplink_next = number + 1
            self.lp_ended(remote, body[0])
        else:
            super().uplink(ident, number, kind, body)


@fault("syn-must-be-first")
class SynMustBeFirst(Proxy):
    def remote_for(self, ident: int, number: int, kind: int) -> Remote | None:
        if kind != SYN and ident not in self.remotes:
            return None
        return super().remote_for(ident, number, kind)


@fault("one-buffer-for-all-pipes")
class OneBufferForAllPipes(Proxy):
    def parse(self, pipe: Pipe, chunk: bytes) -> None:
        super().parse(self.pipes[0], chunk)


@fault("one-pipe")
class OnePipe(Proxy):
    """Sends over the first pipe only."""

    def free_pipe(self) -> Pipe | None:
        self.turn = 0
        return None if self.pipes[0].unsent else self.pipes[0]


@fault("waits-for-blocked-pipe")
class WaitsForBlockedPipe(Proxy):
    """Strict round robin: the pipe whose turn it is, blocked or not."""

    def downlink(self, remote: Remote, kind: int, body: bytes) -> None:
        self.turn = (self.turn + 1) % self.count
        pipe = self.pipes[self.turn]
        pipe.sock.setblocking(True)
        pipe.sock.sendall(struct.pack("<HIH", remote.id, remote.downlink_next, kind) + body)
        pipe.sock.setblocking(False)
        remote.downlink_next += 1


# -- level 3 --------------------------------------------------------------------------------------


@fault("blocks-in-connect")
class BlocksInConnect(Proxy):
    def connect(self, remote: Remote, address: str, port: int) -> None:
        remote.sock = socket.socket()
        try:
            remote.sock.connect((address, port))
        except OSError:
            self.failed(remote)
            return
        remote.connected = True
        remote.sock.setblocking(False)
        self.watch_remote(remote)


@fault("blocks-in-send")
class BlocksInSend(Proxy):
    def flush_remote(self, remote: Remote) -> None:
        if remote.connected and remote.sock.fileno() >= 0 and remote.unsent:
            select.select([], [remote.sock], [])
            remote.sock.settimeout(None)
            try:
                remote.sock.sendall(remote.unsent)
                remote.unsent.clear()
            except OSError:
                self.server_ended(remote, RESET)
                return
            remote.sock.setblocking(False)
        super().flush_remote(remote)


@fault("100-connections")
class HundredConnections(Proxy):
    def connect(self, remote: Remote, address: str, port: int) -> None:
        if sum(other.sock is not None for other in self.remotes.values()) < 100:
            super().connect(remote, address, port)


# -- level 4 --------------------------------------------------------------------------------------


@fault("failed-connect-untold")
class FailedConnectUntold(Proxy):
    def failed(self, remote: Remote) -> None:
        self.forget(remote)
        self.drop(remote)


@fault("ignores-reason")
class IgnoresReason(Proxy):
    """As level 1 allows: LP's reset is taken for a FIN."""

    def lp_ended(self, remote: Remote, reason: int) -> None:
        super().lp_ended(remote, CLOSED)


@fault("keeps-old-state")
class KeepsOldState(Proxy):
    """An id's numbers go on where its last connection left them."""

    def forget(self, remote: Remote) -> None:
        self.kept = {**getattr(self, "kept", {}), remote.id: remote.downlink_next}
        super().forget(remote)

    def remote_for(self, ident: int, number: int, kind: int) -> Remote | None:
        remote = super().remote_for(ident, number, kind)
        if remote is not None and kind == SYN:
            remote.downlink_next = getattr(self, "kept", {}).get(ident, 0)
        return remote


@fault("dies-of-sigpipe")
class DiesOfSigpipe(Proxy):
    def run(self) -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        super().run()

    def on_remote(self, remote: Remote, events: int) -> None:
        # As a program that learns of the end only by reading: it writes first.
        if remote.connected and events & (select.EPOLLIN | select.EPOLLHUP) and remote.unsent:
            self.flush_remote(remote)
        super().on_remote(remote, events)


@fault("1000-connections")
class ThousandConnections(Proxy):
    """As with select(), whose sets hold 1,024 descriptors."""

    def connect(self, remote: Remote, address: str, port: int) -> None:
        if len(self.remotes) > 1000:
            self.failed(remote)
        else:
            super().connect(remote, address, port)


@fault("never-closes")
class NeverCloses(Proxy):
    """Ends connections by shutdown(), and keeps their descriptors."""

    def __init__(self, pipes: int) -> None:
        super().__init__(pipes)
        self.kept_open: list[socket.socket] = []

    def drop(self, remote: Remote, by_reset: bool = True) -> None:
        if remote.sock is not None and remote.sock.fileno() >= 0:
            self.watch(remote.sock, 0, self.handlers.get)
            self.kept_open.append(remote.sock.dup())
            with contextlib.suppress(OSError):
                remote.sock.shutdown(socket.SHUT_RDWR)
        super().drop(remote, by_reset)
