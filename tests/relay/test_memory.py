# SPDX-License-Identifier: MIT
"""Memory is bounded: what a connection costs, and what nobody can make a proxy hold.

All with the ordinary build; VmRSS is what is looked at.
"""

import re
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.relay import records, wire
from tests.relay.ends import echo, read_exactly, read_to_end, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, program
from tests.relay.proxies import LP_READY, extended_pair, local_proxy, pair, remote_proxy
from tests.relay.waiting import equals, until
from tests.relay.wire import BY_RST, Pipe, raw_lp, raw_rp

IDLE = 10_000
KIB_EACH = 0.75
SESSION_KIB = 64  # 160 are asked for
MIB = 1024  # KiB, as VmRSS counts
BLOCK = b"z" * 262_144


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Enough descriptors for this process and for each that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may have only {hard} descriptors here, {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("many_descriptors")
def test_ten_thousand_idle_connections(box: Namespace, tmp_path: Path) -> None:
    """Under 0.75 KiB each in each proxy: opened, and again after each carried a byte each way."""
    echo_server = [sys.executable, Path(__file__).with_name("echo_server.py"), "127.0.0.1", "7777"]
    with (
        program(box, echo_server, tmp_path / "echo.log", port=7777, status=None) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", "7000:127.0.0.1:7777"], asan=False
        ) as proxies,
        ExitStack() as stack,
    ):
        before = {p.name: p.rss_kib() for p in (proxies.rp, proxies.lp)}
        idle = server.fd_count()
        apps = [stack.enter_context(box.connect(("127.0.0.1", 7000))) for _ in range(IDLE)]
        equals("connections at the server", lambda: server.fd_count() - idle, IDLE, 60)
        costs(before, proxies.rp, proxies.lp, "idle")
        for sock in apps:
            sock.sendall(b"!")
        for sock in apps:
            assert read_exactly(sock, 1) == b"!"
        costs(before, proxies.rp, proxies.lp, "idle again after a byte each way")
        stack.close()
        equals("connections at the server", lambda: server.fd_count() - idle, 0, 60)
        proxies.settled(60)


def costs(before: dict[str, int], rp: Program, lp: Program, when: str) -> None:
    for proxy in (rp, lp):
        each = (proxy.rss_kib() - before[proxy.name]) / IDLE
        print(f"{proxy.name}: {each:.2f} KiB a connection, {when}")
        assert each < KIB_EACH, f"{proxy.name} uses {each:.2f} KiB a connection, {when}"


def heap_kib(proxy: Program) -> int:
    """What is resident of the memory that is no file's."""
    found = re.search(r"RssAnon:\s*(\d+) kB", Path(f"/proc/{proxy.pid}/status").read_text())
    assert found
    return int(found[1])


@pytest.mark.parametrize("pipes", [4, 16])
def test_traffic_that_is_over_leaves_little(box: Namespace, tmp_path: Path, pipes: int) -> None:
    """A session that has carried 16 MB each way has what it had before, and 64 KiB at most."""
    with (
        serving(box, echo) as server,
        extended_pair(
            box,
            tmp_path,
            pipes=pipes,
            lp=["--forward", f"7000:127.0.0.1:{server.port}"],
            asan=False,
        ) as proxies,
    ):
        before = {proxy.name: heap_kib(proxy) for proxy in (proxies.rp, proxies.lp)}

        def grown(proxy: Program) -> int:
            return heap_kib(proxy) - before[proxy.name]

        with box.connect(("127.0.0.1", 7000)) as sock:
            sender = threading.Thread(target=sock.sendall, args=(BLOCK * 64,))
            sender.start()
            assert len(read_exactly(sock, len(BLOCK) * 64)) == len(BLOCK) * 64
            sender.join()
            for proxy in (proxies.rp, proxies.lp):
                until(
                    f"{proxy.name} to come to rest", lambda it=proxy: grown(it) <= SESSION_KIB, 20
                )
            sock.sendall(b"on it goes")
            assert read_exactly(sock, 10) == b"on it goes"


class Peak:
    """The largest VmRSS of a program while the block runs, over what it had before."""

    def __init__(self, proxy: Program) -> None:
        self.proxy = proxy
        self.start = proxy.rss_kib()
        self.peak = self.start
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(0.02) and self.proxy.running():
            self.peak = max(self.peak, self.proxy.rss_kib())

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=5)

    @property
    def grown_kib(self) -> int:
        return self.peak - self.start


def write_until_it_fails(sock: socket.socket) -> str:
    sock.settimeout(20)
    try:
        while True:
            sock.sendall(BLOCK)
    except OSError as error:
        return type(error).__name__


