# SPDX-License-Identifier: MIT
"""An HTTP proxy on loopback: what it is asked to GET comes over several paths.

Other methods, and requests for ranges, go over the first path that answers, unchanged; so does TLS,
by CONNECT.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.workloads.mhttp.body import READ_BYTES, Body
from experiments.workloads.mhttp.client import Client
from experiments.workloads.mhttp.connection import LOST, Connection, why
from experiments.workloads.mhttp.failure import BadInput, Failed, WrongAnswer
from experiments.workloads.mhttp.message import Answer, Head, head, written
from experiments.workloads.mhttp.target import Target, authority

IDLE_S = 60.0  # a client's connection without a request
Tell = Callable[[dict[str, Any]], None]


class Reply:
    """A sink that is a client of the proxy."""

    def __init__(self, writer: asyncio.StreamWriter, method: str, kept_alive: bool) -> None:
        self._writer, self._method = writer, method
        self.kept_alive = kept_alive
        self.begun = False

    async def begin(self, answer: Answer) -> None:
        """A body whose length is not known ends with the connection."""
        self.begun = True
        if answer.body(self._method) in ("chunked", "close"):
            self.kept_alive = False
        state = "keep-alive" if self.kept_alive else "close"
        fields = (*answer.end_to_end(), ("Connection", state))
        self._writer.write(written(f"HTTP/1.1 {answer.said}", fields))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """The connection may go on."""

    def drop(self) -> None:
        """The client must not take what it has for the whole."""
        self._writer.transport.abort()

    async def refuse(self, status: str, told: str) -> None:
        text = f"mhttp: {told}\n".encode()
        fields = (
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(text))),
            ("Connection", "close"),
        )
        self.kept_alive = False
        self._writer.write(written(f"HTTP/1.1 {status}", fields) + text)
        await self._writer.drain()


@dataclass(frozen=True)
class Request:
    """What a client asks the proxy for."""

    head: Head
    method: str
    uri: str
    kept_alive: bool

    @classmethod
    def of(cls, data: bytes) -> "Request":
        """Raises WrongAnswer."""
        found = head(data)
        words = found.start.split(" ")
        if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
            raise WrongAnswer(f"a request {found.start[:60]!r}")
        tokens = found.tokens("connection") | found.tokens("proxy-connection")
        return cls(found, words[0], words[1], words[2] == "HTTP/1.1" and "close" not in tokens)

    def by_ranges(self) -> bool:
        """Whether it is for all of an object."""
        given = ("range", "if-range", "content-length", "transfer-encoding")
        return self.method == "GET" and not any(self.head.get(it) is not None for it in given)


@dataclass(frozen=True)
class Visit:
    """A client's connection, request after request."""

    client: Client
    tell: Tell
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def run(self) -> None:
        try:
            while await self._one():
                pass
        except LOST:
            pass  # the client went away
        finally:
            self.writer.close()

    async def _one(self) -> bool:
        """Whether another request may follow."""
        async with asyncio.timeout(IDLE_S):
            data = await self.reader.readuntil(b"\r\n\r\n")
        reply = Reply(self.writer, "GET", False)
        try:
            request = Request.of(data)
            reply = Reply(self.writer, request.method, request.kept_alive)
            if request.method == "CONNECT":
                await self._tunnel(request)
                return False
            target = Target.of(request.uri)
            if request.by_ranges():
                await self._fetch(request, target, reply)
            else:
                await self._forward(request, target, reply)
        except (BadInput, WrongAnswer) as wrong:
            await reply.refuse("400 Bad Request", str(wrong))
        except Failed as failed:
            if reply.begun:
                reply.drop()
                return False
            await reply.refuse("502 Bad Gateway", str(failed))
        return reply.kept_alive

    async def _fetch(self, request: Request, target: Target, reply: Reply) -> None:
        account = self.client.settings.account()
        fields = Head("", request.head.end_to_end()).without({"host"})
        try:
            await self.client.fetch(target, fields, reply, account)
        finally:
            self.tell({"url": request.uri, **account.told()})

    async def _forward(self, request: Request, target: Target, reply: Reply) -> None:
        """As it is. Once a server has some of it, no other one is asked."""
        ending = request.head.ending()
        connection = await self._dial(target, request.method)
        try:
            fields = Head("", request.head.end_to_end()).without({"host", "expect"})
            more = [("Host", target.authority), ("Connection", "close")]
            more += [("Transfer-Encoding", "chunked")] if ending == "chunked" else []
            start = f"{request.method} {target.path} HTTP/1.1"
            connection.send(written(start, (*more, *fields)))
            if "100-continue" in request.head.tokens("expect"):
                self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if ending:
                await self._upload(connection, Body(self.reader, ending, IDLE_S))
            answer = await connection.head()
            await reply.begin(answer)
            async for data in connection.body(answer):
                await reply.write(data)
        except LOST as error:
            raise Failed(f"{connection.source}: {why(error)}") from None
        finally:
            connection.close()

    async def _upload(self, connection: Connection, body: Body) -> None:
        chunked = body.ending == "chunked"
        async for data in body.pieces():
            connection.send(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            await connection.writer.drain()
        if chunked:
            connection.send(b"0\r\n\r\n")

    async def _dial(self, target: Target, method: str) -> Connection:
        """To the first source that takes it."""
        told, settings = [], self.client.settings
        sources = await self.client.sources(target)
        while (source := sources.take()) is not None:
            try:
                to = source, target.port, settings.silence_s
                return await Connection.open(*to, method, mptcp=settings.mptcp)
            except LOST as error:
                told.append(f"{source}: {why(error)}")
                sources.release(source, good=False)
        raise Failed("; ".join(told) or "there is no source")

    async def _tunnel(self, request: Request) -> None:
        """Bytes both ways until both ends have ended; an error of one ends all."""
        target = Target(*authority(request.uri), "/")
        far = await self._dial(target, "CONNECT")
        try:
            self.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_carry(self.reader, far.writer))
                both.create_task(_carry(far.reader, self.writer))
        except* OSError:
            self.writer.transport.abort()
        finally:
            far.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):  # it may have ended meanwhile
        writer.write_eof()


async def serve(client: Client, port: int, tell: Tell) -> None:
    """Until it is cancelled."""

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Visit(client, tell, reader, writer).run()

    server = await asyncio.start_server(visit, "127.0.0.1", port, limit=4 * READ_BYTES)
    async with server:
        print(f"mhttp: proxy on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()
