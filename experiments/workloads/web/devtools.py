# SPDX-License-Identifier: MIT
"""A real browser at the other end of two pipes: Chromium's DevTools protocol without a network.

Chromium reads commands from its descriptor 3 and writes answers and events to 4, JSON between
zero bytes. Nothing of it is on the wire that is measured.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Listener = Callable[[Event], None]
LIMIT = 256 * 1024 * 1024  # of one message: a body is one
HIGH = 10  # descriptors below are what a child is given


class BrowserError(RuntimeError):
    """The browser did not do what it was told."""


class DevTools:
    """Commands and their answers, events and who listens."""

    def __init__(self, reader: asyncio.StreamReader, sink: int) -> None:
        self._reader = reader
        self._sink = sink
        self._number = 0
        self._answers: dict[int, asyncio.Future[Event]] = {}
        self._listeners: dict[str, Listener] = {}
        self._task = asyncio.create_task(self._read())

    def on(self, method: str, listener: Listener) -> None:
        self._listeners[method] = listener

    async def ask(self, method: str, session: str | None = None, **params: Any) -> Event:
        """One command; its result."""
        if self._task.done():
            raise BrowserError(f"{method}: the browser has ended")
        self._number += 1
        message: Event = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = future
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._sink, data) :]
        answer = await future
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    self._answers.pop(message["id"]).set_result(message)
                elif listener := self._listeners.get(message["method"]):
                    listener(message["params"])
        for future in self._answers.values():
            future.set_exception(BrowserError("the browser has ended"))
        self._answers.clear()

    def stop(self) -> None:
        self._task.cancel()


def _high(descriptor: int) -> int:
    """The same, out of the way of what a child is given."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(descriptor)
    return moved


@asynccontextmanager
async def browser(
    argv: Sequence[str | Path], environment: dict[str, str], seconds: float
) -> AsyncIterator[DevTools]:
    """The browser while the block runs; it and all its processes end with it."""
    commands, sink = map(_high, os.pipe())
    source, events = map(_high, os.pipe())

    def descriptors() -> None:
        os.dup2(commands, 3)
        os.dup2(events, 4)

    process = subprocess.Popen(
        [str(word) for word in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None,
        env=environment,
        preexec_fn=descriptors,
        close_fds=False,  # all of ours but 3 and 4 close by themselves
        start_new_session=True,
    )
    os.close(commands)
    os.close(events)
    reader = asyncio.StreamReader(limit=LIMIT)
    loop = asyncio.get_running_loop()
    with os.fdopen(source, "rb") as incoming:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), incoming
        )
        tools = DevTools(reader, sink)
        try:
            yield tools
            with contextlib.suppress(BrowserError):
                await asyncio.wait_for(tools.ask("Browser.close"), seconds)
            await asyncio.to_thread(process.wait, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):  # its own session: only what it made
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            tools.stop()
            transport.close()
            os.close(sink)
