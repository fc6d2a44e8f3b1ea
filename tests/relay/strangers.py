# SPDX-License-Identifier: MIT
"""Who comes to rp from any address and says what it likes, and what is seen of rp then.

Sources of 127.0.0.0/8 are peers that differ, and so are networks of 64 bits.
"""

import itertools
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.relay import records, wire, wire_ext
from tests.relay.ends import read_exactly, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.wire import Pipe

MIB = 1024  # KiB, as VmRSS counts
IPV6_FREEBIND = 78  # an address that only a route calls local


def pipe_from(box: Namespace, source: str, port: int = wire_ext.PORT) -> socket.socket:
    """It may be reset before connect() returns: then its reader finds out."""
    six = ":" in source
    sock = box.open_socket(socket.AF_INET6 if six else socket.AF_INET)
    sock.settimeout(5)
    if six:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    sock.bind((source, 0))
    with suppress(ConnectionResetError):
        sock.connect(("::1" if six else "127.0.0.1", port))
    return sock


def is_open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return bool(sock.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


def session_of(box: Namespace, source: str, name: bytes, pipes: int = 1) -> Pipe:
    """The first pipe of a session of the extension that has begun."""
    pipe = Pipe(pipe_from(box, source))
    features = wire_ext.VERSION_1 | wire_ext.DATAGRAM
    pipe.send(wire_ext.Hello(name.ljust(16, b"."), 0, pipes, features=features).to_bytes())
    assert wire_ext.status_of(pipe.receive()) == wire_ext.NEW
    return pipe


def hoarded(box: Namespace, source: str, port: int, connects: int) -> Pipe:
    """A session whose connections stay open; those that were refused are not looked at."""
    pipe = Pipe(pipe_from(box, source, 6000))
    pipe.send(*(wire.syn(conn, "127.0.0.1", port) for conn in range(1, connects + 1)))
    return pipe


def ping(token: int) -> bytes:
    return wire.data(0, 0, struct.pack("<BQQ", 5, token, 0))


def push(pipe: Pipe, block: bytes, over: threading.Event) -> int:
    """Writes it again and again, reading nothing; how often, until `over` or nobody takes it."""
    pipe.sock.settimeout(0.5)
    for times in itertools.count():
        if over.is_set():
            return times
        try:
            pipe.sock.sendall(block)
        except TimeoutError:
            over.wait(0.1)
        except OSError:
            return times


def served(box: Namespace, port: int) -> bool:
    try:
        with socks(box, "127.0.0.1", port) as sock:
            sock.sendall(b"x")
            return read_exactly(sock, 1) == b"x"
    except (OSError, AssertionError):
        return False


@contextmanager
def small(rp: Program, mib: int) -> Iterator[None]:
    """It does not grow by more than that, as seen at the end and 20 times a second."""
    start = rp.rss_kib()
    peak = [start]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05) and rp.running():
            peak[0] = max(peak[0], rp.rss_kib())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    grown = max(peak[0], rp.rss_kib()) - start
    print(f"rp grew by {grown} KiB")
    assert grown < mib * MIB, f"rp grew by {grown} KiB"


def spoke_seldom(rp: Program, pattern: str, most: int) -> None:
    """A line that tells of refusals, and no more than so many of the kind."""
    lines = rp.lines(pattern)
    assert 1 <= len(lines) <= most, lines[:5]


def limit_counted(stats: Path, kind: str) -> int:
    told = records.of(stats, "limits")
    return int(told[-1][kind]) if told else 0
