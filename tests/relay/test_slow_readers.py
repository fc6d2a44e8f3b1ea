# SPDX-License-Identifier: MIT
"""Readers that are slow, or do not read. Over the extension each of them stops itself alone.

The baseline can only stop all pipes for one: not for long, and never for good.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, read_to_end, serving, socks
from tests.relay.late import lateness
from tests.relay.netns import Namespace
from tests.relay.proxies import Pair, extended_pair, pair

BLOCK = bytes(1 << 20)
DRIP = 5_000  # bytes each tenth of a second
IDLE_READERS = 255
WINDOWS_MIB = 32
MIB = 1 << 20


def endless(sock: socket.socket) -> None:
    with suppress(OSError):
        while True:
            sock.sendall(BLOCK)


def less_than_a_queue(sock: socket.socket) -> None:
    """Half of what may wait for a connection by itself; and no end."""
    with suppress(OSError):
        for _ in range(8 * MIB // len(BLOCK)):
            sock.sendall(BLOCK)
        sock.recv(1)


def forward(port: int) -> list[str]:
    return ["--forward", f"7000:127.0.0.1:{port}"]


@contextmanager
def small(ns: Namespace, port: int) -> Iterator[socket.socket]:
    """A connection whose kernel takes little, so that little steps of its reader are seen."""
    with ns.open_socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", port))
        yield sock


class Dripping:
    """Reads 50 KB a second until the connection ends, and then knows how long that was."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.lasted_s = 0.0
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        began = time.monotonic()
        with suppress(OSError):
            while not self.over.is_set() and self.sock.recv(DRIP):
                time.sleep(0.1)  # what makes it slow
        self.lasted_s = time.monotonic() - began
        self.over.set()

    def stop(self) -> None:
        self.over.set()
        self._thread.join(timeout=10)


@contextmanager
def dripping(sock: socket.socket) -> Iterator[Dripping]:
    reader = Dripping(sock)
    try:
        yield reader
    finally:
        reader.stop()


def round_trip_s(sock: socket.socket) -> float:
    began = time.monotonic()
    sock.sendall(b"x")
    read_exactly(sock, 1)
    return time.monotonic() - began


def test_a_slow_reader_does_not_stop_the_others_for_long(box: Namespace, tmp_path: Path) -> None:
    """It makes progress all the time, and still is reset: the others are worth more."""
    with (
        serving(box, endless) as flood,
        serving(box, echo) as mirror,
        pair(box, tmp_path, lp=forward(flood.port), asan=False) as proxies,
        socks(box, "127.0.0.1", mirror.port) as other,
        small(box, 7000) as slow,
        dripping(slow) as reader,
    ):
        other.settimeout(20)
        stalled, until = 0.0, time.monotonic() + 20
        while not reader.over.is_set() and time.monotonic() < until:
            took = round_trip_s(other)
            stalled += took if took > 0.3 else 0.0
            time.sleep(0.01)
        proxies.lp.expect(r"connection \d+ is read too slowly and held up all others for 5 s")
        assert stalled < 12, f"the other connection stood still for {stalled:.1f} s"
        reader.over.wait(5)
        with lateness() as late:
            slowest = max(round_trip_s(other) for _ in range(100))
        assert slowest < late.allowed(0.5), f"an echo took {slowest:.2f} s"


def test_a_slow_reader_that_is_alone_may_take_its_time(box: Namespace, tmp_path: Path) -> None:
    """Its pauses hold up nobody. They do as soon as there is another connection."""
    with (
        serving(box, endless) as flood,
        serving(box, echo) as mirror,
        pair(box, tmp_path, lp=forward(flood.port), asan=False) as proxies,
        small(box, 7000) as slow,
        dripping(slow) as reader,
    ):
        assert not reader.over.wait(8)
        with socks(box, "127.0.0.1", mirror.port) as other:
            other.sendall(b"x")
            proxies.lp.expect("read too slowly", 25)
            assert reader.over.wait(5)
            # What the pipes lost while they were full is sent again as late as its timer says.
            other.settimeout(30)
            assert read_exactly(other, 1) == b"x"


