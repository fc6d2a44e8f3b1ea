# SPDX-License-Identifier: MIT
"""A connection to a server by a path, bound to the path's address."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from experiments.workloads.connect import connect
from experiments.workloads.mhttp.body import READ_BYTES, Body
from experiments.workloads.mhttp.failure import WrongAnswer
from experiments.workloads.mhttp.message import Answer, answer
from experiments.workloads.mhttp.sources import Source

_RTT = struct.Struct("=68xI")  # tcpi_rtt in struct tcp_info, in microseconds
LOST = (OSError, EOFError, TimeoutError, WrongAnswer, asyncio.LimitOverrunError)


@dataclass
class Connection:
    """`silence_s`: without a byte for so long it counts as lost."""

    source: Source
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    silence_s: float
    method: str = "GET"  # of what it is asked
    _rtt_s: float = 0.0

    @classmethod
    async def open(
        cls,
        source: Source,
        port: int,
        silence_s: float,
        method: str = "GET",
        *,
        mptcp: bool = False,
    ) -> "Connection":
        local = (source.path.address, 0) if source.path.address else None
        how: dict[str, Any] = {"host": source.address, "port": port, "local_addr": local}
        async with asyncio.timeout(silence_s):
            if mptcp:
                how = {"sock": await _dial_mptcp(source.address, port, local)}
            reader, writer = await asyncio.open_connection(**how, limit=4 * READ_BYTES)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(source, reader, writer, silence_s, method)

    def rtt_s(self) -> float:
        """The kernel's smoothed estimate, at first the handshake's; of one that ended, the last."""
        if not self.writer.is_closing():
            sock = self.writer.get_extra_info("socket")
            told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT.size)
            self._rtt_s = _RTT.unpack(told)[0] / 1e6
        return self._rtt_s

    def send(self, data: bytes) -> None:
        """A request, which is small."""
        self.writer.write(data)

    async def head(self) -> Answer:
        """The next response's; those that say "go on" are passed over."""
        while True:
            async with asyncio.timeout(self.silence_s):
                found = answer(await self.reader.readuntil(b"\r\n\r\n"))
            if found.status >= 200:
                return found
            if found.status == 101:
                raise WrongAnswer("answered 101, which nobody asked for")

    def body(self, found: Answer) -> AsyncIterator[bytes]:
        """All of it. Raises EOFError where it is cut short, and WrongAnswer."""
        return Body(self.reader, found.body(self.method), self.silence_s).pieces()

    def close(self) -> None:
        self.writer.transport.abort()


async def _dial_mptcp(address: str, port: int, local: tuple[str, int] | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
    try:
        sock.setblocking(False)
        if local is not None:
            sock.bind(local)
        await connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def why(error: BaseException) -> str:
    """In a few words."""
    if isinstance(error, TimeoutError):
        return "silent"
    if isinstance(error, asyncio.IncompleteReadError):
        return "the connection ended early"
    if isinstance(error, asyncio.LimitOverrunError):
        return "a head without an end"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error)
