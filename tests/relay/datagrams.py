# SPDX-License-Identifier: MIT
"""The two ends of datagrams that are relayed: a client of SOCKS5 UDP ASSOCIATE, and servers."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.relay.ends import read_exactly, socks_greet, socks_request
from tests.relay.netns import Namespace

LP = ("127.0.0.1", 1080)
UDP_ASSOCIATE = 3
Address = tuple[str, int]
Answer = Callable[[bytes], bytes | None]


def header(host: str, port: int, fragment: int = 0) -> bytes:
    """What SOCKS5 puts in front of a datagram; its address looks as in a request."""
    return bytes([0, 0, fragment]) + socks_request(host, port)[3:]


def split(data: bytes) -> tuple[Address, bytes]:
    """Where a datagram from lp came from, and its payload."""
    assert data[:3] == b"\0\0\0", data
    size, family = {1: (4, socket.AF_INET), 4: (16, socket.AF_INET6)}[data[3]]
    host = socket.inet_ntop(family, data[4 : 4 + size])
    (port,) = struct.unpack_from("!H", data, 4 + size)
    return (host, port), data[4 + size + 2 :]


@dataclass
class Client:
    """An association: its control connection, and a socket that sends to where lp said."""

    control: socket.socket
    sock: socket.socket
    lp: Address

    def send(self, payload: bytes, host: str, port: int) -> None:
        self.sock.sendto(header(host, port) + payload, self.lp)

    def receive(self, seconds: float = 10.0) -> tuple[Address, bytes]:
        self.sock.settimeout(seconds)
        return split(self.sock.recv(65536))

    def ask(self, payload: bytes, host: str, port: int) -> bytes:
        self.send(payload, host, port)
        return self.receive()[1]

    def hears_nothing(self, seconds: float = 0.5) -> bool:
        with suppress(TimeoutError):
            self.receive(seconds)
            return False
        return True


def grant(control: socket.socket) -> tuple[int, Address]:
    """lp's reply to a request: its code, and the address in it."""
    _, code, _, kind = read_exactly(control, 4)
    size, family = {1: (4, socket.AF_INET), 4: (16, socket.AF_INET6)}[kind]
    host = socket.inet_ntop(family, read_exactly(control, size))
    (port,) = struct.unpack("!H", read_exactly(control, 2))
    return code, (host, port)


@contextmanager
def associated(ns: Namespace, at: Address = LP, said: Address = ("0.0.0.0", 0)) -> Iterator[Client]:
    """An association, granted; `said` is where the client says that it will send from."""
    family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
    with socks_greet(ns, at) as control, ns.open_socket(family, socket.SOCK_DGRAM) as sock:
        control.sendall(socks_request(*said, command=UDP_ASSOCIATE))
        code, lp = grant(control)
        assert code == 0, f"lp answered UDP ASSOCIATE with {code}"
        assert lp[0] == at[0]
        yield Client(control, sock, lp)


class Server:
    """Answers each datagram as `answer` says; None: not at all."""

    def __init__(self, ns: Namespace, answer: Answer, address: Address) -> None:
        self.heard: list[bytes] = []
        self.clients: list[Address] = []
        self._answer = answer
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = ns.open_socket(family, socket.SOCK_DGRAM)
        self.sock.bind(address)
        self.sock.settimeout(0.2)
        self.port = int(self.sock.getsockname()[1])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ends.is_set():
            try:
                data, peer = self.sock.recvfrom(65536)
            except TimeoutError:
                continue
            self.heard.append(data)
            self.clients.append(peer[:2])
            said = self._answer(data)
            if said is not None:
                self.sock.sendto(said, peer)

    def close(self) -> None:
        self._ends.set()
        self._thread.join(timeout=10)
        self.sock.close()


@contextmanager
def answering(
    ns: Namespace, answer: Answer = bytes, address: Address = ("127.0.0.1", 0)
) -> Iterator[Server]:
    """A server; without `answer` it sends back what comes."""
    server = Server(ns, answer, address)
    try:
        yield server
    finally:
        server.close()


def name_server(host: str) -> Answer:
    """Every name has this one IPv4 address, and no other."""

    def answer(query: bytes) -> bytes:
        end = query.index(b"\0", 12) + 5  # the question: name, type, class
        is_a = query[end - 4 : end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, is_a, 0, 0)
        record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(host)
        return head + query[12:end] + (record if is_a else b"")

    return answer
