# SPDX-License-Identifier: MIT
"""Tells lp, by its control socket, how large an answer is and how urgent, when it is asked for.

A connection is named by the address and port of the loader's end. lp may not have accepted it yet
when the kernel has answered the loader's connect(): then it is named once more. Redirection gives a
connection another port if one to lp has its port already, or had it in the last two minutes. lp
would not know it by its name, so each has a port that none had for long (`FIRST_PORTS`).
"""

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.workloads.web.page import Item, Kind
from experiments.workloads.web.transport import LoadError

# Urgencies of RFC 9218, 0 to 7, 7 the least, as Chromium sends them over HTTP/3: what it calls very
# high is 0, high 1, low 3. It fetches scripts that the HTML names with high priority and images
# with low (those in view are raised later, once there is a layout; our pages have none).
RFC9218: Mapping[Kind, int] = {"html": 0, "style": 0, "font": 0, "script": 1, "image": 3}
LEAST_URGENT = 7
# nginx's heads are of 230 to 260 bytes. TLS adds 22 to a record of 16 KB, and tickets at first. A
# connection of which more is said than comes keeps its place; one of which less is said has its
# last bytes behind all others of its urgency.
HEAD_BYTES = 512
OF_RECORDS = 1 / 256
# A load takes the ports from one of these on. They are below those that the kernel chooses, and the
# first comes again after 88 loads of several seconds.
FIRST_PORTS = range(10_240, 32_768, 256)
NOT_YET = "error: there is no connection "
AGAIN_S = 0.001  # then twice as long each time
MOST_S = 0.2


@dataclass
class Command:
    line: str
    again_s: float = AGAIN_S


@dataclass
class Hints:
    """`told`: how many lp took."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    told: int = 0
    _unanswered: deque[Command] = field(default_factory=deque)
    _open: int = 0  # commands without a last answer
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    async def open(cls, control: Path) -> "Hints":
        try:
            return cls(*await asyncio.open_unix_connection(control))
        except OSError as error:
            raise LoadError(f"{control}: {error.strerror}") from None

    def tell(self, address: tuple[str, int], item: Item) -> None:
        """Does not wait for the answer."""
        host, port = address
        size = HEAD_BYTES + math.ceil(item.size * (1 + OF_RECORDS))
        urgency = LEAST_URGENT - RFC9218[item.kind]  # the higher, the more urgent
        self._open += 1
        self._say(Command(f"hint {host}:{port} size={size} urgency={urgency}"))

    def _say(self, command: Command) -> None:
        self._unanswered.append(command)
        self.writer.write(f"{command.line}\n".encode())

    async def listen(self) -> None:
        """Takes lp's answers until it is cancelled. Raises LoadError if lp refuses one."""
        loop = asyncio.get_running_loop()
        while line := await self.reader.readline():
            command = self._unanswered.popleft()
            answer = line.decode().rstrip()
            if answer.startswith(NOT_YET) and command.again_s < MOST_S:
                loop.call_later(command.again_s, self._say, command)
                command.again_s *= 2
                continue
            if answer != "ok":
                raise LoadError(f"lp: {command.line}: {answer}")
            self.told += 1
            self._open -= 1
            self._changed.set()
        raise LoadError("lp closed its control socket")

    async def all_told(self) -> None:
        while self._open:
            self._changed.clear()
            await self._changed.wait()
