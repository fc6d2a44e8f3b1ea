# SPDX-License-Identifier: MIT
"""A network between lp and rp that delays each pipe by as much as it is told."""

import itertools
import queue
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tests.relay import wire, wire_ext
from tests.relay.ends import Server, serving
from tests.relay.netns import Namespace

NEAR = "127.0.0.1"  # where lp dials
FAR = "127.0.0.2"  # where rp listens
BLOCK = 1 << 16


def carry(source: socket.socket, sink: socket.socket, seconds: float) -> None:
    """All that comes, each part so much later; then its end."""
    way: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def deliver() -> None:
        with suppress(OSError):
            while True:
                due, data = way.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)

    thread = threading.Thread(target=deliver)
    thread.start()
    data = b"?"
    while data:
        try:
            data = source.recv(BLOCK)
        except OSError:
            data = b""
        way.put((time.monotonic() + seconds, data))
    thread.join()


@contextmanager
def delayed_pipes(ns: Namespace, seconds: Sequence[float]) -> Iterator[list[Server]]:
    """What is dialled at NEAR comes out at FAR; each connection has the next of these delays, one
    way, and then the first one's again."""
    turn = itertools.cycle(seconds)

    def between(port: int) -> Server:
        def relay(near: socket.socket) -> None:
            late = next(turn)
            with ns.connect((FAR, port), 60.0) as far:
                for sock in (near, far):
                    sock.settimeout(None)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                up = threading.Thread(target=carry, args=(near, far, late))
                up.start()
                carry(far, near, late)
                up.join()

        return stack.enter_context(serving(ns, relay, (NEAR, port)))

    with ExitStack() as stack:
        yield [between(port) for port in (wire.PORT, wire_ext.PORT)]
