# SPDX-License-Identifier: MIT
"""Where an object goes: a file, which has its name only once it is whole, or standard output."""

import asyncio
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import Protocol

from experiments.workloads.mhttp.failure import BadInput, Failed
from experiments.workloads.mhttp.message import Answer


class Sink(Protocol):
    """`begin` once, `write` in order, then `end`, or `drop` if it did not come to that."""

    async def begin(self, answer: Answer) -> None: ...

    async def write(self, data: bytes) -> None: ...

    async def end(self) -> None: ...

    def drop(self) -> None: ...


def refuse(answer: Answer) -> None:
    """A program that wants the object has no use for another answer."""
    if answer.status != 200:
        to = f", see {answer.get('location')}" if answer.get("location") else ""
        raise Failed(f"answered {answer.said}{to}")


class File:
    """Beside its final name until the end.

    By a name drawn anew: a process that was killed leaves its file, and its number comes again.
    """

    def __init__(self, final: Path) -> None:
        self._final = final
        self._part = final.with_name(f".{final.name}.{secrets.token_hex(8)}.part")
        try:
            if final.is_dir():
                raise IsADirectoryError(None, "is a folder")
            self._file = self._part.open("xb")
        except (OSError, ValueError) as why:
            raise BadInput(f"{final}: {getattr(why, 'strerror', None) or why}") from None

    async def begin(self, answer: Answer) -> None:
        refuse(answer)

    async def write(self, data: bytes) -> None:
        self._file.write(data)

    async def end(self) -> None:
        self._file.close()
        self._part.replace(self._final)

    def drop(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


class Output:
    """Standard output. While its reader is slow, timers and other connections go on."""

    async def begin(self, answer: Answer) -> None:
        refuse(answer)
        self._writer: asyncio.StreamWriter | None = None
        if not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            loop = asyncio.get_running_loop()
            transport, flow = await loop.connect_write_pipe(
                asyncio.streams.FlowControlMixin, sys.stdout.buffer
            )
            transport.set_write_buffer_limits(0)
            self._writer = asyncio.StreamWriter(transport, flow, None, loop)

    async def write(self, data: bytes) -> None:
        if self._writer is None:
            sys.stdout.buffer.write(data)
        else:
            self._writer.write(data)
            await self._writer.drain()

    async def end(self) -> None:
        """What was written to a pipe is gone by then."""

    def drop(self) -> None:
        """What is written is written."""
