# SPDX-License-Identifier: MIT
"""The server: an application for each tag, which answers each message that it takes.

An answer has no dependencies. It tells the message's own number and the checksum of what came.
"""

import asyncio
import json
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.workloads import certificate
from experiments.workloads.smt import control
from experiments.workloads.smt.association import Association
from experiments.workloads.smt.control import Hello
from experiments.workloads.smt.failure import BadInput, BadMessage
from experiments.workloads.smt.header import CONTROL, TAGS, decode
from experiments.workloads.smt.line import Ends, Line
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.settings import Settings
from experiments.workloads.smt.tcp import TcpLine

NUMBER_BYTES = 8
SILENCE_S = 60.0  # the longest that a client of QUIC can ask for
MOST_EARLY = 4096  # messages of a line before its HELLO: as many as it has streams


def answer(payload: bytes) -> bytes:
    """To a message; its first bytes are its number."""
    return payload[:NUMBER_BYTES] + zlib.crc32(payload).to_bytes(4, "big")


@dataclass
class Peer:
    """An association. `pause_s`: how long an application is busy with each message."""

    settings: Settings
    pause_s: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    bytes: int = 0
    _busy: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cpu_s = time.process_time()
        classes = [Class("any")]
        self.association = Association(
            self.settings, classes, self._ready, lambda _: self.ended.set()
        )
        for tag in range(1, TAGS):
            self.association.take(tag)  # each application waits for its first message

    def close(self) -> None:
        for task in self._busy.values():
            task.cancel()
        self.association.close()

    def _ready(self, tag: int) -> None:
        if not self.pause_s:
            while self._answer(tag):
                pass
        elif tag not in self._busy:
            self._busy[tag] = asyncio.get_running_loop().create_task(self._read(tag))

    async def _read(self, tag: int) -> None:
        while self._answer(tag):
            await asyncio.sleep(self.pause_s)
        del self._busy[tag]

    def _answer(self, tag: int) -> bool:
        message = self.association.take(tag)
        if message is None:
            return False
        self.bytes += len(message.payload)
        self.association.submit(tag, answer(message.payload))
        return True

    def told(self) -> dict[str, Any]:
        found = self.association.told()
        if self.pause_s:
            found["late"] = None  # what a busy application takes late is not the receiver's doing
        cpu_s = round(time.process_time() - self._cpu_s, 3)
        return {"bytes": self.bytes, **found, "cpu_s": cpu_s}


class Server:
    """Of any number of associations, one after the other or at once."""

    def __init__(self, pause_s: float) -> None:
        self.ends = Ends(self._came, self._lost)
        self._pause_s = pause_s
        self._peers: dict[bytes, Peer] = {}
        self._of: dict[Line, Peer] = {}
        self._early: dict[Line, list[bytes]] = {}
        self.finished: asyncio.Queue[Peer] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def line(self) -> TcpLine:
        return TcpLine("server", self.ends, printed=False)

    def _came(self, line: Line, data: bytes) -> None:
        peer = self._of.get(line)
        if peer is not None:
            peer.association.came(line, data)
            return
        if decode(data).tag != CONTROL or not isinstance(it := control.decode(data), Hello):
            self._came_early(line, data)
            return
        settings = Settings.of(it)
        try:
            line.configure(settings.silence_s, settings.cc)
        except OSError as error:
            raise BadMessage(f"congestion control {settings.cc!r}: {error.strerror}") from None
        peer = self._peers.get(it.association)
        if peer is None:
            peer = self._peers[it.association] = Peer(settings, self._pause_s)
            task = asyncio.get_running_loop().create_task(self._until_end(it.association, peer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        line.estimate.printed = peer.settings.printed
        self._of[line] = peer
        peer.association.join(line)
        for early in self._early.pop(line, ()):
            peer.association.came(line, early)

    def _came_early(self, line: Line, data: bytes) -> None:
        """By QUIC, messages may overtake a HELLO whose packet was lost: they wait for it."""
        if line.in_order:
            raise BadMessage("the first message is no HELLO")
        early = self._early.setdefault(line, [])
        if len(early) == MOST_EARLY:
            raise BadMessage(f"{MOST_EARLY} messages without a HELLO")
        early.append(data)

    def _lost(self, line: Line, why: str) -> None:
        self._early.pop(line, None)
        peer = self._of.pop(line, None)
        if peer is not None:
            peer.association.gone(line, why)

    async def _until_end(self, name: bytes, peer: Peer) -> None:
        await peer.ended.wait()
        del self._peers[name]
        peer.close()
        self.finished.put_nowait(peer)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for peer in self._peers.values():
            peer.close()


@contextmanager
def shown() -> Iterator[tuple[Path, Path]]:
    """A certificate and its key."""
    with tempfile.TemporaryDirectory(prefix="tm3-smt-") as name:
        pair = Path(name) / "certificate.pem", Path(name) / "key.pem"
        certificate.make(*pair, ["smt.test"])
        yield pair


def need_quic() -> None:
    """Raises BadInput."""
    try:
        import aioquic  # noqa: F401
    except ImportError:
        raise BadInput("QUIC needs the package aioquic") from None


async def listen(server: Server, address: str, port: int, with_quic: bool) -> tuple[int, Any]:
    """By TCP, and by QUIC at the same port. The port, and what is to be closed."""
    loop = asyncio.get_running_loop()
    listening = [await loop.create_server(server.line, address, port)]
    port = listening[0].sockets[0].getsockname()[1]
    if with_quic:
        listening.append(await _listen_quic(server, address, port))
    return port, listening


async def _listen_quic(server: Server, address: str, port: int) -> Any:
    from aioquic.asyncio import serve
    from aioquic.quic.connection import QuicConnection

    from experiments.workloads.smt.quic import ALPN, QuicLine, configured

    def line(quic: QuicConnection, **_: Any) -> QuicLine:
        return QuicLine(quic, "server", server.ends, printed=False, ordered=None)

    configuration = configured(False, SILENCE_S, list(ALPN.values()))
    with shown() as pair:
        configuration.load_cert_chain(*pair)
    return await serve(address, port, configuration=configuration, create_protocol=line)


async def serve_at(address: str, port: int, with_quic: bool, pause_s: float, once: bool) -> None:
    """Tells each association that ended as a line of JSON."""
    server = Server(pause_s)
    port, listening = await listen(server, address, port, with_quic)
    print(f"smt: ready on {address} port {port}", file=sys.stderr, flush=True)
    try:
        while True:
            peer = await server.finished.get()
            print(json.dumps(peer.told()), flush=True)
            if once:
                return
    finally:
        server.close()
        for it in listening:
            it.close()
