# SPDX-License-Identifier: MIT
"""One object: by ranges where it can be had so, else by one plain GET.

The first request is for the range of the first chunk. Its answer tells the length and whether the
server serves ranges; what is no 206 is handed on as it is. The object is asked for by a GET without
Range where a 206 is not of the bytes that were asked for or does not tell the length, where the
range is refused (416: the object is empty), and where there is one source alone (unless ranges are
wanted all the same).
"""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from experiments.workloads.mhttp.account import Account
from experiments.workloads.mhttp.asking import Asking
from experiments.workloads.mhttp.connection import LOST, Connection, why
from experiments.workloads.mhttp.failure import Failed
from experiments.workloads.mhttp.message import Answer, Identity, told_length, whole
from experiments.workloads.mhttp.plan import Range
from experiments.workloads.mhttp.ranges import Ranges
from experiments.workloads.mhttp.scheduler import SCHEDULERS
from experiments.workloads.mhttp.sink import Sink
from experiments.workloads.mhttp.transfer import MOST_HELD, Transfer


@dataclass(frozen=True)
class Settings:
    """How objects are asked for."""

    scheduler: str = "T"
    chunk_bytes: int = 1 << 20
    connections: int = 2
    silence_s: float = 5.0
    most_held: int = MOST_HELD
    always: bool = False  # by ranges also over one connection
    mptcp: bool = False  # connections speak it, where the server does

    def account(self) -> Account:
        return Account(self.scheduler, self.chunk_bytes)


@dataclass
class Download:
    """From `asking`'s sources into `sink`."""

    asking: Asking
    settings: Settings
    sink: Sink

    async def run(self) -> None:
        """Raises Failed; what the sink has is then to be dropped."""
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        account = self.asking.account
        account.cpu_before_s = time.process_time()
        account.plain = None if self.settings.always else self._too_few()
        if account.plain or not await self._by_ranges():
            await self._hand_on(*await self.asking.first(None))
        await self._written(self.sink.end())
        account.seconds = loop.time() - self._began

    def _too_few(self) -> str | None:
        if len(self.asking.sources.all) < 2:
            return "one source"
        return "one connection" if self.settings.connections < 2 else None

    async def _by_ranges(self) -> bool:
        """Whether that was it; else a plain GET is due."""
        first = Range(0, self.settings.chunk_bytes)
        connection, answer = await self.asking.first(first)
        account = self.asking.account
        length = told_length(answer, first)
        if isinstance(length, int):
            account.length = length
            await self._ranges(connection, answer, length)
            return True
        account.plain = length
        if answer.status not in (206, 416):
            await self._hand_on(connection, answer)
            return True
        self.asking.done(connection)
        return False

    async def _ranges(self, connection: Connection, answer: Answer, length: int) -> None:
        settings = self.settings
        transfer = Transfer(
            length, settings.chunk_bytes, SCHEDULERS[settings.scheduler], settings.most_held
        )
        identity = Identity.of(answer, length)
        ranges = Ranges(self.asking, transfer, identity, settings.connections, self._write)
        try:
            await self._written(self.sink.begin(whole(answer, length)))
        except BaseException:
            connection.close()
            raise
        await ranges.run(connection, answer)

    async def _hand_on(self, connection: Connection, answer: Answer) -> None:
        """The answer's own body. Once the sink has some of it, there is no second try."""
        leg = self.asking.leg(connection.source)
        try:
            await self._written(self.sink.begin(answer))
            async for data in connection.body(answer):
                leg.bytes += len(data)
                await self._write([data])
        except LOST as error:
            told = f"{connection.source}: {why(error)} after {leg.bytes} bytes"
            raise Failed(told) from None
        finally:
            self.asking.done(connection)
        self.asking.account.length = leg.bytes

    async def _write(self, pieces: list[bytes]) -> None:
        account = self.asking.account
        if account.first_byte_s is None:
            account.first_byte_s = asyncio.get_running_loop().time() - self._began
        for data in pieces:
            await self._written(self.sink.write(data))

    async def _written(self, work: Awaitable[None]) -> None:
        """A sink that takes no more ends the download, not a connection."""
        try:
            await work
        except OSError as error:
            raise Failed(f"writing: {error.strerror or error}") from None
