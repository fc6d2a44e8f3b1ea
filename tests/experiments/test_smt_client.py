# SPDX-License-Identifier: MIT
"""SMT's client and server on loopback and over links of our own: all messages come, in order."""

import asyncio
import fcntl
import json
import random
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from base.sources import ROOT
from experiments.workloads.mhttp.path import Path as Way
from experiments.workloads.smt import control
from experiments.workloads.smt.__main__ import main
from experiments.workloads.smt.client import TRANSPORTS, Client
from experiments.workloads.smt.estimate import Estimate, Reading
from experiments.workloads.smt.failure import BadMessage, Failed
from experiments.workloads.smt.generator import Arrivals, Mixture, Wanted
from experiments.workloads.smt.header import SIZE, Header
from experiments.workloads.smt.line import LARGEST, Ends, Frames, Line, framed
from experiments.workloads.smt.policies import POLICIES
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.server import Server, answer, listen
from experiments.workloads.smt.settings import Settings
from experiments.workloads.smt.tcp import TcpLine
from tests.conftest import why_no_namespace
from tests.relay.netns import namespace, veth

SMT = [sys.executable, "-m", "experiments.workloads.smt"]
HERE = "127.0.0.1"
SIOCOUTQNSD = 0x894B
SILENCE_S = "2.5"  # longer than a busy machine keeps either program waiting
PATHS = (Way("one", HERE), Way("two", "127.0.0.2"))
Told = dict[str, Any]


def client(**more: Any) -> Client:
    found = Client(
        server=(HERE, 0),
        paths=PATHS,
        connections=1,
        transport="tcp",
        settings=Settings(),
        classes=(Class("any"),),
        arrivals=Arrivals(),
        queued=64,
        most=200,
        seconds=None,
        limit_s=30.0,
        seed=3,
    )
    return replace(found, **more)


def made(**more: Any) -> Iterator[Wanted]:
    return Mixture(**more).messages(random.Random(4))


def blocks() -> Iterator[Wanted]:
    return made(distribution=1, size=None)


def run(
    it: Client,
    wanted: Iterator[Wanted],
    pause_s: float = 0.0,
    meanwhile: Callable[[Server], Awaitable[None]] | None = None,
) -> tuple[Told, Told]:
    """What both ends tell."""

    async def work() -> tuple[Told, Told]:
        server = Server(pause_s)
        port, listening = await listen(server, HERE, 0, with_quic=it.transport != "tcp")
        try:
            measuring = asyncio.ensure_future(replace(it, server=(HERE, port)).run(wanted))
            if meanwhile is not None:
                await meanwhile(server)
            told = await measuring
            peer = await asyncio.wait_for(server.finished.get(), 10)
            return told, peer.told()
        finally:
            server.close()
            for its in listening:
                its.close()

    return asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_come_and_none_late(transport: str, policy: str) -> None:
    if transport != "tcp":
        pytest.importorskip("aioquic")
    count = 200 if transport == "tcp" else 60
    it = client(transport=transport, settings=Settings(policy=policy), most=count)
    ours, theirs = run(it, blocks())
    assert ours["messages"] == theirs["received"]["came"] == count
    assert ours["late"] == theirs["late"] == 0
    assert ours["bytes"] == theirs["bytes"]
    assert ours["sent"]["again"] == theirs["sent"]["again"] == 0
    used = [line["messages"] > 5 for line in ours["lines"]]
    assert len(used) == 2
    if policy == "even":
        assert all(used)
    if policy == "total":
        assert ours["lines"][0]["messages"] > count
        assert ours["sent"]["rounds"] == 1


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_a_connection_is_lost(transport: str) -> None:
    """The server ends one in mid-run."""
    if transport != "tcp":
        pytest.importorskip("aioquic")

    async def cut(server: Server) -> None:
        while not server._peers or (peer := next(iter(server._peers.values()))).bytes < 20_000:
            await asyncio.sleep(0.002)
        lines = peer.association.lines
        lines[-1]._lose("cut")

    wanted = made(kinds=("parallel",), size=1000)
    it = client(transport=transport, settings=Settings(policy="even"), most=150)
    it = replace(it, arrivals=Arrivals(batch=1, rest_s=0.001))
    ours, theirs = run(it, wanted, meanwhile=cut)
    assert ours["messages"] == 150
    assert len(ours["lost"]) == 1
    assert ours["lost"][0].startswith("two: ")
    assert ours["late"] == theirs["late"] == 0


