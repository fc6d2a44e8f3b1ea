# SPDX-License-Identifier: MIT
"""The server of HTTP/3, http3_server ADDRESS CERTIFICATE KEY CC:PORT...

The path `/START/SIZE` is an object of SIZE bytes of the pattern, from START on. Each port has a
congestion control of its own. It says so when it is ready.
"""

import asyncio
import sys
from typing import Any

from aioquic.asyncio import serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

from experiments.workloads.pattern import CHUNK, piece

LARGEST_DATAGRAM = 1350  # of QUIC, as Chrome's: with SOCKS5's header, too, it fits every path
IDLE_S = 30.0


def configured(is_client: bool, cc: str) -> QuicConfiguration:
    """What both ends have in common."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=H3_ALPN,
        congestion_control_algorithm=cc,
        max_datagram_size=LARGEST_DATAGRAM,
        idle_timeout=IDLE_S,
    )


def asked_for(path: str) -> tuple[int, int]:
    """Start and size of an object. Raises ValueError."""
    _, start, size = path.split("/")
    return int(start), int(size)


class Server(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is None:
            return
        for told in self._http.handle_event(event):
            if isinstance(told, HeadersReceived):
                self._answer(self._http, told)
        self.transmit()

    def _answer(self, http: H3Connection, asked: HeadersReceived) -> None:
        try:
            start, size = asked_for(dict(asked.headers)[b":path"].decode())
        except ValueError:
            http.send_headers(asked.stream_id, [(b":status", b"404")], end_stream=True)
            return
        told = [(b":status", b"200"), (b"content-length", str(size).encode())]
        http.send_headers(asked.stream_id, told, end_stream=not size)
        for position in range(0, size, CHUNK):
            data = piece(start, position, size - position)
            http.send_data(asked.stream_id, data, end_stream=position + CHUNK >= size)


async def listen(address: str, certificate: str, key: str, ports: list[str]) -> None:
    for word in ports:
        cc, _, port = word.partition(":")
        configuration = configured(False, cc)
        configuration.load_cert_chain(certificate, key)
        await serve(address, int(port), configuration=configuration, create_protocol=Server)
    print(f"http3: ready on {address} ports {' '.join(ports)}", file=sys.stderr, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    address, certificate, key, *ports = sys.argv[1:]
    asyncio.run(listen(address, certificate, key, ports))


if __name__ == "__main__":
    main()
