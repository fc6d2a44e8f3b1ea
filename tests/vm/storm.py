# SPDX-License-Identifier: MIT
"""Many at once, as fast as each can, until told to stop; and that none of them hangs."""

import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.relay.netns import Namespace
from tests.relay.waiting import until

Work = Callable[[], object]
# Whoever waits that long for a connection or an answer hangs.
HANGS_S = 60.0
LINGER_NOT = struct.pack("ii", 1, 0)  # struct linger: on, 0 s
NAMESPACES = Path("/proc/sys/user/max_net_namespaces")
ASK = b"HEAD /page HTTP/1.0\r\n\r\n"


class Storm:
    """How often each kind of work has been done; what ended one is raised where the storm ends."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.done: dict[str, int] = {}

    def work(self, name: str, once: Work) -> None:
        self.done[name] = 0
        while not self.over.is_set():
            once()
            self.done[name] += 1

    def more(self, count: int, seconds: float = HANGS_S) -> None:
        """Until every kind of work has been done that many times more."""
        wanted = {name: done + count for name, done in self.done.items()}
        until(
            f"{count} times more of {', '.join(wanted)}",
            lambda: self.over.is_set() or all(self.done[it] >= n for it, n in wanted.items()),
            seconds,
        )


@contextmanager
def storm(**works: Work) -> Iterator[Storm]:
    """All of them, each in a thread of its own, until the block ends."""
    it = Storm()
    with ThreadPoolExecutor(len(works)) as pool:
        crowd = [pool.submit(it.work, name, once) for name, once in works.items()]
        for one in crowd:  # whoever fails ends it for all
            one.add_done_callback(lambda _: it.over.set())
        try:
            until("the storm", lambda: len(it.done) == len(works))
            yield it
        finally:
            it.over.set()
    for one in crowd:
        one.result()


def visits(ns: Namespace, address: tuple[str, int]) -> Work:
    """Connections made and closed, in one of the ways in which a program may, by turns."""
    turn = iter(range(1 << 62))

    def once() -> None:
        way = next(turn) % 5
        with ns.open_socket() as sock:
            sock.settimeout(HANGS_S)
            try:
                sock.connect(address)
                if way == 1:
                    sock.sendall(ASK)  # and goes without the answer
                elif way == 2:
                    sock.sendall(ASK)
                    while sock.recv(65536):
                        pass
                elif way == 3:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                elif way == 4:
                    sock.sendall(ASK)
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1)
            except TimeoutError:
                raise
            except OSError:
                return  # refused, cut off: all but hanging is well

    return once


def tracked(ns: Namespace, port: int) -> list[str]:
    """What connection tracking still translates to that port of lp."""
    with ns.entered():
        try:
            lines = Path("/proc/thread-self/net/nf_conntrack").read_text().splitlines()
        except FileNotFoundError:  # nothing has ever been tracked
            return []
    return [line for line in lines if f"src=127.0.0.1 dst=10.77.0.1 sport={port} " in line]


def namespaces() -> int:
    """How many network namespaces there are, those included that are on their way out.

    The kernel does not say, but with a limit of as many it refuses one more.
    """
    before = NAMESPACES.read_text()
    try:
        for count in range(1000):
            NAMESPACES.write_text(str(count + 1))
            if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0:
                return count
    finally:
        NAMESPACES.write_text(before)
    raise AssertionError("more than 1000 network namespaces")
