# SPDX-License-Identifier: MIT
"""A message's body as it comes in, however its end is told."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from experiments.workloads.mhttp.failure import WrongAnswer
from experiments.workloads.mhttp.message import Ending

READ_BYTES = 65536


@dataclass(frozen=True)
class Body:
    """`silence_s`: for so long a byte is waited for, then TimeoutError."""

    reader: asyncio.StreamReader
    ending: Ending
    silence_s: float

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it. Raises EOFError where it is cut short, and WrongAnswer."""
        if self.ending == "chunked":
            async for data in self._chunked():
                yield data
        elif self.ending == "close":
            while data := await self._read(READ_BYTES):
                yield data
        else:
            async for data in self._exactly(self.ending):
                yield data

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            data = await self._read(min(size, READ_BYTES))
            if not data:
                raise EOFError("the connection ended early")
            size -= len(data)
            yield data

    async def _chunked(self) -> AsyncIterator[bytes]:
        while size := await self._size():
            async for data in self._exactly(size):
                yield data
            if await self._line():
                raise WrongAnswer("a chunk of the transfer coding does not end where it should")
        while await self._line():
            pass  # fields behind the body

    async def _size(self) -> int:
        line = await self._line()
        match = re.match(r"([0-9a-fA-F]{1,15})\s*(;|$)", line)
        if not match:
            raise WrongAnswer(f"a chunk of the transfer coding begins with {line[:20]!r}")
        return int(match[1], 16)

    async def _read(self, most: int) -> bytes:
        async with asyncio.timeout(self.silence_s):
            return await self.reader.read(most)

    async def _line(self) -> str:
        async with asyncio.timeout(self.silence_s):
            data = await self.reader.readuntil(b"\r\n")
        return data[:-2].decode("latin-1")
