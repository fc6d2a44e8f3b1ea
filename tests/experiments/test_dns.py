# SPDX-License-Identifier: MIT
"""DNS: losses are paid for as they should be, each found; what comes wrong is said; bad input."""

import asyncio
import math
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dns", reason="no dnspython in Python: sudo make setup")
import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from base.sources import ROOT
from experiments.workloads import certificate
from experiments.workloads.dns import __main__ as program
from experiments.workloads.dns import distribution, losses, nodelay, questions, unbound, zone
from experiments.workloads.dns.asking import Asking
from experiments.workloads.dns.client import Client
from experiments.workloads.dns.failure import BadInput, Unanswered, WrongAnswer
from experiments.workloads.dns.kinds import Kind
from experiments.workloads.dns.losses import Drop, Paid
from experiments.workloads.dns.stubs import STUBS
from tests.conftest import why_no_namespace
from tests.net.binomial import interval
from tests.net.lab import ADDRESS, bed
from tests.net.measure import Wrong, again_if_late, lateness_of
from tests.relay.netns import Namespace, namespace
from tests.relay.waiting import until

HERE = "127.0.0.1"
PORTS = (5300, 5302, 5301)
LOST = 0.02
FAILS = 1 - (1 - LOST) ** 2  # of a query or of its answer
QUERIES = 3000
EVERY_S = 0.001
WAIT_S = 1.5  # a busy machine answers in less, mostly
Found = dict[str, Any]


@pytest.fixture
def ends() -> Iterator[tuple[Namespace, Namespace]]:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with namespace("client") as client, namespace("resolver") as resolver:
        yield client, resolver


@contextmanager
def resolving(inside: Namespace, folder: Path, address: str) -> Iterator[None]:
    """unbound, by TLS too if a certificate is there."""
    try:
        argv = unbound.command(folder, address, PORTS, tls=(folder / "certificate.pem").exists())
    except BadInput as missing:
        pytest.skip(str(missing))
    log = folder / "unbound.log"
    with log.open("wb") as said:
        process = subprocess.Popen(inside.command(argv), stderr=said)
    try:
        until("unbound", lambda: unbound.READY in log.read_text())
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


def asked(**told: Any) -> Found:
    waits = told.pop("waits", None)

    async def within() -> Found:
        return await asyncio.wait_for(Client(**told).run(waits), 30)

    return asyncio.run(within())


# --- losses ---


@dataclass
class Lossy:
    """A resolver behind a link that loses packets, asked anew each time."""

    ends: tuple[Namespace, Namespace]
    folder: Path
    late: list[str] = field(default_factory=list)

    def ask(self) -> tuple[Found, list[Drop]]:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        drops = folder / "drops.jsonl"
        way = {"delay_ms": 10, "loss": f"bernoulli:{LOST}"}
        link = bed(self.ends, folder, ab=way, ba=way, options=("--drops", drops))
        with link as lab, resolving(self.ends[1], folder, ADDRESS[1]), self.ends[0].entered():
            words = {"address": ADDRESS[1], "port": PORTS[0], "queries": QUERIES}
            found = asked(**words, every_s=EVERY_S, waits=(WAIT_S,) * 8)
            self.late = lateness_of("the link", lab.link.truth())
        if found["late"]:
            self.late.append(f"{found['late']} answers came when they were not awaited any more")
        return found, losses.read(drops)

    def check(self) -> None:
        found, its = self.ask()
        tries, took = found["tries"], found["took_s"]
        paid, others = losses.paid(found["sent"], its)
        if others or len(paid) != len(its):
            raise Wrong(f"nobody paid for {others}")
        if why := losses.unexplained(tries, took, paid):
            raise Wrong(why)
        steps = Counter(tries)
        for again in range(4):
            least, most = interval(QUERIES, (1 - FAILS) * FAILS**again)
            if not least <= steps[again + 1] <= most:
                raise Wrong(f"{steps} queries took that many tries, wanted {least} to {most}")
        for tried, seconds in zip(tries, took, strict=True):
            if seconds < (tried - 1) * WAIT_S + 0.02:
                raise Wrong(f"{tried} tries in {seconds} s")


