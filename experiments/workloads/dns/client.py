# SPDX-License-Identifier: MIT
"""The client: queries by the clock, whether or not those before have their answers."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.workloads.dns import transports, unbound, zone
from experiments.workloads.dns.asking import Asking
from experiments.workloads.dns.failure import BadInput, Unanswered
from experiments.workloads.dns.kinds import KINDS, Kind
from experiments.workloads.dns.stubs import STUBS


@dataclass(frozen=True, kw_only=True)
class Client:
    """`queries` in all, `burst` of them back to back every `every_s`.

    `kind`: udp, as `stub` asks again; tcp and tls, all on one connection that is there before the
    first; fresh, each on a TCP connection of its own. `authority`: the certificate that a server
    by TLS has to show. `limit_s`: from the last query on, for all answers that connections owe.
    """

    address: str
    port: int = 0  # 0: that of its kind
    kind: Kind = "udp"
    stub: str = "fixed"
    queries: int = 1000
    every_s: float = 0.05
    burst: int = 1
    authority: str | None = None
    limit_s: float = 60.0

    def __post_init__(self) -> None:
        """Raises BadInput."""
        if self.kind not in KINDS:
            raise BadInput(f"kind: {self.kind!r} is none of {', '.join(KINDS)}")
        if self.stub not in STUBS:
            raise BadInput(f"stub: {self.stub!r} is none of {', '.join(STUBS)}")
        if not 1 <= self.queries <= zone.MOST:
            raise BadInput(f"queries: {self.queries} is not from 1 to {zone.MOST}: ids tell")
        if not 1 <= self.burst <= self.queries:
            raise BadInput(f"burst: {self.burst} is not from 1 to the {self.queries} queries")
        if not 0 < self.every_s <= 3600:
            raise BadInput(f"every: {self.every_s:g} s is not above 0 and up to an hour")
        if not 0 <= self.port <= 65_535:
            raise BadInput(f"port: {self.port} is not from 1 to 65535")
        if (self.kind == "tls") != (self.authority is not None):
            raise BadInput("authority: a certificate goes with tls, and tls with a certificate")
        if self.authority and not Path(self.authority).is_file():
            raise BadInput(f"authority: there is no file {self.authority}")

    async def run(self, waits: Sequence[float] | None = None) -> dict[str, Any]:
        """`waits`: of UDP, others than the stub's. Raises WrongAnswer, Unanswered, OSError."""
        asking = Asking(self.queries)
        async with self._transport(asking, waits or STUBS[self.stub].waits()) as transport:
            await self._ask_all(asking, transport)
        return {"kind": self.kind, "stub": self.stub if self.kind == "udp" else None} | (
            asking.found()
        )

    async def _ask_all(self, asking: Asking, transport: transports.Transport) -> None:
        began = time.monotonic()
        asks: set[asyncio.Task[None]] = set()
        for number in range(self.queries):
            due = began + number // self.burst * self.every_s
            if number % self.burst == 0:
                await _wait(max(0.0, due - time.monotonic()), transport)
            asks.add(asyncio.create_task(transport.ask(number)))
        limit = None if self.kind == "udp" else self.limit_s  # stubs give up by themselves
        done = asyncio.gather(*asks)
        await asyncio.wait((done, transport.failed), timeout=limit, return_when="FIRST_COMPLETED")
        if transport.failed.done():
            done.cancel()
            transport.failed.result()
        if not done.done():
            left = asking.left()
            done.cancel()
            raise Unanswered(f"{left} of {self.queries} queries have no answer in time")
        done.result()

    @asynccontextmanager
    async def _transport(
        self, asking: Asking, waits: Sequence[float]
    ) -> AsyncIterator[transports.Transport]:
        port = self.port or (unbound.TLS_PORT if self.kind == "tls" else unbound.PORT)
        server = transports.Server(self.address, port, self._context(), unbound.NAME)
        if self.kind == "udp":
            async with transports.datagrams(server, asking, waits) as datagrams:
                yield datagrams
        elif self.kind == "fresh":
            yield transports.Fresh(server, asking)
        else:
            async with transports.stream(server, asking) as stream:
                yield stream

    def _context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.authority) if self.authority else None


async def _wait(seconds: float, transport: transports.Transport) -> None:
    """Until then, or until something fails, which is raised."""
    await asyncio.wait((transport.failed,), timeout=seconds)
    if transport.failed.done():
        transport.failed.result()
