# SPDX-License-Identifier: MIT
"""The two ends of a relayed connection, played by the test itself with plain sockets."""

import hashlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from tests.relay.netns import Namespace

RST_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Ending:
    """What a reader saw: how many bytes, their SHA-256, and `eof`, `reset` or `timeout`."""

    how: str
    size: int
    sha256: str


def unix(path: Path, seconds: float = 10.0) -> socket.socket:
    """A connection to the UNIX socket at `path`; its time-out stays at `seconds`."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(seconds)
    try:
        sock.connect(str(path))
    except BaseException:
        sock.close()
        raise
    return sock


def read_to_end(sock: socket.socket, seconds: float = 20.0, limit: int | None = None) -> Ending:
    """Reads until the connection ends, `limit` bytes came, or nothing came for `seconds`."""
    sha = hashlib.sha256()
    size = 0
    sock.settimeout(seconds)
    how = "limit"
    while limit is None or size < limit:
        try:
            data = sock.recv(1 << 18 if limit is None else min(1 << 18, limit - size))
        except (ConnectionResetError, BrokenPipeError):
            how = "reset"
            break
        except TimeoutError:
            how = "timeout"
            break
        if not data:
            how = "eof"
            break
        sha.update(data)
        size += len(data)
    return Ending(how, size, sha.hexdigest())


@contextmanager
def reading(sock: socket.socket, seconds: float = 20.0) -> Iterator[Callable[[], Ending]]:
    """Reads to the end beside the block; the function waits for what that end was.

    However the block ends, the thread ends before it: once a descriptor is closed its number may be
    another file's, and a thread that still reads would take that one's bytes.
    """
    ends: Queue[Ending] = Queue()
    thread = threading.Thread(target=lambda: ends.put(read_to_end(sock, seconds)))
    thread.start()
    try:
        yield lambda: ends.get(timeout=seconds)
    finally:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        thread.join()


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        block = sock.recv(size - len(data))
        assert block, f"the connection ended after {len(data)} of {size} bytes"
        data += block
    return bytes(data)


def send_all(sock: socket.socket, data: bytes, seconds: float = 20.0) -> None:
    """Sends it all, however long that takes; an error once nothing went for `seconds`.

    sendall() has that time for all of it.
    """
    sock.settimeout(seconds)
    rest = memoryview(data)
    while rest:
        rest = rest[sock.send(rest) :]


def reset(sock: socket.socket) -> None:
    """Closes with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
    sock.close()


def ending_of(ns: Namespace, port: int, seconds: float = 5.0, host: str = "127.0.0.1") -> Ending:
    """Connects and reads to the end; a reset may come before connect() has returned."""
    try:
        with ns.connect((host, port)) as sock:
            return read_to_end(sock, seconds)
    except ConnectionResetError:
        return Ending("reset", 0, hashlib.sha256().hexdigest())


Handler = Callable[[socket.socket], object]


class Server:
    """Accepts connections and gives each to `handler` in a thread of its own.

    What the handler returns, or the exception that ended it, is in `results`.
    """

    def __init__(
        self, ns: Namespace, handler: Handler, address: tuple[str, int], backlog: int = 1024
    ) -> None:
        self.results: Queue[object] = Queue()
        self._handler = handler
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.listener = ns.open_socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(backlog)
        self.port = int(self.listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            self.results.put(self._handler(sock))
        except BaseException as error:
            self.results.put(error)
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(timeout=10)
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(
    ns: Namespace, handler: Handler, address: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[Server]:
    server = Server(ns, handler, address)
    try:
        yield server
    finally:
        server.close()


def echo(sock: socket.socket) -> int:
    """A handler that sends everything back; how many bytes."""
    total = 0
    while True:
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            return total
        if not data:
            return total
        sock.sendall(data)
        total += len(data)


def sending(data: bytes) -> Handler:
    """A handler that sends `data`, ends its side, and reads what the other end says."""

    def handler(sock: socket.socket) -> Ending:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return read_to_end(sock)

    return handler


def answers(sock: socket.socket, data: bytes = b"are you there") -> None:
    """Who echoes at the other end does."""
    sock.sendall(data)
    assert read_exactly(sock, len(data)) == data


# --- SOCKS5, spoken by hand ---------------------------------------------------


def socks_request(host: str, port: int, command: int = 1) -> bytes:
    """The request that follows the greeting; an address that is no IP address goes as a name."""
    head = struct.pack("!BBB", 5, command, 0)
    try:
        return head + b"\x01" + socket.inet_aton(host) + struct.pack("!H", port)
    except OSError:
        pass
    with suppress(OSError):
        return head + b"\x04" + socket.inet_pton(socket.AF_INET6, host) + struct.pack("!H", port)
    name = host.encode()
    return head + b"\x03" + bytes([len(name)]) + name + struct.pack("!H", port)


def socks_greet(ns: Namespace, lp: tuple[str, int] = ("127.0.0.1", 1080)) -> socket.socket:
    sock = ns.connect(lp)
    sock.sendall(b"\x05\x01\x00")
    assert read_exactly(sock, 2) == b"\x05\x00"
    return sock


def socks_reply(sock: socket.socket) -> int:
    """Reads lp's whole reply; its code (0 = granted)."""
    head = read_exactly(sock, 4)
    assert head[0] == 5 and head[2] == 0, head
    assert head[3] == 1, f"bound address of type {head[3]}"
    read_exactly(sock, 6)
    return head[1]


def socks(
    ns: Namespace, host: str, port: int, lp: tuple[str, int] = ("127.0.0.1", 1080)
) -> socket.socket:
    """A connection to host:port through lp, granted."""
    sock = socks_greet(ns, lp)
    try:
        sock.sendall(socks_request(host, port))
        code = socks_reply(sock)
        assert code == 0, f"lp answered SOCKS with {code}"
    except BaseException:
        sock.close()
        raise
    return sock


def serves(
    ns: Namespace, port: int, host: str = "127.0.0.1", lp: tuple[str, int] = ("127.0.0.1", 1080)
) -> None:
    """A new connection through lp reaches who echoes there."""
    with socks(ns, host, port, lp) as sock:
        answers(sock)
