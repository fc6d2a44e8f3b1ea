# SPDX-License-Identifier: MIT
"""lp --control: a pair over two paths, and clients that say commands and read answers."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.relay.ends import unix
from tests.relay.netns import Namespace, namespace
from tests.relay.programs import Program
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.two_paths import ALLOW, BOTH_PATHS, UP


class Client:
    def __init__(self, path: Path) -> None:
        self.sock = unix(path)
        self._in = self.sock.makefile("r")

    def says(self, line: str) -> list[str]:
        """The answer, up to its last line; [] at the end of the connection."""
        self.sock.sendall(line.encode() + b"\n")
        return self.answer()

    def answer(self) -> list[str]:
        lines = []
        for line in self._in:
            lines.append(line.rstrip("\n"))
            if lines[-1] == "ok" or lines[-1].startswith("error: "):
                return lines
        return lines

    def is_sent_away(self) -> bool:
        try:
            return self._in.read() == ""
        except ConnectionResetError:
            return True

    def list(self) -> dict[str, dict[str, str]]:
        *lines, last = self.says("list")
        assert last == "ok"
        words = [line.split() for line in lines]
        return {name: dict(word.split("=") for word in rest) for name, *rest in words}

    def close(self) -> None:
        self._in.close()
        self.sock.close()


@dataclass(frozen=True)
class Scene:
    box: Namespace
    lp: Program
    rp: Program
    path: Path
    stack: ExitStack

    def client(self) -> Client:
        client = Client(self.path)
        self.stack.callback(client.close)
        return client


@contextmanager
def controlled(box: Namespace, tmp: Path, *paths: str) -> Iterator[Scene]:
    path = tmp / "control"
    with (
        remote_proxy(box, tmp, *ALLOW) as rp,
        local_proxy(box, tmp, *paths, "--control", str(path), ready=UP) as lp,
        ExitStack() as stack,
    ):
        lp.expect("over near are up")
        yield Scene(box, lp, rp, path, stack)


def name_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"{host}:{port}"


def written(client: Client) -> dict[str, int]:
    return {name: int(it["written"]) for name, it in client.list().items()}


@contextmanager
def of_a_module(tmp: Path) -> Iterator[Scene]:
    """One lp for those that leave it as it was, in a namespace of its own."""
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with (
        namespace("box") as box,
        controlled(box, tmp, *BOTH_PATHS) as scene,
    ):
        yield scene
