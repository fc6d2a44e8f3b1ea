# SPDX-License-Identifier: MIT
"""The client of HTTP/3: `python -m experiments.workloads.http3_client FETCHES LINE`

FETCHES is a JSON object, LINE the folder of its start line. It writes how long each object took,
how long its connection took of that, and how many datagrams were sent. The first failure ends it.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent

from experiments.workloads import line
from experiments.workloads.association import Association, Entry
from experiments.workloads.exchange import CutShort
from experiments.workloads.http3_server import configured
from experiments.workloads.pattern import check, start_of


class Refused(ConnectionError):
    """The server has no such object."""


@dataclass
class Object:
    """What is asked for, and how much of it came."""

    start: int
    size: int
    came: int = 0

    def take(self, data: bytes) -> None:
        """Raises WrongByte."""
        check(self.start, self.came, data)
        self.came += len(data)


class Outlet:
    """What aioquic sends by: an association's socket. What is sent after the end is dropped."""

    def __init__(self, transport: asyncio.DatagramTransport, association: Association) -> None:
        self._transport, self._association = transport, association
        self.sent = 0

    def sendto(self, data: bytes, _: Any) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(self._association.packed(data))
            self.sent += 1

    def close(self) -> None:
        self._transport.close()


class Client(QuicConnectionProtocol):
    """One connection, one object. `done` has when its last byte came, or what went wrong."""

    def __init__(self, quic: QuicConnection, association: Association, of: Object) -> None:
        super().__init__(quic)
        self._association, self._object = association, of
        self._server = ("", 0)
        self._http = H3Connection(quic)
        self.done: asyncio.Future[float] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.outlet = Outlet(cast(asyncio.DatagramTransport, transport), self._association)
        super().connection_made(cast(asyncio.BaseTransport, self.outlet))

    def datagram_received(self, data: bytes | str, _: Any) -> None:
        """Whoever the socket heard it from, to QUIC it is the server."""
        try:
            super().datagram_received(self._association.payload(bytes(data)), self._server)
        except Exception as error:
            self._fail(error)

    def error_received(self, error: Exception) -> None:
        """Of ICMP: nobody listens there."""
        self._fail(error)

    def open(self, server: tuple[str, int]) -> None:
        self._server = server
        self.connect(server)

    def ask(self, authority: str) -> None:
        it = self._object
        request = {
            ":method": "GET",
            ":scheme": "https",
            ":authority": authority,
            ":path": f"/{it.start}/{it.size}",
        }
        stream = self._quic.get_next_available_stream_id()
        headers = [(name.encode(), value.encode()) for name, value in request.items()]
        self._http.send_headers(stream, headers, end_stream=True)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self._fail(CutShort(f"the connection ended: {event.reason_phrase or event.error_code}"))
        for told in self._http.handle_event(event):
            self._take(told)

    def _take(self, told: H3Event) -> None:
        if isinstance(told, HeadersReceived):
            status = dict(told.headers)[b":status"].decode()
            if status != "200":
                raise Refused(f"answered {status}")
        if isinstance(told, DataReceived):
            self._object.take(told.data)
        if isinstance(told, DataReceived | HeadersReceived) and told.stream_ended:
            self._end()

    def _end(self) -> None:
        it = self._object
        if it.came != it.size:
            raise CutShort(f"an object ended after {it.came} of {it.size} bytes")
        if not self.done.done():
            self.done.set_result(time.monotonic())

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(frozen=True, kw_only=True)
class Fetches:
    """An object of `size` bytes every so often for so long, each on a connection of its own: by
    SOCKS5 from an association of its own, whose making counts. The next one waits for the one
    before. `name` is on the certificate, which is `authority`."""

    address: str
    port: int
    name: str
    authority: str
    cc: str = "cubic"
    entry: Entry = "none"
    seed: int = 1
    size: int = 20_000
    every_s: float = 0.5
    seconds: float = 1.0
    limit_s: float = 30.0

    async def run(self) -> dict[str, Any]:
        taken: list[float] = []
        connected: list[float] = []
        sent = 0
        began = due = time.monotonic()
        while due < began + self.seconds:
            await asyncio.sleep(due - time.monotonic())
            it = Object(start_of(self.seed, len(taken)), self.size)
            try:
                async with asyncio.timeout(began + self.limit_s - time.monotonic()):
                    connect_s, took_s, datagrams = await self._fetch(it)
            except TimeoutError:
                raise CutShort(f"an object had {it.came} of {it.size} bytes in time") from None
            connected.append(connect_s)
            taken.append(took_s)
            sent += datagrams
            due = max(due + self.every_s, time.monotonic())
        return {"seconds": taken, "connect_s": connected, "sent": sent}

    async def _fetch(self, it: Object) -> tuple[float, float, int]:
        """How long the handshake took, and all of it; how many datagrams were sent."""
        began = time.monotonic()
        to = (self.address, self.port)
        quic = QuicConnection(configuration=self._configuration())
        with Association(to, entry=self.entry, seconds=self.limit_s) as association:
            loop = asyncio.get_running_loop()
            transport, client = await loop.create_datagram_endpoint(
                lambda: Client(quic, association, it), sock=association.sock
            )
            try:
                client.open(to)
                connecting = asyncio.ensure_future(client.wait_connected())
                await asyncio.wait({connecting, client.done}, return_when="FIRST_COMPLETED")
                connecting.cancel()
                if client.done.done():
                    client.done.result()
                connected = time.monotonic()
                client.ask(self.name)
                took_s = await client.done - began
            finally:
                client.close()
                transport.close()
            return connected - began, took_s, client.outlet.sent

    def _configuration(self) -> Any:
        made = configured(True, self.cc)
        made.server_name = self.name
        made.load_verify_locations(self.authority)
        return made


def main() -> None:
    described, folder = sys.argv[1:]
    fetches = Fetches(**json.loads(described))
    line.wait(Path(folder))
    try:
        found = asyncio.run(fetches.run())
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
    line.done(Path(folder))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
