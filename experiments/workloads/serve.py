# SPDX-License-Identifier: MIT
"""The server of the transfers: `python -m experiments.workloads.serve ADDRESS [mptcp:]PORT...`

It serves any number of connections, a thread each, and says so when it is ready.
"""

import contextlib
import socket
import sys
import threading
import time

from experiments.workloads.exchange import (
    IPPROTO_MPTCP,
    REQUEST_BYTES,
    Reply,
    Request,
    read_exactly,
    read_stream,
    set_congestion_control,
    write_stream,
)
from experiments.workloads.pattern import WrongByte, check, piece


def send_frames(sock: socket.socket, request: Request, began_ns: int) -> None:
    """A frame at each multiple of the interval, later only if the connection does not take it."""
    sent = number = 0
    while sent < request.down:
        due = (began_ns + number * request.interval_us * 1000) / 1e9
        time.sleep(max(0.0, due - time.monotonic()))
        size = min(request.frame_bytes, request.down - sent)
        while size:
            data = piece(request.down_start, sent, size)
            sock.sendall(data)
            sent += len(data)
            size -= len(data)
        number += 1


def receive(sock: socket.socket, request: Request) -> tuple[int, bool]:
    """How many bytes came, and whether all did and were right."""
    came = 0

    def seen(done: int) -> None:
        nonlocal came
        came = done

    try:
        return read_stream(sock, request.up, request.up_start, seen), came == request.up
    except WrongByte:
        return came, False


def answer(sock: socket.socket, request: Request) -> tuple[int, bool]:
    """Each query as soon as it is there; how many bytes came, and whether all were right."""
    came = 0
    while came < request.up:
        size = min(request.frame_bytes, request.up - came)
        data = read_exactly(sock, size)
        try:
            check(request.up_start, came, data)
        except WrongByte:
            return came, False
        if len(data) < size:
            return came, False
        sock.sendall(piece(request.down_start, came, size))
        came += size
    return came, True


def exchange(sock: socket.socket) -> bool:
    """One of them; False when the connection has ended instead, or is of no more use."""
    head = read_exactly(sock, REQUEST_BYTES)
    if not head:
        return False
    request = Request.parsed(head)
    cc = set_congestion_control(sock, request.cc)
    came, right = (answer if request.queries else receive)(sock, request)
    now_ns = time.monotonic_ns()
    sock.sendall(Reply(cc, came, now_ns, right).packed())
    if not right or request.queries:
        return right
    if request.frame_bytes:
        send_frames(sock, request, now_ns)
    else:
        write_stream(sock, request.down, request.down_start)
    return True


def serve(sock: socket.socket) -> None:
    """Clients end background transfers with a reset."""
    with sock, contextlib.suppress(ConnectionError):
        while exchange(sock):
            pass


def listener(address: str, word: str) -> socket.socket:
    kind, _, port = word.rpartition(":")
    protocol = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # of what it accepts, too
    sock.bind((address, int(port)))
    sock.listen(4096)
    return sock


def accept(server: socket.socket) -> None:
    while True:
        sock, _ = server.accept()
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


def main() -> None:
    address, *ports = sys.argv[1:]
    for server in [listener(address, port) for port in ports]:
        threading.Thread(target=accept, args=(server,)).start()
    print(f"serve: ready on {address} ports {' '.join(ports)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
