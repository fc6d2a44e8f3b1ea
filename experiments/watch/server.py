# SPDX-License-Identifier: MIT
"""The page and its events by HTTP, on loopback, by the standard library alone."""

import errno
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from experiments.watch import door
from experiments.watch.link import Links
from experiments.watch.stream import Stream
from experiments.watch.watched import Watched
from topologies.links import LinkMismatch
from topologies.parameter import ParameterError

PAGE = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {f"/{it.name}": it for it in PAGE.iterdir() if it.suffix in KINDS}
LOOKING_MAX = 16  # pages at a time, each of which has a thread
BODY_MAX = 1000
_DIGITS = re.compile(r"[0-9]{1,9}")  # int() and isdigit() know others, and not the same
LAST_S = 2.0  # for the pages that look when the server ends
WAITS_S = 30.0  # for a browser that takes nothing, or does not end its request
OF_PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
OF_PICTURES = "default-src 'none'; style-src 'unsafe-inline'"  # their own styles, no scripts
PICTURE = "image/svg+xml"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PortTaken(RuntimeError):
    """One line that says who cannot listen where."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, place: tuple[str, int], links: Links | None = None) -> None:
        """It listens, and has nothing to show until `watched` is set."""
        self.watched: Watched | None = None
        self.links = links
        self.looking = threading.Semaphore(LOOKING_MAX)
        self.ending = threading.Event()
        if ":" in place[0]:
            self.address_family = socket.AF_INET6
        try:
            super().__init__(place, Asked)
        except OSError as why:
            told = "is in use" if why.errno == errno.EADDRINUSE else str(why.strerror)
            raise PortTaken(
                f"port {place[1]} of {place[0]} {told}: --port names another one"
            ) from None

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/"

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the block runs, beside it."""
        thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.ending.set()
            self._seen_off()
            self.shutdown()
            thread.join()
            self.server_close()

    def _seen_off(self) -> None:
        """Until those who look have been told the last, or do not take it."""
        end = time.monotonic() + LAST_S
        for _ in range(LOOKING_MAX):
            if not self.looking.acquire(timeout=max(0.0, end - time.monotonic())):
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Asked(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = WAITS_S
    server_version, sys_version = "tm3lab", ""
    routes: ClassVar[dict[str, str]] = {"/": "/index.html"}

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads who asked for what."""

    def do_GET(self) -> None:
        if self._refused(changes=False):
            return
        asked = urlsplit(self.path)
        path = self.routes.get(asked.path, asked.path)
        if path in FILES:
            found = FILES[path]
            self._answer(200, found.read_bytes(), KINDS[found.suffix])
        elif path == "/events":
            self._events(parse_qs(asked.query).get("run", [""])[0])
        elif path.startswith("/plots/"):
            self._plot(unquote(path.removeprefix("/plots/")))
        else:
            self._say(404, "there is no such page")

    def do_POST(self) -> None:
        if self._refused(changes=True):
            return
        links = self.server.links
        if urlsplit(self.path).path != "/link" or links is None:
            self._say(404, "there is nothing to change here: that is for tm3lab up --watch")
            return
        length = self.headers.get("Content-Length", "")
        if not _DIGITS.fullmatch(length) or int(length) > BODY_MAX:
            self._say(400, f"a change has up to {BODY_MAX} bytes")
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            told = links.change(asked["mile"], asked["parameter"], asked["value"])
        except (ParameterError, LinkMismatch) as why:
            self._say(400, str(why))
        except (ValueError, KeyError, TypeError):
            self._say(400, 'a change is {"mile": NAME, "parameter": NAME, "value": NUMBER}')
        else:
            self._answer(200, json.dumps(told).encode(), "application/json")

    def _refused(self, *, changes: bool) -> bool:
        why = door.refuses(self.headers, self.server.address, changes=changes)
        if why:
            self.close_connection = True  # a body that nobody reads is no next request
            self._say(403, why)
        return why is not None

    def _plot(self, name: str) -> None:
        watched = self.server.watched
        picture = watched.plot(name) if watched else None
        if picture is None:
            self._say(404, "there is no such plot")
        else:
            self._answer(200, picture, PICTURE)

    def _events(self, ident: str) -> None:
        watched = self.server.watched
        run = watched.run(ident) if watched and ident else None
        if watched is None or (ident and run is None):
            self._say(404, "no statistics of this run are here" if ident else "nothing runs yet")
        elif self.server.ending.is_set():
            self.close_connection = True  # no answer: the page goes on asking
        elif not self.server.looking.acquire(blocking=False):
            self._say(503, f"{LOOKING_MAX} pages look already")
        else:
            try:
                self._stream(Stream(watched, self.server.links, run, self._since()))
            finally:
                self.server.looking.release()

    def _since(self) -> str:
        return self.headers.get("Last-Event-ID", "")

    def _stream(self, stream: Stream) -> None:
        watched = self.server.watched
        self.close_connection = True
        self._head(200, "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: 500\n\n")

        def ended() -> bool:
            return self.server.ending.is_set() or self.server.watched is not watched

        for each in stream.events(ended):
            if each:
                self.wfile.write(each)

    def _say(self, status: int, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), "text/plain")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: int, kind: str) -> None:
        policy = OF_PICTURES if kind == PICTURE else OF_PAGES
        self.send_response(status)
        self.send_header("Content-Type", kind if kind == PICTURE else f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
