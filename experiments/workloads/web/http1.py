# SPDX-License-Identifier: MIT
"""HTTP/1.1 as browsers do it: up to six connections a host, kept alive, one request at a time.

A request belongs to no connection until one is free: while a new connection is being made, an old
one that becomes free takes the request, and the new one takes what comes next.
"""

import asyncio
import itertools
from dataclasses import dataclass, field

from experiments.workloads.web.hints import Hints
from experiments.workloads.web.page import Item
from experiments.workloads.web.transport import (
    READ_BYTES,
    URGENCY,
    Connection,
    Dialling,
    LoadError,
    Reply,
    Transport,
    headers,
)

PER_HOST = 6
Waiting = tuple[int, int, Reply, "asyncio.Future[Reply]"]


@dataclass
class Pool:
    """The connections to one host, and what waits for them."""

    waiting: "asyncio.PriorityQueue[Waiting]" = field(default_factory=asyncio.PriorityQueue)
    free: int = 0
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    dialling: int = 0


class Http1(Transport):
    """The page's connections by HTTP/1.1. `hints`: who is told what each is to receive."""

    alpn = "http/1.1"

    def __init__(self, dialling: Dialling, page: str, hints: Hints | None = None) -> None:
        super().__init__(dialling)
        self.page = page
        self.hints = hints
        self.pools: dict[str, Pool] = {}
        self.counter = itertools.count()

    async def fetch(self, host: str, item: Item) -> Reply:
        pool = self.pools.setdefault(host, Pool())
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        pool.waiting.put_nowait((URGENCY[item.kind], next(self.counter), Reply(item), future))
        if pool.free + pool.dialling < pool.waiting.qsize() and len(pool.tasks) < PER_HOST:
            pool.dialling += 1
            pool.tasks.append(asyncio.create_task(self._serve(host, pool)))
        return await future

    async def _serve(self, host: str, pool: Pool) -> None:
        """One connection, from its making on."""
        try:
            account, reader, writer = await self.dial(host)
        except LoadError as error:
            _, _, _, future = await pool.waiting.get()
            future.set_exception(error)
            return
        finally:
            pool.dialling -= 1
        try:
            while True:
                pool.free += 1
                try:
                    _, _, reply, future = await pool.waiting.get()
                finally:
                    pool.free -= 1
                try:
                    await self._exchange(host, account, reader, writer, reply)
                except (LoadError, OSError, EOFError, ValueError) as error:
                    future.set_exception(LoadError(f"{host}{reply.item.path}: {error}"))
                    return
                future.set_result(reply)
        finally:
            writer.close()

    async def _exchange(
        self,
        host: str,
        account: Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        reply: Reply,
    ) -> None:
        loop = asyncio.get_running_loop()
        lines = [f"GET {reply.item.path} HTTP/1.1", f"host: {host}", "connection: keep-alive"]
        lines += [f"{name}: {value}" for name, value in headers(reply.item, self.page)]
        reply.asked, reply.connection = loop.time(), account.number
        account.requests += 1
        if self.hints:
            self.hints.tell(writer.get_extra_info("sockname"), reply.item)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        reply.first_byte = reply.last_byte = loop.time()
        rest = length_of(head)
        while rest:
            data = await reader.read(min(rest, READ_BYTES))
            if not data:
                raise LoadError(f"ended {rest} bytes early")
            reply.take(data, loop.time())
            rest -= len(data)

    async def close(self) -> None:
        tasks = [task for pool in self.pools.values() for task in pool.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def length_of(head: bytes) -> int:
    """The length of the body that follows a response's head."""
    status, *lines = head.decode("latin-1").split("\r\n")
    words = status.split(" ", 2)
    if words[0] != "HTTP/1.1" or words[1:2] != ["200"]:
        raise LoadError(f"answered {status!r}")
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (s.partition(":") for s in lines)
    }
    if "transfer-encoding" in fields or "content-encoding" in fields:
        raise LoadError("an encoded body was not asked for")
    return int(fields["content-length"]) if "content-length" in fields else _no_length(status)


def _no_length(status: str) -> int:
    raise LoadError(f"answered {status!r} without a length")