def test_the_last_connection_is_lost() -> None:
    async def cut(server: Server) -> None:
        while not server._peers:
            await asyncio.sleep(0.002)
        for line in list(next(iter(server._peers.values())).association.lines):
            line._lose("cut")

    it = client(arrivals=Arrivals(batch=1, rest_s=0.01), paths=PATHS[:1])
    with pytest.raises(Failed, match="no connection is left: one: "):
        run(it, blocks(), meanwhile=cut)


def test_a_slow_application() -> None:
    """It is told of by STOP and RESTART, its buffer drops what finds it full, all come at last."""
    settings = Settings(buffer=16, policy="even")
    wanted = made(kinds=("parallel",), block=500, size=300)
    it = client(settings=settings, most=300, queued=300)
    ours, theirs = run(it, wanted, pause_s=0.001)
    assert ours["messages"] == 300
    assert theirs["received"]["stops"] > 5
    assert theirs["received"]["dropped"] == ours["sent"]["again"] > 0
    assert theirs["received"]["most_held"] <= 16 + 1


def test_limits_of_what_is_not_acknowledged() -> None:
    settings = Settings(most_messages=7)
    ours, _ = run(client(settings=settings), blocks())
    assert ours["sent"]["most_unacked"] == 7
    settings = Settings(most_bytes=40_000)
    ours, _ = run(client(settings=settings), made(size=9984))
    assert ours["sent"]["most_unacked_bytes"] == 40_000


def test_it_ends_in_time() -> None:
    it = client(arrivals=Arrivals(batch=1, rest_s=0.01), seconds=0.4, most=10**6)
    ours, _ = run(it, blocks())
    assert 1 <= ours["messages"] <= 45
    assert ours["seconds"] >= 0.4
    with pytest.raises(Failed, match=r"1 of 2 messages were answered in 0.3 s"):
        run(client(most=2, limit_s=0.3), blocks(), pause_s=5.0)


def test_strangers_are_refused() -> None:
    """Whatever does not begin with a HELLO, or is no message, ends its own connection alone."""

    async def work() -> None:
        server = Server(0.0)
        port, listening = await listen(server, HERE, 0, with_quic=False)
        hello = Settings().hello(b"12345678")
        good = framed(control.encode(hello))
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            framed(b"short"),
            framed(Header(1, 0, 0).encode()),
            framed(control.encode(control.Stop(1))),
            framed(control.encode(control.Hello(b"12345678", "{}"))),
            framed(control.encode(Settings(cc="none").hello(b"12345678"))),
            good + good,
            good
            + framed(Header(1, 1, 0, termination=3).encode())
            + framed(Header(1, 1, 1, termination=4).encode()),
            (LARGEST + 1).to_bytes(4, "big"),
        ):
            reader, writer = await asyncio.open_connection(HERE, port)
            writer.write(data)
            async with asyncio.timeout(5):
                while await reader.read(1000):
                    pass
            writer.close()
        told = await replace(client(), server=(HERE, port)).run(blocks())
        assert told["messages"] == 200
        server.close()
        for it in listening:
            it.close()

    asyncio.run(asyncio.wait_for(work(), 30))


def test_what_tcp_tells() -> None:
    """A reading is the kernel's own, as other calls tell it, too."""

    async def work() -> None:
        ends = Ends(lambda *_: None, lambda *_: None)
        with socket.create_server((HERE, 0)) as listening:
            port = listening.getsockname()[1]
            loop = asyncio.get_running_loop()
            transport, line = await loop.create_connection(
                lambda: TcpLine("one", ends, printed=False), HERE, port
            )
            with listening.accept()[0]:
                line.configure(5.0, "reno")
                assert line.reading().room == 10 * line.reading().mss, "the first window of Linux"
                line.send(bytes(LARGEST))
                sock = transport.get_extra_info("socket")
                unsent = struct.unpack("i", fcntl.ioctl(sock.fileno(), SIOCOUTQNSD, bytes(4)))[0]
                found = line.reading()
                assert unsent > 0
                assert found.queued == unsent + transport.get_write_buffer_size()
                assert found.room == 0, "the peer's window is full"
                assert found.opening
                assert found.mss == sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
                assert 0 < found.rtt_s < 1 and found.rate > found.mss and 0 <= found.loss <= 1
                algorithm = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
                assert algorithm.rstrip(b"\0") == b"reno"
                transport.abort()
                assert line.reading() == found, "of one that ended, the last"

    asyncio.run(asyncio.wait_for(work(), 10))


