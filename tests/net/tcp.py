# SPDX-License-Identifier: MIT
"""TCP as fast as it goes over some connections at once: two programs, each run in a namespace.

    tcp.py send ADDRESS PORT CONNECTIONS SECONDS        cubic, then a reset
    tcp.py receive PORT CONNECTIONS WINDOW FILE         until every connection has ended

WINDOW bounds what one connection has under way: enough together to fill the path and half its
queue, so that nothing is lost and what arrives is what the link lets through. FILE: two 64-bit
numbers for each read, the time in ns and the bytes so far.
"""

import selectors
import socket
import struct
import sys
import time
from array import array
from pathlib import Path

CHUNK = bytes(1 << 16)


def send(address: str, port: int, connections: int, seconds: float) -> None:
    socks = []
    for _ in range(connections):
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        sock.setblocking(False)
        sock.connect_ex((address, port))
        socks.append(sock)
    selector = selectors.DefaultSelector()
    for sock in socks:
        selector.register(sock, selectors.EVENT_WRITE)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            key.fileobj.send(CHUNK)  # type: ignore[union-attr]
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def receive(port: int, connections: int, window: int, file: Path) -> None:
    listener = socket.create_server(("0.0.0.0", port), backlog=256)
    # The kernel doubles it and then offers half and a little more; a window clamp it raises again.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
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
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    else:
        receive(*map(int, sys.argv[2:5]), Path(sys.argv[5]))
