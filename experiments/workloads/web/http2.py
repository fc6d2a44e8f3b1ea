# SPDX-License-Identifier: MIT
"""HTTP/2 as browsers do it: one connection a host, all requests at once, wide windows.

Or one connection for all hosts, as through the SPDY proxy of the paper: browsers do that too where
hosts have one address and one certificate.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from experiments.workloads.web.page import Item, Kind
from experiments.workloads.web.transport import (
    READ_BYTES,
    Connection,
    Dialling,
    LoadError,
    Reply,
    Transport,
    headers,
)

# Chrome's: what the server may send before it hears from us, of one stream and of all.
STREAM_WINDOW = 6 * 1024 * 1024
WINDOW = 15 * 1024 * 1024
DEFAULT_WINDOW = 65535
WEIGHT: Mapping[Kind, int] = {"html": 256, "style": 256, "script": 220, "font": 220, "image": 147}
Setting = h2.settings.SettingCodes


@dataclass
class Stream:
    reply: Reply
    done: "asyncio.Future[Reply]"
    status: str = ""


@dataclass
class Session:
    """One connection and its streams."""

    account: Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h2.connection.H2Connection
    streams: dict[int, Stream] = field(default_factory=dict)
    room: asyncio.Condition = field(default_factory=asyncio.Condition)
    error: LoadError | None = None


class Http2(Transport):
    """The page's connections by HTTP/2."""

    alpn = "h2"

    def __init__(self, dialling: Dialling, page: str, one: bool) -> None:
        super().__init__(dialling)
        self.page = page
        self.one = one  # connection for all hosts
        self.sessions: dict[str, asyncio.Task[Session]] = {}
        self.readers: list[asyncio.Task[None]] = []

    async def fetch(self, host: str, item: Item) -> Reply:
        key = "" if self.one else host
        if key not in self.sessions:
            self.sessions[key] = asyncio.create_task(self._open(host))
        session = await self.sessions[key]
        async with session.room:
            await session.room.wait_for(lambda: session.error or _has_room(session))
        if session.error:
            raise session.error
        return await self._ask(session, host, item)

    async def _open(self, host: str) -> Session:
        account, reader, writer = await self.dial(host)
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        state = h2.connection.H2Connection(config)
        # In place before the first frame: update() would wait for the server's word.
        state.local_settings = h2.settings.Settings(
            client=True,
            initial_values={Setting.ENABLE_PUSH: 0, Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW},
        )
        state.initiate_connection()
        state.increment_flow_control_window(WINDOW - DEFAULT_WINDOW)
        writer.write(state.data_to_send())
        session = Session(account, reader, writer, state)
        self.readers.append(asyncio.create_task(self._read(session)))
        return session

    async def _ask(self, session: Session, host: str, item: Item) -> Reply:
        loop = asyncio.get_running_loop()
        number = session.state.get_next_available_stream_id()
        stream = Stream(
            Reply(item, loop.time(), connection=session.account.number), loop.create_future()
        )
        session.streams[number] = stream
        session.account.requests += 1
        scheme = "https" if self.context else "http"
        request = [
            (":method", "GET"),
            (":scheme", scheme),
            (":authority", host),
            (":path", item.path),
            *headers(item, self.page),
        ]
        session.state.send_headers(
            number, request, end_stream=True, priority_weight=WEIGHT[item.kind]
        )
        session.writer.write(session.state.data_to_send())
        return await stream.done

    async def _read(self, session: Session) -> None:
        """Takes what comes until the connection ends; what is unfinished then has failed."""
        why = "the connection ended"
        try:
            while data := await session.reader.read(READ_BYTES):
                for event in session.state.receive_data(data):
                    self._take(session, event)
                session.writer.write(session.state.data_to_send())
                async with session.room:
                    session.room.notify_all()
        except (OSError, h2.exceptions.ProtocolError, LoadError) as error:
            why = str(error) or type(error).__name__
        session.error = LoadError(f"{session.account.host}: {why}")
        for stream in session.streams.values():
            if not stream.done.done():
                stream.done.set_exception(session.error)
        async with session.room:
            session.room.notify_all()

    def _take(self, session: Session, event: h2.events.Event) -> None:
        now = asyncio.get_running_loop().time()
        if isinstance(event, h2.events.ResponseReceived):
            stream = session.streams[event.stream_id]
            stream.reply.first_byte = stream.reply.last_byte = now
            stream.status = dict(event.headers)[":status"]
        elif isinstance(event, h2.events.DataReceived):
            session.streams[event.stream_id].reply.take(event.data, now)
            session.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream = session.streams.pop(event.stream_id)
            where = f"{session.account.host}{stream.reply.item.path}"
            if stream.status == "200":
                stream.done.set_result(stream.reply)
            else:
                stream.done.set_exception(LoadError(f"{where}: answered {stream.status}"))
        elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
            raise LoadError(f"the server gave up: {event}")

    async def close(self) -> None:
        for opening in self.sessions.values():
            if opening.done() and not opening.cancelled() and not opening.exception():
                opening.result().writer.close()
        for task in self.readers:
            task.cancel()
        await asyncio.gather(*self.readers, return_exceptions=True)


def _has_room(session: Session) -> bool:
    most = session.state.remote_settings.max_concurrent_streams
    return session.state.open_outbound_streams < most