@pytest.mark.parametrize("reader", ["client", "server"])
def test_a_reader_that_does_not_read(box: Namespace, tmp_path: Path, reader: str) -> None:
    """16 MiB and two seconds, then it is reset; another connection lives on."""
    stats = tmp_path / "stats.jsonl"
    proxy_options = records.soon(stats)
    release = threading.Event()

    def stalled(sock: socket.socket) -> str:
        assert release.wait(30)
        return read_to_end(sock, 10).how

    handler = write_until_it_fails if reader == "client" else stalled
    with (
        serving(box, handler) as server,
        serving(box, echo) as mirror,
        pair(
            box,
            tmp_path,
            asan=False,
            rp=proxy_options if reader == "server" else [],
            lp=proxy_options if reader == "client" else [],
        ) as proxies,
        socks(box, "127.0.0.1", mirror.port) as other,
        socks(box, "127.0.0.1", server.port) as sock,
        Peak(proxies.lp if reader == "client" else proxies.rp) as holder,
        Peak(proxies.rp if reader == "client" else proxies.lp) as feeder,
    ):
        writer = threading.Thread(target=write_until_it_fails, args=(sock,), daemon=True)
        if reader == "server":
            writer.start()
        until("the stalled connection to be ended", lambda: records.of(stats, "conn"), 20)
        release.set()
        if reader == "client":
            assert read_to_end(sock).how == "reset"
            assert server.results.get(timeout=10) in ("ConnectionResetError", "BrokenPipeError")
        else:
            assert server.results.get(timeout=10) == "reset"
            writer.join(timeout=10)
            assert not writer.is_alive(), "the writer is stuck"
        other.settimeout(5)
        other.sendall(b"x")
        assert read_exactly(other, 1) == b"x"
    assert records.of(stats, "conn")[0]["end"] == "limit"
    # Besides the 16 MiB in order, what pipes are ahead of each other: 16 MiB at most.
    assert holder.grown_kib < 36 * MIB, f"grew by {holder.grown_kib} KiB"
    assert feeder.grown_kib < 24 * MIB, f"grew by {feeder.grown_kib} KiB"


def next_of(pipes: list[Pipe], conn: int, kind: str) -> bytes:
    """The body of the next message of that connection and kind."""
    found: list[bytes] = []

    def look() -> bool:
        for pipe in pipes:
            try:
                message = pipe.receive(0.005)
            except TimeoutError:
                continue
            assert message is not None, "the pipe ended"
            if (message.conn, message.kind) == (conn, kind):
                found.append(message.body)
        return bool(found)

    until(f"a {kind} of connection {conn}", look, 10)
    return found[0]


