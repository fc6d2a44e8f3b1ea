# SPDX-License-Identifier: MIT
"""The server: to each connection the chunks from the number on that it asks for, by the clock."""

import socket
import sys
import threading
import time

from experiments.workloads.rtapp.chunk import EVERY_S, NUMBER, chunk

READY = "rtapp: ready"
GIVES_UP_S = 120.0  # nothing acknowledged for so long: whoever asked is gone


def serve(address: str, port: int, seed: int) -> None:
    with socket.create_server((address, port), backlog=64) as listening:
        print(READY, file=sys.stderr, flush=True)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=chunks, args=(connection, seed), daemon=True).start()


def chunks(connection: socket.socket, seed: int) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit = int(GIVES_UP_S * 1e3)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
        try:
            asked = connection.recv(NUMBER.size, socket.MSG_WAITALL)
            if len(asked) < NUMBER.size:
                return
            (number,) = NUMBER.unpack(asked)
            due = time.monotonic()
            while True:
                connection.sendall(chunk(seed, number))
                number, due = number + 1, due + EVERY_S
                time.sleep(max(0.0, due - time.monotonic()))
        except OSError:
            return  # it dialled anew elsewhere