@pytest.mark.parametrize("proxies", [extended_pair, pair], ids=["extension", "baseline"])
def test_one_connection_after_another(
    box: Namespace, tmp_path: Path, proxies: Callable[..., AbstractContextManager[Pair]]
) -> None:
    """All of the second waits, at lp or at the server, while the first is read."""
    size = 14 * MIB

    def handler(sock: socket.socket) -> None:
        sock.sendall(bytes(size))

    with (
        serving(box, handler) as server,
        proxies(box, tmp_path, asan=False),
        socks(box, "127.0.0.1", server.port) as first,
        socks(box, "127.0.0.1", server.port) as second,
    ):
        for sock in (first, second):
            ending = read_to_end(sock)
            assert (ending.how, ending.size) == ("eof", size)


def test_readers_that_stop_stop_themselves_alone(box: Namespace, tmp_path: Path) -> None:
    """Some have taken much before, so windows are wide; a hundred never read. None is reset."""
    memory = ("--window-memory", f"{WINDOWS_MIB}M")
    with (
        serving(box, endless) as flood,
        serving(box, echo) as mirror,
        extended_pair(box, tmp_path, both=memory, asan=False) as proxies,
        socks(box, "127.0.0.1", mirror.port) as other,
        ExitStack() as stack,
    ):
        before = proxies.lp.rss_kib()
        readers = [stack.enter_context(socks(box, "127.0.0.1", flood.port)) for _ in range(4)]
        for sock in readers:
            read_exactly(sock, 8 * MIB)
        for _ in range(100):
            readers.append(stack.enter_context(socks(box, "127.0.0.1", flood.port)))
        with lateness() as late:
            slowest = max(round_trip_s(other) for _ in range(200))
        grown = proxies.lp.rss_kib() - before
        for sock in readers:
            read_exactly(sock, MIB // 8)
        print(f"lp grew by {grown} KiB, an echo took {slowest * 1000:.0f} ms at most")
        assert slowest < late.allowed(1.0), f"an echo took {slowest:.2f} s"
        assert grown < (WINDOWS_MIB * 1024 + len(readers) * 4) * 1.1 + 8192, f"{grown} KiB"
        assert not proxies.lp.lines("reset")


def test_many_that_never_read_do_not_stop_the_others(box: Namespace, tmp_path: Path) -> None:
    """Each has less than a queue of its own, together they have all that a session may hold."""
    with (
        serving(box, less_than_a_queue) as flood,
        serving(box, echo) as mirror,
        pair(box, tmp_path, asan=False) as proxies,
        socks(box, "127.0.0.1", mirror.port) as other,
        ExitStack() as stack,
    ):
        other.settimeout(20)
        for _ in range(IDLE_READERS):
            stack.enter_context(socks(box, "127.0.0.1", flood.port))
        slow, until = 0, time.monotonic() + 20
        while not proxies.lp.lines("that took nothing") and time.monotonic() < until:
            slow += round_trip_s(other) > 1.0
        proxies.lp.expect(r"reset \d+ connections that took nothing for 2 s")
        for _ in range(50):
            slow += round_trip_s(other) > 1.0
        assert slow <= 3, f"{slow} echoes took more than a second"


def test_one_reset_after_another_is_one_line(box: Namespace, tmp_path: Path) -> None:
    """Each stops the pipes until it is reset; then the next one does. A line tells how many."""
    with (
        serving(box, endless) as flood,
        pair(box, tmp_path, asan=False) as proxies,
        ExitStack() as stack,
    ):
        readers = [stack.enter_context(socks(box, "127.0.0.1", flood.port)) for _ in range(3)]
        proxies.lp.expect(r"in the last 10 s \d+ more times connections were reset for what", 30)
        told = proxies.lp.lines(r"connection \d+ took nothing for .* reset")
        more = proxies.lp.lines(r"more times connections were reset for what waits for them")
        counted = sum(int(line.split(" s ")[1].split()[0]) for line in more)
        assert len(told) + counted == len(readers)
        assert len(told) == 1
