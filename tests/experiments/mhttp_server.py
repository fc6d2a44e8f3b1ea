# SPDX-License-Identifier: MIT
"""A server of one object, for mHTTP's tests: right, or wrong in a way of the test's."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

ETAG = '"one"'
MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"
PIECE = 4096


@dataclass(frozen=True)
class Told:
    """An answer as it goes out; `body` may be more or less than the fields say."""

    status: str
    fields: dict[str, str]
    body: bytes
    cut: int | None = None  # after so many bytes of the body
    then: str = "go on"  # or "close", "reset", "be silent", "die"


Fault = Callable[[int, Told], Told]  # by the number of the request, from 1


def right(_: int, told: Told) -> Told:
    return told


@dataclass
class Server:
    """`asked`: the Range field of each request so far; None: there was none."""

    content: bytes
    fault: Fault = right
    piece_s: float = 0.0005  # between pieces, so that others get their turn
    asked: list[str | None] = field(default_factory=list)
    connections: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self, where: tuple[str, int] | socket.socket) -> None:
        on: dict[str, Any] = {"sock": where}
        if not isinstance(where, socket.socket):
            on = {"host": where[0], "port": where[1]}
        self._listening = await asyncio.start_server(self._serve, **on)

    def die(self) -> None:
        self._listening.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        with suppress(OSError, EOFError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        self._writers.discard(writer)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        match = re.search(r"^range: (.*)\r$", head, re.IGNORECASE | re.MULTILINE)
        self.asked.append(match[1] if match else None)
        told = self.fault(len(self.asked), self._right(self.asked[-1]))
        lines = [f"HTTP/1.1 {told.status}", *(f"{k}: {v}" for k, v in told.fields.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        body = told.body if told.cut is None else told.body[: told.cut]
        for start in range(0, len(body), PIECE):
            writer.write(body[start : start + PIECE])
            await writer.drain()
            await asyncio.sleep(self.piece_s)
        if told.then == "be silent":
            await asyncio.sleep(3600)
        if told.then == "reset":
            writer.transport.abort()
        if told.then == "die":
            self.die()
        return told.then == "go on"

    def _right(self, asked: str | None) -> Told:
        size = len(self.content)
        fields = {"Content-Length": str(size), "ETag": ETAG, "Last-Modified": MODIFIED}
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", asked or "")
        if not match:
            return Told("200 OK", fields, self.content)
        first, last = int(match[1]), min(int(match[2]), size - 1)
        if first >= size:
            fields = {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
            return Told("416 Range Not Satisfiable", fields, b"")
        body = self.content[first : last + 1]
        more = {"Content-Length": str(len(body)), "Content-Range": f"bytes {first}-{last}/{size}"}
        return Told("206 Partial Content", fields | more, body)


def with_fields(told: Told, **fields: str | None) -> Told:
    """Other values of fields, named with _ in place of -; None: without it."""
    found = dict(told.fields)
    for name, value in fields.items():
        key = next((it for it in found if it.lower() == name.replace("_", "-").lower()), name)
        found.pop(key, None)
        if value is not None:
            found[key] = value
    return replace(told, fields=found)


def free_port(addresses: tuple[str, ...]) -> int:
    """That nobody has on any of these."""
    while True:
        with socket.socket() as first:
            first.bind((addresses[0], 0))
            port = first.getsockname()[1]
            try:
                for address in addresses[1:]:
                    with socket.socket() as other:
                        other.bind((address, port))
            except OSError:
                continue
            return port


@asynccontextmanager
async def serving(servers: dict[str, Server]) -> AsyncIterator[int]:
    """Each on its address; the port, which is the same for all."""
    port = free_port(tuple(servers))
    for address, server in servers.items():
        await server.start((address, port))
    try:
        yield port
    finally:
        for server in servers.values():
            server.die()
