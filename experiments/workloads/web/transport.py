# SPDX-License-Identifier: MIT
"""What a loader asks of a protocol: objects, and an account of the connections it took."""

import asyncio
import hashlib
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.workloads.connect import connect
from experiments.workloads.exchange import IPPROTO_MPTCP, set_congestion_control
from experiments.workloads.web.page import Item, Kind

USER_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
ACCEPT: Mapping[Kind, str] = {
    "html": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "style": "text/css,*/*;q=0.1",
    "script": "*/*",
    "font": "*/*",
    "image": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
}
# Which of several objects that wait is asked for first; of one kind, the one that was named first.
URGENCY: Mapping[Kind, int] = {"html": 0, "style": 1, "script": 2, "font": 2, "image": 3}
READ_BYTES = 65536


class LoadError(RuntimeError):
    """The server or the bytes are not what they should be."""


@dataclass
class Reply:
    """An object's body as it comes in; times are the loop's clock."""

    item: Item
    asked: float = 0.0
    first_byte: float = 0.0
    last_byte: float = 0.0
    connection: int = -1
    size: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def take(self, data: bytes, now: float) -> None:
        self.size += len(data)
        self.digest.update(data)
        self.last_byte = now


@dataclass
class Connection:
    """The account of one connection."""

    number: int
    host: str
    began: float  # connect() was called
    ready: float = 0.0  # connected; with TLS, negotiated
    local_port: int = 0
    requests: int = 0


@dataclass(frozen=True)
class Dialling:
    """How connections are made."""

    addresses: Mapping[str, str]  # of the hosts
    port: int
    cc: str | None  # of our own end
    authority: str | None  # file of the certificate; None: cleartext
    mptcp: bool = False
    first_port: int | None = None  # of our end, one a connection from here on; None: any

    def context(self, protocol: str) -> ssl.SSLContext | None:
        if self.authority is None:
            return None
        context = ssl.create_default_context(cafile=self.authority)
        context.set_alpn_protocols([protocol])
        return context


class Transport(ABC):
    """A protocol over its connections."""

    alpn: str

    def __init__(self, dialling: Dialling) -> None:
        self.dialling = dialling
        self.context = dialling.context(self.alpn)
        self.connections: list[Connection] = []

    @abstractmethod
    async def fetch(self, host: str, item: Item) -> Reply:
        """The whole object."""

    @abstractmethod
    async def close(self) -> None:
        """Ends every connection."""

    async def dial(
        self, host: str
    ) -> tuple[Connection, asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection to a host, ready for requests."""
        loop = asyncio.get_running_loop()
        protocol = IPPROTO_MPTCP if self.dialling.mptcp else socket.IPPROTO_TCP
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.dialling.cc:
            set_congestion_control(sock, self.dialling.cc)
        account = Connection(len(self.connections), host, loop.time())
        self.connections.append(account)
        try:
            if self.dialling.first_port is not None:
                sock.bind(("", self.dialling.first_port + account.number))
            await connect(sock, (self.dialling.addresses[host], self.dialling.port))
            reader, writer = await asyncio.open_connection(
                sock=sock,
                ssl=self.context,
                server_hostname=host if self.context else None,
                limit=4 * READ_BYTES,
            )
        except OSError as error:
            sock.close()
            raise LoadError(f"{host}: {error}") from None
        chosen = writer.get_extra_info("ssl_object")
        if chosen is not None and chosen.selected_alpn_protocol() != self.alpn:
            raise LoadError(f"{host}: speaks {chosen.selected_alpn_protocol()}, not {self.alpn}")
        account.ready = loop.time()
        account.local_port = sock.getsockname()[1]
        return account, reader, writer


def headers(item: Item, page: str) -> list[tuple[str, str]]:
    """What a browser sends beside the request; its size matters on a thin uplink."""
    found = [
        ("user-agent", USER_AGENT),
        ("accept", ACCEPT[item.kind]),
        ("accept-language", "en-US,en;q=0.9"),
    ]
    if item.after is not None:
        found.append(("referer", page))
    return found