class Overtaken(Line):
    """A line by which messages overtake each other; what was sent by it."""

    in_order = False

    def __init__(self) -> None:
        super().__init__()
        self.estimate = Estimate()
        self.sent: list[bytes] = []

    def reading(self) -> Reading:
        return Reading(0.1, 1e6, 0.0, 1000, 0)

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def keep(self) -> None: ...

    def configure(self, silence_s: float, cc: str) -> None: ...

    def close(self) -> None: ...


def test_a_hello_is_overtaken() -> None:
    """Its packet was lost: what came before it is delivered once it is there."""

    async def work() -> None:
        server, line, other = Server(0.0), Overtaken(), Overtaken()
        payloads = [number.to_bytes(8, "big") for number in range(3)]
        for number, payload in enumerate(payloads):
            server.ends.came(line, Header(1, 0, number).encode() + payload)
        assert line.sent == []
        server.ends.came(line, control.encode(Settings().hello(b"12345678")))
        server.close()
        assert [it[SIZE:] for it in line.sent[:3]] == [answer(it) for it in payloads]
        with pytest.raises(BadMessage, match="4096 messages without a HELLO"):
            for number in range(4097):
                server.ends.came(other, Header(1, 0, number).encode())

    asyncio.run(work())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames_cut_anywhere(size: int) -> None:
    messages = [b"", b"a", bytes(range(256)) * 3]
    data = b"".join(map(framed, messages))
    frames, found = Frames(), []
    for at in range(0, len(data), size):
        found += frames.put(data[at : at + size])
    assert found == messages


@contextmanager
def server(*words: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """The program; its port."""
    argv = [*SMT, "server", "--address", HERE, "--port", "0", *words]
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith(f"smt: ready on {HERE} port "), line
            yield int(line.split()[-1]), process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=10) == 130


def smt(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    argv = [*SMT, *map(str, words)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_commands(tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    graph.write_text(
        '[{"name": "A", "size": 100}, {"name": "B", "size": 5000, "needs": ["A"], "tag": 9}]'
    )
    with server() as (port, process):
        words = ["--path", HERE, "--path", "127.0.0.2", "--messages", "50"]
        done = smt(
            "client", f"localhost:{port}", *words, "--priority", "a=2", "--priority", "b=1:3"
        )
        assert (done.returncode, done.stderr) == (0, "")
        told = json.loads(done.stdout)
        assert told["messages"] == 50
        assert {it["path"] for it in told["lines"]} == {HERE, "127.0.0.2"}
        assert told["mean_ms"] > 0 and told["p50_ms"] <= told["p99_ms"]
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["received"]["came"] == 50
        done = smt("client", f"{HERE}:{port}", "--graph", graph, "--policy", "total")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["bytes"] == 5100
        assert json.loads(process.stdout.readline())["late"] == 0
    with server("--once") as (port, process):
        assert smt("client", f"{HERE}:{port}", "--messages", "1").returncode == 0
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize("words", [(), ("--transport", "quic", "--silence-s", "0.3")])
def test_nobody_listens(words: tuple[str, ...]) -> None:
    if words:
        pytest.importorskip("aioquic")
    done = smt("client", f"{HERE}:1", *words)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("smt: ")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["client", "here"], "server 'here' is not HOST:PORT"),
        (["client", "here:99999"], "server 'here:99999' is not HOST:PORT"),
        (["client", "x:1", "--policy", "best"], "policy 'best' is none of total, even"),
        (["client", "x:1", "--transport", "udp"], "transport 'udp' is none of tcp, quic"),
        (["client", "x:1", "--blocks", "tree"], "block 'tree' is none of stream, parallel"),
        (["client", "x:1", "--priority", "a"], "priority 'a' is not NAME=PRIORITY[:WEIGHT]"),
        (["client", "x:1", "--priority", "a=1", "--priority", "a=2"], "a name is there twice"),
        (["client", "x:1", "--path", "nowhere"], "path 'nowhere': neither an address nor"),
        (["client", "x:1", "--path", "192.0.2.1"], "path '192.0.2.1': "),
        (["client", "x:1", "--path", HERE, "--path", HERE], "an address is named twice"),
        (["client", "x:1", "--path", f"{HERE},{HERE}"], "a resolver is of no use here"),
        (["client", "x:1", "--distribution", "15"], "distribution: 15 is not from 0 to 14"),
        (["client", "x:1", "--size", "7"], "size: 7 is not from 8 to"),
        (["client", "x:1", "--graph", "/nowhere"], "graph /nowhere: No such file"),
        (["client", "x:1", "--cc", "none"], "congestion control 'none' is none of this kernel's"),
        (["server", "--port", "70000"], "port: 70000 is not from 0 to 65535"),
        (["server", "--pause-s", "x"], "pause_s: 'x' is not a number"),
    ],
)
def test_wrong_words(capsys: pytest.CaptureFixture[str], words: list[str], why: str) -> None:
    refused(capsys, words, why)


