# SPDX-License-Identifier: MIT
"""Attacks by who has sessions: messages that cost rp more than they cost who sends them."""

import itertools
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from experiments.workloads.attacks.attacker import DIAL_S, TICK_S, Attacker
from experiments.workloads.attacks.messages import (
    BY_RST,
    Hello,
    data,
    fin,
    open_,
    ping,
    syn,
)
from experiments.workloads.attacks.takers import Takers

SOURCE = "127.0.0.5"
SESSIONS_EACH = 8  # that one address may have
BLOCK = 2_000  # PINGs written at once
BURST = 300  # connections opened, then reset
OUT_OF_ORDER_SESSIONS = 4
OUT_OF_ORDER_KEPT = 1_000
OUT_OF_ORDER_LAST = 60_000  # number of a connection's last message
SMALL = 4_096  # receive buffer of who reads nothing
REFUSED_PORT = 9  # nobody listens there
APART_S = 0.3  # between two sessions of the baseline: their pipes are not told apart otherwise


class _Ended(Exception):
    """rp ended the session, or there was no place for it."""


def _extended(it: Attacker, number: int, rcvbuf: int = 0) -> socket.socket:
    """The only pipe of a session that rp has begun."""
    sock = it.dial(SOURCE, it.extended, rcvbuf)
    if sock is None:
        raise _Ended
    session = b"%x-%x" % (time.monotonic_ns() & 0xFFFFFFFFFF, number)
    sock.settimeout(DIAL_S)
    try:
        sock.sendall(Hello(session.ljust(16, b".")[:16], 0, 1).to_bytes())
        if not sock.recv(8):  # of WELCOME; what follows nobody looks at
            raise _Ended
    except OSError:
        sock.close()
        raise _Ended from None
    sock.setblocking(False)
    return sock


def _again_and_again(it: Attacker, use: Callable[[], None]) -> None:
    """One session after the other."""
    while it.going():
        with suppress(_Ended):
            use()
        it.counts["sessions"] += 1
        it.over.wait(TICK_S)


def _pushed(it: Attacker, sock: socket.socket, blocks: Iterator[bytes], reads: bool) -> None:
    """One block behind the other as fast as rp takes them. Raises _Ended."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT | (select.POLLIN if reads else 0))
    block = memoryview(b"")
    with sock:
        while it.going():
            it.pace()
            for _, event in poll.poll(1000 * TICK_S):
                try:
                    if event & select.POLLIN and not sock.recv(1 << 18):
                        raise _Ended
                    if event & (select.POLLERR | select.POLLHUP):
                        raise _Ended
                    if event & select.POLLOUT:
                        block = block or memoryview(next(blocks))
                        sent = sock.send(block)
                        it.counts["bytes"] += sent
                        block = block[sent:]
                except BlockingIOError:
                    continue
                except OSError:
                    raise _Ended from None


def _together(it: Attacker, sessions: int, use: Callable[[int], None]) -> None:
    """A thread for each."""
    threads = [
        threading.Thread(target=_again_and_again, args=(it, lambda n=n: use(n)), daemon=True)
        for n in range(sessions)
    ]
    it.begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pings(it: Attacker) -> None:
    """Eight sessions that send nothing but PINGs, and read the answers."""
    block = b"".join(ping(token) for token in range(BLOCK))
    _together(
        it,
        SESSIONS_EACH,
        lambda n: _pushed(it, _extended(it, n), itertools.repeat(block), reads=True),
    )


def stalled_control(it: Attacker) -> None:
    """Eight sessions that ask for answers of all kinds, and read none: PINGs, and connections that
    are refused."""
    pinged = b"".join(ping(token) for token in range(BLOCK))

    def blocks() -> Iterator[bytes]:
        for first in range(1, 32_000, BURST):
            yield b"".join(
                open_(conn, "127.0.0.1", REFUSED_PORT) for conn in range(first, first + BURST)
            )
        yield from itertools.repeat(pinged)

    _together(
        it,
        SESSIONS_EACH,
        lambda n: _pushed(it, _extended(it, n, SMALL), blocks(), reads=False),
    )


_dialling = threading.Lock()


def _baseline(it: Attacker, blocks: Iterator[bytes]) -> None:
    """A session of the baseline, which pushes blocks over the first of its pipes."""
    with _dialling:
        pipes = [sock for _ in range(it.pipes) if (sock := it.dial(SOURCE, it.port))]
        it.over.wait(APART_S)
    try:
        if len(pipes) < it.pipes:
            raise _Ended
        _pushed(it, pipes[0], blocks, reads=True)
    finally:
        for sock in pipes:
            sock.close()


def opens_and_resets(it: Attacker) -> None:
    """SYN and FIN 0x99 in turn, as fast as rp takes them: each connection is reset when rp has
    begun it."""
    server = Takers()

    def blocks() -> Iterator[bytes]:
        ids = itertools.cycle(range(1, 30_001))
        while True:
            some = list(itertools.islice(ids, BURST))
            yield b"".join(syn(conn, "127.0.0.1", server.port) for conn in some)
            it.over.wait(TICK_S)
            it.counts["opens"] += len(some)
            yield b"".join(fin(conn, 1, BY_RST) for conn in some)

    _together(it, 1, lambda _: _baseline(it, blocks()))
    it.counts["connects"] = server.taken


def bytes_out_of_order(it: Attacker) -> None:
    """Four sessions of one address; of each connection every second message, of one byte."""
    server = Takers(OUT_OF_ORDER_KEPT)  # what waits for a connection goes with it
    size = len(data(1, 2, b"g"))
    messages = [data(1, number, b"g") for number in range(2, OUT_OF_ORDER_LAST, 2)]
    template = bytearray(b"".join(messages))

    def blocks() -> Iterator[bytes]:
        mine = bytearray(template)
        for conn in range(1, 30_000):
            head = syn(conn, "127.0.0.1", server.port)
            for at in range(2):  # where a message has its connection
                mine[at::size] = head[at : at + 1] * len(messages)
            yield head + mine

    _together(it, OUT_OF_ORDER_SESSIONS, lambda _: _baseline(it, blocks()))
