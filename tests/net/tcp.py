# SPDX-License-Identifier: MIT
"""TCP as fast as it goes over some connections at once: two programs, each run in a namespace.

    tcp.py send ADDRESS PORT CONNECTIONS WINDOW SECONDS     cubic, then a reset
    tcp.py receive PORT CONNECTIONS FILE                    until every connection has ended

WINDOW bounds the bytes that a connection has handed over and that are not acknowledged: enough
together to fill the path and much of its queue, so that nothing is lost and what arrives is what
the link lets through.
FILE: two 64-bit numbers for each read, the time in ns and the bytes so far.
"""

import fcntl
import os
import select
import selectors
import socket
import struct
import sys
import termios
import time
from array import array
from pathlib import Path


def send(address: str, port: int, connections: int, window: int, seconds: float) -> None:
    socks = []
    for _ in range(connections):
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * window)  # never the limit
        sock.setblocking(False)
        sock.connect_ex((address, port))
        socks.append(sock)
    for sock in socks:  # all at once, a round trip for all
        select.select([], [sock], [], 20.0)
        sock.getpeername()
    mss = socks[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for sock in socks:
            segments = (window - unacknowledged(sock)) // mss
            if segments > 0:
                sock.send(bytes(segments * mss))
        time.sleep(0.001)
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def unacknowledged(sock: socket.socket) -> int:
    answer = fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


def receive(port: int, connections: int, file: Path) -> None:
    listener = socket.create_server(("0.0.0.0", port), backlog=256)
    print("ready", flush=True)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    log, total, ended = array("Q"), 0, 0
    while ended < connections:
        for key, _ in selector.select(20.0):
            if key.fileobj is listener:
                sock, _ = listener.accept()
                selector.register(sock, selectors.EVENT_READ)
                continue
            try:
                n = len(key.fileobj.recv(1 << 18))  # type: ignore[union-attr]
            except ConnectionResetError:
                n = 0
            if not n:
                selector.unregister(key.fileobj)
                ended += 1
            total += n
            log.extend((time.monotonic_ns(), total))
    with file.open("wb") as out:
        log.tofile(out)


if __name__ == "__main__":
    os.nice(-15)  # the link is measured, not who else runs
    if sys.argv[1] == "send":
        send(sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]))
    else:
        receive(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
