# SPDX-License-Identifier: MIT
"""How queries get to the server: UDP as a stub resolver does, one connection, or one each.

Each has `ask(number)`, which returns when the query is answered or given up, and `failed`, a
future that never has a result but what went wrong with all of it.
"""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, cast

from experiments.workloads.dns import questions
from experiments.workloads.dns.asking import Asking
from experiments.workloads.dns.failure import Unanswered, WrongAnswer

LENGTH = struct.Struct("!H")


@dataclass(frozen=True)
class Server:
    address: str
    port: int
    tls: ssl.SSLContext | None = None
    name: str | None = None  # on its certificate


class Transport(Protocol):
    failed: "asyncio.Future[None]"

    async def ask(self, number: int) -> None: ...


class Datagrams(asyncio.DatagramProtocol):
    """One socket for all queries: ids tell their answers apart."""

    def __init__(self, asking: Asking, waits: Sequence[float]) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking, self._waits = asking, waits

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        try:
            self._asking.came(data)
        except WrongAnswer as error:
            self._fail(error)

    def error_received(self, exc: Exception) -> None:
        """Of ICMP: nobody listens there."""
        self._fail(Unanswered(f"the server cannot be reached: {exc}"))

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def ask(self, number: int) -> None:
        wire = questions.query(number)
        answer = self._asking.begin(number)
        for wait in self._waits:
            self._asking.sends(number)
            self._transport.sendto(wire)
            if (await asyncio.wait((answer,), timeout=wait))[0]:
                return
        answer.cancel()


@asynccontextmanager
async def datagrams(
    server: Server, asking: Asking, waits: Sequence[float]
) -> AsyncIterator[Datagrams]:
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_datagram_endpoint(
        lambda: Datagrams(asking, waits), remote_addr=(server.address, server.port)
    )
    try:
        yield made
    finally:
        transport.close()


class Stream:
    """A connection for any number of queries, each written by itself."""

    def __init__(
        self, asking: Asking, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking, self._writer = asking, writer
        self._reading = asyncio.create_task(self._read(reader))

    async def ask(self, number: int) -> None:
        wire = questions.query(number)
        answer = self._asking.begin(number)
        self._asking.sends(number)
        self._writer.write(LENGTH.pack(len(wire)) + wire)
        await answer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                self._asking.came(await _message(reader))
        except (WrongAnswer, Unanswered, OSError) as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Raises Unanswered where the connection ends before or in it."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    except asyncio.IncompleteReadError as error:
        told = "in the length of an answer" if error.partial else "before the next answer"
        raise Unanswered(f"the connection ended {told}") from None
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise Unanswered(
            f"the connection ended after {len(error.partial)} of the {length} bytes of an answer"
        ) from None


@asynccontextmanager
async def stream(server: Server, asking: Asking) -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection(
        server.address,
        server.port,
        ssl=server.tls,
        server_hostname=server.name if server.tls else None,
    )
    made = Stream(asking, reader, writer)
    try:
        yield made
    finally:
        await made.close()


class Fresh:
    """A connection for each query, whose making counts."""

    def __init__(self, server: Server, asking: Asking) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server, self._asking = server, asking

    async def ask(self, number: int) -> None:
        answer = self._asking.begin(number)
        self._asking.sends(number)
        try:
            await self._exchange(questions.query(number))
            if not answer.done():
                raise WrongAnswer(f"the answer to query {number} has another id")
        except (WrongAnswer, Unanswered, OSError) as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    async def _exchange(self, wire: bytes) -> None:
        host, port = self._server.address, self._server.port
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(LENGTH.pack(len(wire)) + wire)
            self._asking.came(await _message(reader))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