def test_losses_cost_as_many_tries_as_chance_has_it_and_each_is_found(
    ends: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    it = Lossy(ends, tmp_path)
    again_if_late(lambda: it.late, "losses", it.check)


def test_a_query_pays_for_the_packets_of_its_tries() -> None:
    sent = [0, 1, 2, 1, 0]
    up, down = Drop("up", 1, "lost"), Drop("down", 0, "lost")
    stray = Drop("down", 4, "lost")
    paid, others = losses.paid(sent, [up, down, stray])
    assert paid == [Paid(up, 1), Paid(down, 0)]
    assert others == [stray]
    took: list[float | None] = [1.0, 1.0, 0.1]
    assert losses.unexplained([2, 2, 1], took, paid) == ""
    assert "query 2 was lost 0 times and asked 2 times" in losses.unexplained([2, 2, 2], took, paid)
    assert losses.unexplained([2, 1, 1], [1.0, None, 0.1], paid) == ""
    assert "query 0 was lost 1" in losses.unexplained([1, 2, 1], took, paid)


# --- ways ---


def test_connections_carry_queries_too(box: Namespace, tmp_path: Path) -> None:
    shown = tmp_path / "certificate.pem"
    certificate.make(shown, tmp_path / "key.pem", [unbound.NAME])
    kinds: dict[Kind, Found] = {
        "udp": {},
        "tcp": {},
        "tls": {"authority": str(shown), "port": PORTS[2]},
        "fresh": {},
    }
    with resolving(box, tmp_path, HERE), box.entered():
        for kind, more in kinds.items():
            words = {"address": HERE, "port": PORTS[0], "queries": 60, "burst": 3, **more}
            found = asked(kind=kind, every_s=0.002, **words)
            assert found["kind"] == kind
            assert found["tries"] == [1] * 60
            assert sorted(found["sent"]) == list(range(60))
            assert all(0 < it < 2 for it in found["took_s"])


def test_a_port_gets_nodelay_by_another_process() -> None:
    listening = [socket.create_server((HERE, 0)) for _ in range(2)]
    ports = [sock.getsockname()[1] for sock in listening]
    nodelay.set_on(os.getpid(), ports[1])
    for wanted, sock, port in zip((0, 1), listening, ports, strict=True):
        with sock, socket.create_connection((HERE, port)), sock.accept()[0] as came:
            assert bool(came.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) == wanted
    with pytest.raises(OSError, match="does not listen on port 1"):
        nodelay.set_on(os.getpid(), 1)


def test_stubs_ask_again_until_they_fail() -> None:
    assert STUBS["glibc"].waits() == (5,) * 8
    assert STUBS["bionic"].waits() == (5,) * 6
    assert STUBS["fixed"].waits() == (3,) * 10
    assert STUBS["windows"].waits() == (1, 2, 4, 5)
    assert STUBS["osx"].waits() == STUBS["ios"].waits() == (1, 2, 4, 8, 15)


# --- what comes wrong ---


def right(wire: bytes) -> bytes:
    query = dns.message.from_wire(wire)
    answer = dns.message.make_response(query)
    rrset = dns.rrset.from_text(query.question[0].name, 60, "IN", "A", zone.address(query.id))
    answer.answer.append(rrset)
    return answer.to_wire()


def of_another_id(wire: bytes) -> bytes:
    return (int.from_bytes(wire[:2]) ^ 0x4000).to_bytes(2) + right(wire)[2:]


def to_another_question(wire: bytes) -> bytes:
    other = dns.message.make_query("other.test.", "A", id=int.from_bytes(wire[:2]))
    return dns.message.make_response(other).to_wire()


def refused(wire: bytes) -> bytes:
    answer = dns.message.make_response(dns.message.from_wire(wire))
    answer.set_rcode(dns.rcode.REFUSED)
    return answer.to_wire()


def cut_short(wire: bytes) -> bytes:
    answer = dns.message.from_wire(right(wire))
    answer.flags |= dns.flags.TC
    return answer.to_wire()


def with_another_address(wire: bytes) -> bytes:
    return right(wire)[:-1] + b"\xff"


WRONG: list[tuple[Callable[[bytes], bytes], str]] = [
    (of_another_id, "id 16384, which was not asked|query 0 has another id"),
    (to_another_question, "id 0 is to another question"),
    (refused, "id 0 is REFUSED, not an address"),
    (cut_short, "id 0 is cut short"),
    (with_another_address, "id 0 is .*255.*, not 192.0.2.0"),
    (lambda wire: right(wire)[:5], "5 bytes is no DNS message"),
    (lambda wire: right(wire)[:-3], "id 0 cannot be read"),
]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Replies(asyncio.DatagramProtocol):
    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(self._answer(data), addr)


async def by_datagrams(answer: Callable[[bytes], bytes]) -> Found:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: Replies(answer), local_addr=(HERE, 0)
    )
    port = transport.get_extra_info("sockname")[1]
    try:
        return await Client(address=HERE, port=port, queries=2, every_s=0.01).run()
    finally:
        transport.close()


