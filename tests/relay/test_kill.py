# SPDX-License-Identifier: MIT
"""kill -9 at moments nobody chose: survivors see a reset, nothing is stuck, nothing leaks.

Over the extension; test_sessions and test_transports have the same of the baseline.

The moment is a number of bytes at the reader, drawn with a seed.
"""

import random
import socket
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

import pytest

from tests.relay import payload
from tests.relay.ends import (
    Ending,
    Handler,
    echo,
    read_to_end,
    serves,
    serving,
    socks,
)
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import EXTENDED, LISTEN, local_proxy, remote_proxy
from tests.relay.servers import nginx
from tests.relay.waiting import equals, until

BLOCK = payload.seeded(1 << 18, seed=9)
ROUNDS = 4
STREAMS = 4
MOST_BYTES = 20_000_000
ALWAYS = ("--extend", "always")


def forgetting(seconds: int) -> tuple[str, ...]:
    """Of rp: a session whose lp was killed is kept for so long, and then all it had is reset."""
    return (*LISTEN, "--resume", str(seconds))


def write_forever(sock: socket.socket) -> str:
    """Sends until the connection fails; the name of what it failed with."""
    sock.settimeout(20)
    try:
        while True:
            sock.sendall(BLOCK)
    except OSError as error:
        return type(error).__name__


@dataclass
class Counter:
    """Reads to the end and counts on the way, so that a test can act in the middle."""

    read: int = 0
    readers: int = 0  # that have had a first byte
    lock: threading.Lock = field(default_factory=threading.Lock)
    ends: Queue[Ending] = field(default_factory=Queue)

    def reached(self, moment: int) -> bool:
        """All streams have begun, and so many bytes came over them."""
        return self.readers == STREAMS and self.read >= moment

    def __call__(self, sock: socket.socket) -> None:
        size = 0
        sock.settimeout(20)
        how = "eof"
        try:
            while data := sock.recv(1 << 16):
                size += len(data)
                with self.lock:
                    self.read += len(data)
                    self.readers += size == len(data)
        except ConnectionError:
            how = "reset"
        except TimeoutError:
            how = "timeout"
        self.ends.put(Ending(how, size, ""))


def streams(box: Namespace, stack: ExitStack, direction: str) -> tuple[Counter, Queue[object]]:
    """Some connections that transfer without end: who reads, and how the writers end."""
    counter = Counter()
    handler: Handler = counter if direction == "up" else write_forever
    server = stack.enter_context(serving(box, handler))
    written: Queue[object] = server.results if direction == "down" else Queue()
    for _ in range(STREAMS):
        sock = stack.enter_context(socks(box, "127.0.0.1", server.port))
        if direction == "up":
            run = threading.Thread(target=lambda s=sock: written.put(write_forever(s)), daemon=True)
        else:
            run = threading.Thread(target=counter, args=(sock,), daemon=True)
        run.start()
    return counter, written


def survivors_see_a_reset(counter: Counter, written: Queue[object]) -> None:
    for _ in range(STREAMS):
        end = counter.ends.get(timeout=15)
        assert end.how == "reset", f"the reader saw {end}"
        assert written.get(timeout=15) in ("ConnectionResetError", "BrokenPipeError")


