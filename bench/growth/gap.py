# SPDX-License-Identifier: MIT
"""An lp of the baseline whose pipes are out of step: on one of them messages of a connection come
that the other one has the missing message for."""

import fcntl
import socket
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.programs import Trouble, wait_until
from bench.rivals import MIDDLE_PORT, SERVER_PORT

PAYLOAD = 1_000
ID = 1
BATCH = 500  # messages in one write
PATIENCE_S = 20.0
LOOK_S = 0.002  # rp has read, and sleeps: what came later would be no gap
HEADER = struct.Struct("<HIH")
SYN = 0xFFFF


def unsent(sock: socket.socket) -> int:
    """What of it is not yet in rp's buffer."""
    return int(struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, struct.pack("i", 0)))[0])


class OutOfStep:
    """One connection over two pipes; `server` is where its bytes come out."""

    def __init__(self, pipes: tuple[socket.socket, socket.socket], server: socket.socket) -> None:
        self.pipes, self.server = pipes, server
        self.next = 1
        self.due = 0  # bytes that the server has not had

    def data(self, number: int) -> bytes:
        return HEADER.pack(ID, number, HEADER.size + PAYLOAD) + bytes(PAYLOAD)

    def send(self, pipe: int, first: int, count: int) -> None:
        for at in range(first, first + count, BATCH):
            until = min(at + BATCH, first + count)
            self.pipes[pipe].sendall(b"".join(map(self.data, range(at, until))))
        self.due += count * PAYLOAD

    def round(self, length: int) -> int:
        """A gap of `length` messages, and its end; how many messages that were."""
        self.send(1, self.next + 1, length)
        wait_until(lambda: not unsent(self.pipes[1]), "rp to take early messages", PATIENCE_S)
        time.sleep(LOOK_S)
        self.send(0, self.next, 1)
        self.next += length + 1
        self.receive()
        return length + 1

    def receive(self) -> None:
        while self.due:
            part = len(self.server.recv(min(self.due, 1 << 20)))
            if not part:
                raise Trouble("rp ended the connection whose message was missing")
            self.due -= part


@contextmanager
def out_of_step() -> Iterator[OutOfStep]:
    with socket.create_server(("127.0.0.1", SERVER_PORT)) as listening:
        listening.settimeout(PATIENCE_S)
        with (
            socket.create_connection(("127.0.0.1", MIDDLE_PORT), PATIENCE_S) as one,
            socket.create_connection(("127.0.0.1", MIDDLE_PORT), PATIENCE_S) as other,
        ):
            for sock in (one, other):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            where = socket.inet_aton("127.0.0.1") + struct.pack("<H", SERVER_PORT)
            one.sendall(HEADER.pack(ID, 0, SYN) + where)
            server, _ = listening.accept()
            with server:
                server.settimeout(PATIENCE_S)
                yield OutOfStep((one, other), server)