def refused(capsys: pytest.CaptureFixture[str], words: list[str], why: str) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("smt: ") and told.err.count("\n") == 1
    assert why in told.err


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([("A", ["B"]), ("B", ["A"])], "cyclic graph: "),
        ([("A", ["B"]), ("B", [])], "forward dependency: A depends on B, which comes later"),
        ([("A", ["B\nC"])], 'A depends on "B\\nC", which is not there'),
        ([("A\nB", [])], '"A\\nB" is no name'),
        ([("A", [], "best")], "A: unknown priority 'best': it is none of "),
    ],
)
def test_a_wrong_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], messages: list[Any], why: str
) -> None:
    told = [dict(zip(("name", "needs", "priority"), it, strict=False), size=100) for it in messages]
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps(told))
    refused(capsys, ["client", "x:1", "--graph", str(graph)], why)


@pytest.mark.parametrize("role", [[], ["server"], ["client"]])
def test_help(capsys: pytest.CaptureFixture[str], role: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*role, "--help"])
    assert ended.value.code == 0
    assert "usage: python -m experiments.workloads.smt" in capsys.readouterr().out


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize("down", [1, 2])
def test_a_path_goes_down(transport: str, down: int) -> None:
    """Silently, in mid-run: the other path carries the rest. Each path is a link of its own."""
    if transport != "tcp":
        pytest.importorskip("aioquic")

    async def work() -> tuple[int | None, bytes, bytes]:
        with namespace("near") as near, namespace("far") as far:
            for number in (1, 2):
                wire = f"wire{number}"
                veth(near, f"10.79.{number}.1/24", far, f"10.79.{number}.2/24", wire)
            near.ip("rule", "add", "from", "10.79.2.1", "lookup", "102")
            near.ip("route", "add", "default", "via", "10.79.2.2", "table", "102")
            far.ip("address", "add", "10.79.9.9/32", "dev", "lo")
            near.ip("route", "add", "10.79.9.9/32", "via", "10.79.1.2")
            pipe = asyncio.subprocess.PIPE
            more = ["--quic"] if transport == "quic" else []
            words = ["server", "--address", "10.79.9.9", *more]
            serving = await asyncio.create_subprocess_exec(
                *far.command([*SMT, *words]), cwd=ROOT, stdout=pipe, stderr=pipe
            )
            assert serving.stderr is not None
            assert b"ready" in await serving.stderr.readline()
            words = ["client", "10.79.9.9:7000", "--transport", transport, "--policy", "even"]
            words += ["--path", "10.79.1.1", "--path", "10.79.2.1", "--silence-s", SILENCE_S]
            words += ["--messages", "120", "--batch", "1", "--rest-s", "0.01"]
            sending = await asyncio.create_subprocess_exec(
                *near.command([*SMT, *words]), cwd=ROOT, stdout=pipe, stderr=pipe
            )
            while _received(near, "wire2-l") < 20_000:
                await asyncio.sleep(0.02)
            far.ip("link", "set", f"wire{down}-r", "down")
            out, said = await sending.communicate()
            serving.terminate()
            await serving.communicate()
            return sending.returncode, out, said

    status, out, said = asyncio.run(asyncio.wait_for(work(), 60))
    assert (status, said) == (0, b"")
    told = json.loads(out)
    assert told["messages"] == 120
    assert len(told["lost"]) == 1 and told["lost"][0].startswith(f"10.79.{down}.1: ")
    assert told["sent"]["again"] > 0


def _received(of: Any, device: str) -> int:
    told = json.loads(of.ip("-j", "-s", "link", "show", device))
    return told[0]["stats64"]["tx"]["bytes"]