async def by_stream(kind: Kind, serve: Serve, **more: Any) -> Found:
    server = await asyncio.start_server(serve, HERE, 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        words: Found = {"queries": 2, "every_s": 0.01, **more}
        return await Client(address=HERE, port=port, kind=kind, **words).run()


def saying(made: Callable[[bytes], bytes]) -> Serve:
    """`made` of the first query, with its length; then the end, but no reset."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(2))
        writer.write(made(await reader.readexactly(length)))
        writer.write_eof()
        await reader.read()
        writer.close()

    return serve


def framed(answer: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda wire: len(answer(wire)).to_bytes(2) + answer(wire)


@pytest.mark.parametrize("answer, says", WRONG)
def test_a_wrong_answer_is_said(answer: Callable[[bytes], bytes], says: str) -> None:
    with pytest.raises(WrongAnswer, match=says):
        asyncio.run(by_datagrams(answer))
    for kind in ("tcp", "fresh"):
        with pytest.raises(WrongAnswer, match=says):
            asyncio.run(by_stream(kind, saying(framed(answer))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "made, says",
    [
        (lambda wire: framed(right)(wire)[:20], "ended after 18 of the .* bytes of an answer"),
        (lambda wire: b"\0", "ended in the length of an answer"),
        (lambda wire: b"", "ended before the next answer"),
        (framed(right), "ended before the next answer"),  # that to the second query
    ],
)
def test_a_length_that_is_not_kept_is_said(made: Callable[[bytes], bytes], says: str) -> None:
    with pytest.raises(Unanswered, match=says):
        asyncio.run(by_stream("tcp", saying(made)))


def test_who_does_not_answer_is_not_waited_for_for_ever() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    with pytest.raises(Unanswered, match="2 of 2 queries have no answer in time"):
        asyncio.run(by_stream("tcp", silent, limit_s=0.1))


def test_an_answer_that_nobody_awaits_is_late() -> None:
    """To a query that had one, or was given up: each tells that something waited too short."""

    async def work() -> Found:
        asking = Asking(2)
        had, given_up = (asking.begin(number) for number in range(2))
        given_up.cancel()
        for number in (0, 0, 1):
            asking.came(right(questions.query(number)))
        assert had.done()
        return asking.found()

    found = asyncio.run(work())
    assert found["late"] == 2
    assert found["took_s"][0] is not None and found["took_s"][1] is None


def test_nobody_there_is_said(box: Namespace) -> None:
    with box.entered():
        with pytest.raises(Unanswered, match="cannot be reached"):
            asked(address=HERE, port=PORTS[0], queries=2, every_s=0.05)
        for kind in ("tcp", "fresh"):
            with pytest.raises(ConnectionRefusedError):
                asked(address=HERE, port=PORTS[0], kind=kind, queries=2, every_s=0.05)


# --- the distribution ---


def test_the_share_that_takes_longer() -> None:
    curve = distribution.ccdf([0.02] * 96 + [3.02] * 3, unanswered=1)
    assert curve == [(0.02, 0.04), (3.02, 0.01)]
    [level] = distribution.plateaus([0.02] * 96 + [3.02] * 3, unanswered=1)
    assert level == distribution.Plateau(0.04, 0.02, 3.02)
    assert not distribution.plateaus([0.02] * 98 + [3.02] * 2)  # too few
    assert not distribution.plateaus([0.02 * 1.3**n for n in range(9)])  # no level part
    with pytest.raises(ValueError, match="no query"):
        distribution.ccdf([], unanswered=3)


# --- the command ---


BAD: list[tuple[list[str], str]] = [
    (["--kind", "quic"], "kind: 'quic' is none of udp, tcp, tls, fresh"),
    (["--stub", "musl"], "stub: 'musl' is none of fixed, glibc"),
    (["--queries", "0"], "queries: "),
    (["--queries", "65537"], "queries: 65537 is not from 1 to 65536"),
    (["--queries", "many"], "queries: "),
    (["--burst", "9", "--queries", "8"], "burst: 9 is not from 1 to the 8 queries"),
    (["--every-ms", "0"], "every_ms: "),
    (["--port", "70000"], "port: "),
    (["--kind", "tls"], "authority: a certificate goes with tls"),
    (["--authority", "x"], "authority: a certificate goes with tls"),
    (["--kind", "tls", "--authority", "/nosuch"], "authority: there is no file /nosuch"),
]


@pytest.mark.parametrize("words, says", BAD)
def test_bad_input_is_one_line(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dns", HERE, *words])
    with pytest.raises(SystemExit) as ended:
        program.main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.out == ""
    assert said.err.startswith(f"dns: {says}")
    assert said.err.count("\n") == 1


def test_the_command_writes_json_and_a_curve(box: Namespace, tmp_path: Path) -> None:
    with resolving(box, tmp_path, HERE):
        argv = [sys.executable, "-m", "experiments.workloads.dns", HERE, "--port", str(PORTS[0])]
        argv += ["--queries", "20", "--every-ms", "1", "--ccdf", str(tmp_path / "curve")]
        said = box.run("env", "-C", str(ROOT), *argv)
    assert '"unanswered": 0' in said
    lines = [line.split() for line in (tmp_path / "curve").read_text().splitlines()]
    assert [float(share) for _, share in lines] == sorted(
        (float(share) for _, share in lines), reverse=True
    )
    assert math.isclose(float(lines[-1][1]), 0)