@pytest.mark.parametrize("size", [4096, 1])
def test_gaps_held_open(box: Namespace, tmp_path: Path, size: int) -> None:
    """Out-of-order messages without end: past 64 MiB, bookkeeping counted, the largest holder
    is reset, and the connection beside it is not."""
    count = min((96 << 20) // size, (1 << 20) - 10)
    with serving(box, echo) as server, remote_proxy(box, tmp_path, pipes=2, asan=False) as rp:
        with raw_lp(box, 2) as pipes, Peak(rp) as peak:
            pipes[0].send(wire.syn(1, "127.0.0.1", server.port), wire.data(1, 1, b"small"))
            assert next_of(pipes, 1, "data") == b"small"
            pipes[0].send(wire.syn(2, "127.0.0.1", server.port))
            batch = 256
            for first in range(2, count, batch):
                pipes[1].send(*(wire.data(2, n, b"g" * size) for n in range(first, first + batch)))
            if size == 4096:
                assert next_of(pipes, 2, "fin") == bytes([BY_RST])
            pipes[0].send(wire.data(1, 2, b"alive"))
            assert next_of(pipes, 1, "data") == b"alive"
        assert peak.grown_kib < 80 * MIB, f"grew by {peak.grown_kib} KiB"


def read_until_quiet(pipe: Pipe, seconds: float, limit: int) -> int:
    """Bytes that came, whatever they mean, until none came for so long, or so many had."""
    pipe.sock.settimeout(seconds)
    size = 0
    while size < limit:
        try:
            data = pipe.sock.recv(1 << 20)
        except TimeoutError:
            break
        assert data, "the pipe ended"
        size += len(data)
    return size


def test_a_pipe_that_is_not_read(box: Namespace, tmp_path: Path) -> None:
    """The other one is not sent more than a receiver may hold out of order, and then goes on."""
    with (
        serving(box, write_until_it_fails) as server,
        remote_proxy(box, tmp_path, "--cc", "cubic", pipes=2, asan=False),
        raw_lp(box, 2) as pipes,
    ):
        pipes[0].send(wire.syn(1, "127.0.0.1", server.port))
        ahead = read_until_quiet(pipes[0], 20.0, 16 << 20)
        assert ahead >= 16 << 20, f"only {ahead >> 10} KiB came"
        ahead += read_until_quiet(pipes[0], 1.0, 128 << 20)
        assert ahead < 64 << 20, f"{ahead >> 20} MiB ahead of the other pipe"
        # Before this one more may go to the first pipe: what its receive buffer still takes.
        assert read_until_quiet(pipes[1], 20.0, 1 << 20) >= 1 << 20
        drain = threading.Thread(target=read_to_end, args=(pipes[1].sock, 60), daemon=True)
        drain.start()
        assert read_until_quiet(pipes[0], 20.0, 64 << 20) >= 64 << 20
        pipes[1].sock.shutdown(socket.SHUT_RDWR)
        drain.join(20)
        assert not drain.is_alive(), "the pipe is still read"


def test_early_data_has_a_limit(box: Namespace, tmp_path: Path) -> None:
    """More than 4 MiB before its SYN: the SYN is answered by FIN 0x99, never by silence."""
    with serving(box, echo) as server, remote_proxy(box, tmp_path, pipes=2, asan=False) as rp:
        with raw_lp(box, 2) as pipes, Peak(rp) as peak:
            for number in range(1, 1500):
                pipes[1].send(wire.data(3, number, b"e" * 4096))
            pipes[1].send(wire.syn(3, "127.0.0.1", server.port))
            assert next_of(pipes, 3, "fin") == bytes([BY_RST])
            pipes[0].send(wire.syn(4, "127.0.0.1", server.port), wire.data(4, 1, b"alive"))
            assert next_of(pipes, 4, "data") == b"alive"
        assert peak.grown_kib < 12 * MIB, f"grew by {peak.grown_kib} KiB"


def test_early_data_for_every_id(box: Namespace, tmp_path: Path) -> None:
    """Data for tens of thousands of ids that never get a SYN: bounded, and rp goes on."""
    with serving(box, echo) as server, remote_proxy(box, tmp_path, pipes=2, asan=False) as rp:
        with raw_lp(box, 2) as pipes, Peak(rp) as peak:
            for turn in range(1, 4):
                for conn in range(10, 65536):
                    pipes[conn % 2].send(wire.data(conn, turn, b"e" * 500))
            pipes[0].send(wire.syn(4, "127.0.0.1", server.port), wire.data(4, 1, b"alive"))
            assert next_of(pipes, 4, "data") == b"alive"
        assert peak.grown_kib < 110 * MIB, f"grew by {peak.grown_kib} KiB"


def test_memory_comes_back(box: Namespace, tmp_path: Path) -> None:
    """After many transfers a proxy is about as large as after the first ones."""
    data = b"m" * 2_000_000

    def handler(sock: socket.socket) -> None:
        sock.sendall(data)

    with (
        serving(box, handler) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", f"7000:127.0.0.1:{server.port}"], asan=False
        ) as proxies,
    ):

        def transfers(count: int) -> None:
            for _ in range(count):
                with box.connect(("127.0.0.1", 7000)) as sock:
                    assert read_to_end(sock).size == len(data)

        transfers(20)
        before = {p.name: p.rss_kib() for p in (proxies.rp, proxies.lp)}
        transfers(150)
        for proxy in (proxies.rp, proxies.lp):
            grown = proxy.rss_kib() - before[proxy.name]
            assert grown < 2 * MIB, f"{proxy.name} grew by {grown} KiB over 150 transfers"


def test_gaps_held_open_towards_lp(box: Namespace, tmp_path: Path) -> None:
    """The same downlink: past 64 MiB out of order the application is reset, another is not."""
    forward = ("--forward", "7000:127.0.0.1:8000")
    with (
        raw_rp(box) as rp,
        local_proxy(box, tmp_path, *forward, pipes=1, ready=None, asan=False) as lp,
    ):
        (pipe,) = rp.accept(1)
        lp.expect(LP_READY)
        with (
            pipe.sock,
            box.connect(("127.0.0.1", 7000)) as flooded,
            box.connect(("127.0.0.1", 7000)) as other,
            Peak(lp) as peak,
        ):
            ids = {}
            for sock, name in ((flooded, b"flooded"), (other, b"other")):
                sock.sendall(name)
            while len(ids) < 2:
                message = pipe.receive()
                assert message is not None
                if message.kind == "data":
                    ids[message.body] = message.conn
            for number in range(1, (96 << 20) // 4096):
                pipe.send(wire.data(ids[b"flooded"], number, b"g" * 4096))
            assert read_to_end(flooded).how == "reset"
            pipe.send(wire.data(ids[b"other"], 0, b"alive"))
            assert read_exactly(other, 5) == b"alive"
        assert peak.grown_kib < 80 * MIB, f"grew by {peak.grown_kib} KiB"