@pytest.mark.parametrize(
    ("direction", "resume_s", "rounds"),
    [
        pytest.param("up", 0, ROUNDS, id="up"),
        pytest.param("down", 0, ROUNDS, id="down"),
        pytest.param("down", 1, 1, id="down, and rp waits"),
    ],
)
def test_lp_killed(
    box: Namespace, tmp_path: Path, direction: str, resume_s: int, rounds: int
) -> None:
    rng = random.Random(f"lp {direction}")
    with serving(box, echo) as mirror, remote_proxy(box, tmp_path, *forgetting(resume_s)) as rp:
        idle = rp.fd_count()
        for turn in range(rounds):
            moment = rng.randrange(1, MOST_BYTES)
            with local_proxy(box, tmp_path, *ALWAYS, name=f"lp{turn}") as lp, ExitStack() as stack:
                counter, written = streams(box, stack, direction)
                until(f"{moment} bytes", lambda c=counter, m=moment: c.reached(m), 30)
                lp.kill()
                survivors_see_a_reset(counter, written)
            equals("rp's descriptors", rp.fd_count, idle)
        with local_proxy(box, tmp_path, *ALWAYS, name="next"):
            serves(box, mirror.port)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_rp_killed(box: Namespace, tmp_path: Path, direction: str) -> None:
    rng = random.Random(f"rp {direction}")
    with serving(box, echo) as mirror, local_proxy(box, tmp_path, *ALWAYS, ready=None) as lp:
        lp.expect(r"^lp: .*127\.0\.0\.1:6010")
        idle = lp.fd_count()
        for turn in range(ROUNDS):
            moment = rng.randrange(1, MOST_BYTES)
            with remote_proxy(box, tmp_path, *LISTEN, name=f"rp{turn}") as rp, ExitStack() as stack:
                lp.expect(EXTENDED, 20, count=turn + 1)
                counter, written = streams(box, stack, direction)
                until(f"{moment} bytes", lambda c=counter, m=moment: c.reached(m), 30)
                rp.kill()
                survivors_see_a_reset(counter, written)
            until("lp to close all it had open", lambda: lp.fd_count() <= idle + 1)
        with remote_proxy(box, tmp_path, *LISTEN, name="next"):
            lp.expect(EXTENDED, 20, count=ROUNDS + 1)
            serves(box, mirror.port)


def curl(box: Namespace, tmp: Path, *args: str | Path) -> Program:
    argv = ["curl", "-sS", "--socks5", "127.0.0.1:1080", "--max-time", "60", *args]
    return Program(box, argv, tmp / "curl.log", name="curl")


def bytes_in(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize("victim", ["client", "server"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_an_end_killed(box: Namespace, tmp_path: Path, victim: str, direction: str) -> None:
    """curl or nginx dies: the other one ends too, and the proxies keep nothing."""
    rng = random.Random(f"{victim} {direction}")
    root = tmp_path / "root"
    root.mkdir()
    (root / "big").touch()
    size = 1 << 30  # sparse: no block of it is on the disk
    with (root / "big").open("r+b") as big:
        big.truncate(size)
    with remote_proxy(box, tmp_path, *LISTEN) as rp:
        idle = rp.fd_count()
        with local_proxy(box, tmp_path, *ALWAYS) as lp, serving(box, echo) as mirror:
            lp_idle = lp.fd_count()
            for turn in range(ROUNDS):
                tmp = tmp_path / f"{turn}"
                tmp.mkdir()
                got = tmp / "got"
                moment = rng.randrange(1, MOST_BYTES)
                with nginx(box, tmp, root, slow_bytes_per_s=200_000_000) as server:
                    server_idle = server.fd_count()
                    if direction == "down":
                        client = curl(box, tmp, "-o", got, "http://127.0.0.1:8080/big")
                        until("bytes at the client", lambda g=got, m=moment: bytes_in(g) >= m, 30)
                    else:
                        client = curl(box, tmp, "-T", root / "big", "http://127.0.0.1:8080/up")
                        until(
                            "bytes at the server",
                            lambda t=tmp, m=moment: (
                                sum(p.stat().st_size for p in t.rglob("body/*")) >= m
                            ),
                            30,
                        )
                    (client if victim == "client" else server).kill()
                    if victim == "server":
                        assert client.process.wait(timeout=15) in (18, 52, 55, 56), client.log
                    else:
                        equals("nginx's descriptors", server.fd_count, server_idle)
                equals("rp's descriptors", rp.fd_count, idle + 4)
                equals("lp's descriptors", lp.fd_count, lp_idle)
                got.unlink(missing_ok=True)
                (root / "up").unlink(missing_ok=True)
            serves(box, mirror.port)


def test_many_idle_connections_when_lp_is_killed(box: Namespace, tmp_path: Path) -> None:
    with serving(box, read_to_end) as server, remote_proxy(box, tmp_path, *forgetting(0)) as rp:
        idle = rp.fd_count()
        with local_proxy(box, tmp_path, *ALWAYS) as lp:
            held = [socks(box, "127.0.0.1", server.port) for _ in range(200)]
            equals("rp's descriptors", rp.fd_count, idle + 4 + 200)
            lp.kill()
            for sock in held:
                with sock:
                    assert read_to_end(sock).how == "reset"
        ends = [server.results.get(timeout=10) for _ in held]
        assert {end.how for end in ends if isinstance(end, Ending)} == {"reset"}
        equals("rp's descriptors", rp.fd_count, idle)
