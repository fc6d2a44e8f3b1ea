# SPDX-License-Identifier: MIT
"""lp's host has two last miles, each a link of its own: devices `wifi` and `lte`.

rp has one address, which both lead to; lp's are 10.1.0.1 and 10.2.0.1. And a stream through both
proxies of which each byte and each pause is known.
"""

import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.net.linkem import Linkem, Value, command_line, linkem
from tests.relay.ends import serving, socks
from tests.relay.netns import Namespace, namespace
from tests.relay.programs import Program, binary
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.waiting import until

RP, PORT = "10.9.0.1", 8000
NETS = {"wifi": 1, "lte": 2}
RATE_MBPS = 8.0
QUEUE_MS = 100.0
BLOCK = hashlib.sha256(b"miles").digest() * 2048  # 64 KiB
PATHS = ("--path", "wifi,dev=wifi,pipes=2", "--path", "lte,dev=lte,pipes=2")
PIPES = 4  # of both


def up(path: str) -> str:
    """What lp logs when it has all pipes of it."""
    return rf"2 pipes to {RP}:6010 over {path} are up"


@dataclass(frozen=True)
class Miles:
    near: Namespace
    far: Namespace
    wifi: Linkem
    lte: Linkem


def _mile(
    stack: ExitStack, near: Namespace, far: Namespace, name: str, folder: Path, **both: Value
) -> Linkem:
    folder.mkdir(parents=True)
    argv = command_line(
        *(binary("linkem", asan=False), near.pid, far.pid),
        ab=both,
        ba=both,
        options=("--a-dev", name, "--b-dev", f"{name}-far"),
    )
    link = stack.enter_context(linkem(argv, folder))
    net = NETS[name]
    near.ip("address", "add", f"10.{net}.0.1/24", "dev", name)
    far.ip("address", "add", f"10.{net}.0.2/24", "dev", f"{name}-far")
    for ns, device in ((near, name), (far, f"{name}-far")):
        ns.ip("link", "set", device, "up")
    leads_to_rp(near, name)
    return link


def leads_to_rp(near: Namespace, name: str) -> None:
    """Over this mile, too. A device that goes down takes its routes with it."""
    net = NETS[name]
    near.ip(*f"route replace {RP} via 10.{net}.0.2 dev {name} metric {net}".split())


@contextmanager
def miles(folder: Path, delay_ms: float, lte_delay_ms: float | None = None) -> Iterator[Miles]:
    """Each with this delay one way, or LTE with its own; RATE_MBPS and room for QUEUE_MS."""
    delays = {"wifi": delay_ms, "lte": delay_ms if lte_delay_ms is None else lte_delay_ms}

    def both(name: str) -> dict[str, Value]:
        return {"rate_mbps": RATE_MBPS, "delay_ms": delays[name], "queue_ms": QUEUE_MS}

    with namespace("near") as near, namespace("far") as far, ExitStack() as stack:
        far.ip("address", "add", f"{RP}/32", "dev", "lo")
        wifi, lte = (
            _mile(stack, near, far, name, folder / name, **both(name)) for name in ("wifi", "lte")
        )
        yield Miles(near, far, wifi, lte)


@contextmanager
def proxies(
    at: Miles, tmp: Path, *lp: str, rp_options: tuple[str, ...] = ()
) -> Iterator[tuple[Program, Program]]:
    """Not those with sanitizers: what is measured is time."""
    allow = ("--allow", "10.0.0.0/8", "--permit", f"{RP}/32")
    with (
        remote_proxy(at.far, tmp, *allow, *rp_options, asan=False) as rp,
        local_proxy(at.near, tmp, *(lp or PATHS), to=RP, asan=False, ready=up("lte")) as local,
    ):
        local.expect(up("wifi"))
        yield rp, local


@dataclass
class Stream:
    """Bytes that go one way until they are told to end."""

    sent: int = 0
    came: int = 0
    at: list[tuple[float, int]] = field(default_factory=list)  # when, and bytes by then
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def write(self, sock: socket.socket) -> None:
        try:
            while not self.over.is_set():
                sock.sendall(BLOCK)
                self.sent += len(BLOCK)
            sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.wrong.append(f"after {self.sent} bytes were written: {error!r}")

    def read(self, sock: socket.socket) -> None:
        sock.settimeout(30)
        try:
            while data := sock.recv(1 << 16):
                start = self.came % len(BLOCK)
                wanted = (BLOCK[start:] + BLOCK)[: len(data)]
                if data != wanted:
                    self.wrong.append(f"other bytes than were sent, behind {self.came}")
                    return
                self.came += len(data)
                self.at.append((time.monotonic(), self.came))
        except OSError as error:
            self.wrong.append(f"after {self.came} bytes were read: {error!r}")

    def longest_pause(self, since: float) -> float:
        """In seconds, from the last bytes before `since` on."""
        times = [when for when, _ in self.at]
        first = max(i for i, when in enumerate(times) if when <= since)
        return max(b - a for a, b in zip(times[first:], times[first + 1 :], strict=False))

    def rate(self, begin: float, end: float) -> float:
        """In Mbit/s."""
        came = [n for when, n in self.at if begin <= when <= end]
        return (came[-1] - came[0]) * 8e-6 / (end - begin)

    def check(self) -> None:
        assert not self.wrong, self.wrong
        assert self.came == self.sent, f"{self.sent} bytes were written and {self.came} came"


@contextmanager
def streaming(at: Miles, down: bool) -> Iterator[Stream]:
    """From a server at rp to lp's application (`down`), or the other way."""
    stream = Stream()
    serves = stream.write if down else stream.read

    def serve(sock: socket.socket) -> None:
        serves(sock)
        while down and sock.recv(1):
            pass

    with serving(at.far, serve, (RP, PORT)), socks(at.near, RP, PORT) as sock:
        plays = stream.read if down else stream.write
        thread = threading.Thread(target=plays, args=(sock,))
        thread.start()
        try:
            until("a steady stream", lambda: stream.came > 1_500_000, 20)
            yield stream
        finally:
            stream.over.set()
            thread.join()
        until("all that was sent", lambda: stream.wrong or stream.came == stream.sent, 20)
    stream.check()
