# SPDX-License-Identifier: MIT
"""The server of `tm3lab watch`, and who looks at it."""

import http.client
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.watch.server import Server
from experiments.watch.watched import STATS, Watched

ANY = ("127.0.0.1", 0)
WAITS_S = 20.0


class Telling(Server):
    """Who is reset by it is told why."""

    wrong = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.wrong += f" {sys.exc_info()[1]!r}"
        super().handle_error(request, client_address)


@contextmanager
def serving(folder: Path, place: tuple[str, int] = ANY) -> Iterator[Server]:
    with Telling(place) as server:
        server.watched = Watched(folder)
        with server.running():
            try:
                yield server
            except ConnectionError as why:
                raise AssertionError(f"{why}; in the server:{server.wrong or ' nothing'}") from why


def asked(
    server: Server, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, told)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def read(name: str, data: list[str]) -> Any:
    if name in STATS:
        return [json.loads(line) for line in data]
    return json.loads("\n".join(data))


class Events:
    """Of one who looks; `since` as a browser says it that comes again."""

    def __init__(self, server: Server, path: str = "/events", since: str = "") -> None:
        self._connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
        self._connection.request("GET", path, headers={"Last-Event-ID": since})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.last = since

    def next(self) -> tuple[str, Any]:
        name, data = "", list[str]()
        end = time.monotonic() + WAITS_S
        while True:
            assert time.monotonic() < end, "no event but that the server is still there"
            line = self._answer.readline().decode().rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                self.last = value
            elif field == "data":
                data.append(value)
            elif not line and name:
                return name, read(name, data)

    def until(self, wanted: str) -> Any:
        while True:
            name, data = self.next()
            if name == wanted:
                return data

    def records(self, who: str, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += self.until(who)
        return found

    def close(self) -> None:
        self._answer.close()
        self._connection.close()
