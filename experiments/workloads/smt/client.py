# SPDX-License-Identifier: MIT
"""The client: sends messages as they are generated, and measures how long each answer takes."""

import asyncio
import os
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from experiments.workloads import rates
from experiments.workloads.mhttp.path import Path
from experiments.workloads.smt import control
from experiments.workloads.smt.association import Association
from experiments.workloads.smt.failure import Failed
from experiments.workloads.smt.generator import Arrivals, Wanted
from experiments.workloads.smt.header import TAGS
from experiments.workloads.smt.line import Ends, Line
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.server import NUMBER_BYTES, answer
from experiments.workloads.smt.settings import Settings
from experiments.workloads.smt.tcp import TcpLine

TRANSPORTS = ("tcp", "quic", "quic-ordered")


@dataclass(frozen=True, kw_only=True)
class Client:
    """`paths`: what connections are bound to, `connections` to each. `most`: messages in all; it
    ends earlier after `seconds`. While `queued` messages wait to leave, no more is made. All is to
    be over after `limit_s`."""

    server: tuple[str, int]
    paths: tuple[Path, ...]
    connections: int
    transport: str
    settings: Settings
    classes: tuple[Class, ...]
    arrivals: Arrivals
    queued: int
    most: int
    seconds: float | None
    limit_s: float
    seed: int

    async def run(self, wanted: Iterator[Wanted]) -> dict[str, Any]:
        """Raises Failed, OSError and BadInput."""
        work = Work(self)
        try:
            async with asyncio.timeout(self.limit_s):
                await work.connect()
                await work.send(wanted)
                await work.answered()
        except TimeoutError:
            raise Failed(
                f"{work.came} of {work.sent} messages were answered in {self.limit_s:g} s"
            ) from None
        finally:
            work.association.close()
        return work.told()


class Work:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.came = self.sent = self.bytes = 0
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._begun: dict[int, tuple[float, bytes]] = {}
        self._taken: list[float] = []
        self._all_sent = False
        self.association = Association(client.settings, client.classes, self._ready, self._bare)
        for tag in range(1, TAGS):
            self.association.take(tag)

    async def connect(self) -> None:
        """Each line tells first whose it is."""
        began = time.monotonic()
        self._place = await self._looked_up()
        hello = control.encode(self.client.settings.hello(os.urandom(control.NAME_BYTES)))
        for _ in range(self.client.connections):
            for path in self.client.paths:
                line = await self._open(path)
                line.send(hello)
                self.association.join(line)
        self._connected_s = time.monotonic() - began

    async def _looked_up(self) -> tuple[str, int]:
        """The server's address: the first one of the paths' family."""
        host, port = self.client.server
        family = next((it.family for it in self.client.paths if it.address), socket.AF_UNSPEC)
        found = await self._loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        return found[0][4][0], port

    async def _open(self, path: Path) -> Line:
        it, settings = self.client, self.client.settings
        ends = Ends(self.association.came, self.association.gone)
        if it.transport != "tcp":
            from experiments.workloads.smt.quic import open_quic

            ordered = it.transport == "quic-ordered"
            return await open_quic(
                path.name,
                path.address,
                self._place,
                ends,
                settings.silence_s,
                settings.printed,
                ordered,
            )
        local = (path.address, 0) if path.address else None
        try:
            async with asyncio.timeout(settings.silence_s):
                _, line = await self._loop.create_connection(
                    lambda: TcpLine(path.name, ends, settings.printed),
                    *self._place,
                    local_addr=local,
                )
        except TimeoutError:
            raise Failed(f"path {path.name}: no answer from {self._place[0]}") from None
        line.configure(settings.silence_s, settings.cc)
        return line

    async def send(self, wanted: Iterator[Wanted]) -> None:
        chance = random.Random(self.client.seed)
        self._cpu_s = time.process_time()
        self._began = due = self._loop.time()
        for number, it in enumerate(wanted):
            if number == self.client.most or self._is_late():
                break
            await self._room()
            payload = number.to_bytes(NUMBER_BYTES, "big") + chance.randbytes(
                it.size - NUMBER_BYTES
            )
            self._begun[number] = self._loop.time(), answer(payload)
            self.sent += 1
            self.bytes += len(payload)
            self.association.submit(it.tag, payload, it.needs, it.priority)
            due = max(due + self.client.arrivals.after(self.sent), self._loop.time())
            await asyncio.sleep(due - self._loop.time())
        self._all_sent = True
        self._check_end()

    def _is_late(self) -> bool:
        seconds = self.client.seconds
        return seconds is not None and self._loop.time() >= self._began + seconds

    async def _room(self) -> None:
        while self.association.sender.waiting >= self.client.queued and not self._over.done():
            moved = self.association.moved
            moved.clear()
            waiting = self._loop.create_task(moved.wait())
            await asyncio.wait({waiting, self._over}, return_when="FIRST_COMPLETED")
            waiting.cancel()
        if self._over.done():
            self._over.result()

    async def answered(self) -> None:
        await self._over

    def _ready(self, tag: int) -> None:
        while (message := self.association.take(tag)) is not None:
            payload = message.payload
            number = int.from_bytes(payload[:NUMBER_BYTES], "big")
            began, expected = self._begun.pop(number, (0.0, b""))
            if payload != expected:
                self._fail(f"a wrong answer to message {number}")
                return
            self._taken.append(self._loop.time() - began)
            self.came += 1
        self._check_end()

    def _check_end(self) -> None:
        if self._all_sent and not self._begun and not self._over.done():
            self._ended = self._loop.time()
            self._over.set_result(None)

    def _bare(self, why: str) -> None:
        self._fail(f"no connection is left: {why}")

    def _fail(self, why: str) -> None:
        if not self._over.done():
            self._over.set_exception(Failed(why))

    def told(self) -> dict[str, Any]:
        took_s = self._ended - self._began
        mean_s = sum(self._taken) / len(self._taken) if self._taken else 0.0
        found = {"mean_ms": mean_s * 1e3}
        for share in (50, 90, 99):
            found[f"p{share}_ms"] = rates.quantile(self._taken, share / 100) * 1e3
        return {
            "transport": self.client.transport,
            "settings": asdict(self.client.settings),
            "messages": self.came,
            "bytes": self.bytes,
            "connect_s": self._connected_s,
            "seconds": took_s,
            "messages_per_s": self.came / took_s,
            "mbps": self.bytes * 8 / 1e6 / took_s,
            **found,
            **self.association.told(),
            "cpu_s": round(time.process_time() - self._cpu_s, 3),
        }
