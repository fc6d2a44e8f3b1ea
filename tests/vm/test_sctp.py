# SPDX-License-Identifier: MIT
"""Pipes over SCTP, in the guest's kernel: over loss and disorder, beside TCP pipes, and abused.

near (lp, clients) --- 10.77.0.0/24, netem --- far (rp, servers)
"""

import os
import random
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from base.pressure import OwnTime
from tests.relay import payload, records, wire
from tests.relay.ends import (
    Ending,
    echo,
    read_exactly,
    read_to_end,
    reading,
    send_all,
    sending,
    serving,
    socks,
)
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import LP_READY, Pair, local_proxy, pair, remote_proxy
from tests.relay.servers import nginx
from tests.relay.waiting import equals, until
from topologies.devices import receive_in_order

Two = tuple[Namespace, Namespace]
pytestmark = [
    pytest.mark.skipif(
        os.environ.get("TM3_GUEST") != "1", reason="SCTP is of the guest's kernel: make test-vm"
    ),
    pytest.mark.timeout(180),
]
RP = "10.77.0.2"
SCTP = ["--pipe", "sctp"]
MIXED = ["--pipe", "tcp:2,sctp:2"]
SNDINFO = struct.Struct("HHIIi")  # stream, flags, protocol, context, association
CMSG_SNDINFO = 2
UNORDERED = 1
BIG = 20_000_000


def link(two: Two, *netem: str) -> None:
    """Both ways: netem with these words; packets as they are on a wire, and in their order.

    Two processors that take turns at one device reorder what it receives, the more the longer a
    busy machine keeps one of them from running; TCP and SCTP take that for loss.
    """
    for ns, device in zip(two, ("wire-l", "wire-r"), strict=True):
        ns.run("ethtool", "-K", device, "gso", "off", "tso", "off", "gro", "off")
        receive_in_order(ns.path, device)
        ns.run("tc", "qdisc", "replace", "dev", device, "root", "netem", "limit", "2000", *netem)


@contextmanager
def proxies(two: Two, tmp: Path, *both: str) -> Iterator[Pair]:
    near, far = two
    stats = {who: ["--stats", str(tmp / f"{who}.jsonl")] for who in ("rp", "lp")}
    words = {"both": both, "rp": stats["rp"], "lp": stats["lp"], "asan": False}
    with pair(far, tmp, lp_ns=near, to=RP, **words) as running:
        yield running


def last(tmp: Path, who: str) -> list[records.Record]:
    return records.last_of_pipes(tmp / f"{who}.jsonl")


def works(near: Namespace, port: int) -> None:
    with socks(near, RP, port) as sock:
        sock.sendall(b"alive")
        assert read_exactly(sock, 5) == b"alive"


# --- bytes ---------------------------------------------------------------------------------------


def test_a_page_over_loss(two: Two, tmp_path: Path) -> None:
    """curl fetches 20 MB over four pipes while one packet in a hundred is lost."""
    near, far = two
    link(two, "delay", "2ms", "loss", "1%")
    root = tmp_path / "root"
    root.mkdir()
    sha = payload.write(root / "page", BIG)
    got = tmp_path / "got"
    with nginx(far, tmp_path, root, address=RP), proxies(two, tmp_path, *SCTP) as running:
        assert "listening on 0.0.0.0:6000 for 4 pipes over sctp\n" in running.rp.log
        argv = ["curl", "-sS", "--fail", "--speed-time", "60", "--speed-limit", "1", "-o", got]
        near.run(*argv, "--socks5", "127.0.0.1:1080", f"http://{RP}:8080/page", seconds=150)
        assert payload.file_digest(got) == sha
        link(two, "delay", "2ms")
        clock = OwnTime()
        running.lp.stop()
        assert clock.passed_s() < 0.9, "lp waited for pipes that had ended"
        running.rp.expect("session 1 of 10.77.0.1 ended: pipe . was closed by the other end")
    pipes = last(tmp_path, "rp")
    assert [pipe["transport"] for pipe in pipes] == ["sctp"] * 4
    assert all(pipe["tx_bytes"] > BIG / 40 for pipe in pipes), "a pipe was left out"
    lost = sum(p["retransmits"] for p in pipes) / sum(p["segments"] for p in pipes)
    assert 0.004 < lost < 0.05, f"{lost:.2%} was sent again where 1 % was lost"


@pytest.mark.parametrize("more", [[], ["--binding", "early"]], ids=" ".join)
def test_both_ways_over_disorder(two: Two, tmp_path: Path, more: list[str]) -> None:
    """Messages overtake each other on a pipe, and some are lost: applications see no trace."""
    near, far = two
    link(two, "delay", "10ms", "reorder", "75%", "loss", "0.5%")
    data = payload.seeded(2_000_000, seed=4)
    whole = Ending("eof", len(data), payload.digest(data))

    def download(port: int) -> Ending:
        with socks(near, RP, port) as sock:
            return read_to_end(sock, 40)

    with (
        ThreadPoolExecutor() as pool,  # waits for its threads, which end with the proxies
        serving(far, sending(data), (RP, 0)) as source,
        serving(far, read_to_end, (RP, 0)) as sink,
        proxies(two, tmp_path, *SCTP, *more) as running,
    ):
        downloads = [pool.submit(download, source.port) for _ in range(2)]
        with socks(near, RP, sink.port) as sock:
            send_all(sock, data, 40)
        assert [it.result() for it in downloads] == [whole] * 2
        assert len(running.rp.lines("do not tell enough for --aggregate delay")) == (not more)
        assert sink.results.get(timeout=30) == whole


def test_a_mixed_set_follows_the_loss(two: Two, tmp_path: Path) -> None:
    """On TCP while the path is clean, on SCTP while it is not, and back; said once a time."""
    near, far = two
    clean = ("delay", "5ms", "rate", "16mbit")
    link(two, *clean)
    stop = threading.Event()
    block = payload.seeded(1 << 16)

    def pour(sock: socket.socket) -> int:
        sent = 0
        while not stop.is_set():
            sock.sendall(block)
            sent += len(block)
        return sent

    def carried(kind: str) -> int:
        return sum(p["tx_bytes"] for p in last(tmp_path, "rp") if p["transport"] == kind)

    def carried_by() -> str:
        return records.of(tmp_path / "rp.jsonl", "losses")[-1]["carried_by"]

    with (
        serving(far, pour, (RP, 0)) as source,
        proxies(two, tmp_path, *MIXED, "--stats-interval", "0.2") as running,
        socks(near, RP, source.port) as sock,
        reading(sock) as ended,
    ):
        until("a first megabyte over TCP", lambda: carried("tcp") > 1_000_000, 20)
        assert carried("sctp") == 0
        link(two, *clean, "loss", "3%")
        running.rp.expect(r"session 1: \d\.\d\d % of what the other pipes sent .*over sctp", 20)
        until("a sample of after the switch", lambda: carried_by() == "sctp", 20)
        before = carried("tcp")
        until("a megabyte over SCTP", lambda: carried("sctp") > 1_000_000, 20)
        assert carried("tcp") < before + 300_000
        link(two, *clean)
        running.rp.expect(r"session 1: .* of what the sctp pipes sent .*over the other pipes", 20)
        until("a sample of after that", lambda: carried_by() == "others", 20)
        before = carried("tcp")
        until("a megabyte over TCP again", lambda: carried("tcp") > before + 1_000_000, 20)
        stop.set()
        end = ended()
        assert len(running.rp.lines("sending over")) == 2
    assert end.how == "eof"
    assert end.size == source.results.get(timeout=5)
    assert records.of(tmp_path / "rp.jsonl", "losses")[-1]["switches"] == 2


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["lp", "rp"])
def test_killed(two: Two, tmp_path: Path, victim: str) -> None:
    near, far = two
    with (
        serving(far, echo, (RP, 0)) as mirror,
        remote_proxy(far, tmp_path, *SCTP, asan=False) as rp,
    ):
        idle = rp.fd_count()
        with local_proxy(near, tmp_path, *SCTP, to=RP, asan=False) as lp:
            with socks(near, RP, mirror.port) as sock:
                sock.sendall(b"alive")
                assert read_exactly(sock, 5) == b"alive"
                if victim == "lp":
                    lp.kill()
                    rp.expect("session 1 of 10.77.0.1 ended: ")
                    equals("rp's descriptors", rp.fd_count, idle)
                else:
                    rp.kill()
                assert read_to_end(sock).how == "reset"
            if victim == "rp":
                with remote_proxy(far, tmp_path, *SCTP, asan=False, name="next"):
                    lp.expect(LP_READY, 20, count=2)
                    works(near, mirror.port)
        if victim == "lp":
            with local_proxy(near, tmp_path, *SCTP, to=RP, asan=False, name="next"):
                works(near, mirror.port)


def test_who_does_not_take_sctp(two: Two, tmp_path: Path) -> None:
    """lp says what is missing, goes on dialling, and is there when it comes."""
    near, far = two
    with serving(far, echo, (RP, 0)) as mirror:
        with local_proxy(near, tmp_path, *MIXED, to=RP, asan=False, ready=None) as lp:
            lp.expect(r"lp: no pipes to 10\.77\.0\.2:6000: Connection refused; trying again")
            with remote_proxy(far, tmp_path, asan=False):
                lp.expect(
                    r"lp: no pipes to 10\.77\.0\.2:6000: sctp: Connection refused; "
                    r"rp takes it when its --pipe names it; trying again"
                )
            with remote_proxy(far, tmp_path, "--pipe", "sctp,tcp", asan=False, name="next"):
                lp.expect(LP_READY, 20)
                works(near, mirror.port)
            assert len(lp.lines("no pipes to")) <= 4, lp.log


# --- by hand -------------------------------------------------------------------------------------


@contextmanager
def raw_pipes(ns: Namespace, n: int = 4) -> Iterator[list[socket.socket]]:
    """The test is lp: associations with rp."""
    pipes: list[socket.socket] = []
    try:
        for _ in range(n):
            with ns.entered():
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
            pipes.append(sock)
            sock.settimeout(10)
            sock.connect((RP, 6000))
        yield pipes
    finally:
        for sock in pipes:
            sock.close()


def send(pipe: socket.socket, message: bytes, stream: int = 0, *, unordered: bool = True) -> None:
    info = SNDINFO.pack(stream, UNORDERED if unordered else 0, 0, 0, 0)
    pipe.sendmsg([message], [(socket.IPPROTO_SCTP, CMSG_SNDINFO, info)])


@pytest.fixture
def rp(two: Two, tmp_path: Path) -> Iterator[Program]:
    with remote_proxy(two[1], tmp_path, *SCTP, asan=False) as running:
        yield running


def test_messages_in_any_order_on_any_stream(two: Two, rp: Program) -> None:
    near, far = two
    pieces = [bytes([65 + i % 26]) * (1 + 97 * i % 4096) for i in range(200)]
    text = b"".join(pieces)
    with (
        serving(far, lambda sock: read_exactly(sock, len(text)), (RP, 0)) as server,
        raw_pipes(near) as pipes,
    ):
        messages = [wire.syn(7, RP, server.port)]
        messages += [wire.data(7, 1 + i, piece) for i, piece in enumerate(pieces)]
        random.Random(5).shuffle(messages)
        for i, message in enumerate(messages):
            send(pipes[i % 4], message, i % 10, unordered=bool(i % 3))
        assert server.results.get(timeout=10) == text
    rp.expect("session 1 of 10.77.0.1 ended")


GARBAGE = [
    (b"x", "no whole message in 1 bytes of SCTP"),
    (wire.header(1, 0, 100), "no whole message in 8 bytes of SCTP"),
    (wire.data(1, 1, b"abc")[:-1], "no whole message in 10 bytes of SCTP"),
    (wire.data(1, 1, b"abc") + b"d", "a message of 11 bytes in 12 bytes of SCTP"),
    (wire.data(1, 1, b"a") + wire.data(1, 2, b"b"), "a message of 9 bytes in 18 bytes of SCTP"),
    (wire.header(1, 0, 0) + bytes(40), "0 is neither 9 to 4104, SYN nor FIN"),
    (wire.header(1, 0, 4105) + bytes(4097), "more than any message has in one of SCTP's"),
    (bytes(150_000), "more than any message has in one of SCTP's"),
    (b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", "21576 is neither 9 to 4104"),
]


def test_garbage_ends_the_session_and_nothing_else(two: Two, rp: Program) -> None:
    near, far = two
    idle = rp.fd_count()
    with serving(far, echo, (RP, 0)) as mirror:
        for turn, (garbage, complaint) in enumerate(GARBAGE, 1):
            with raw_pipes(near) as pipes:
                send(pipes[0], wire.syn(3, RP, mirror.port), unordered=False)
                rp.expect(f"session {turn}: 4 pipes")
                send(pipes[2], garbage)
                line = rp.expect(f"session {turn}: pipe ., byte 0, length: .*session ended")
                assert complaint in line
                assert read_to_end(pipes[1]).how in ("eof", "reset")
        equals("rp's descriptors", rp.fd_count, idle)


def test_noise(two: Two, rp: Program, tmp_path: Path) -> None:
    """Seeded: cut, joined, flipped and random messages; rp lives, and its next peer is served."""
    near, far = two
    rng = random.Random(77)
    idle = rp.fd_count()
    with serving(far, echo, (RP, 0)) as mirror:
        good = [wire.syn(9, RP, mirror.port), wire.data(9, 1, b"some data"), wire.fin(9, 2)]
        for _ in range(12):
            with raw_pipes(near) as pipes:
                try:
                    for _ in range(40):
                        message = bytearray(rng.choice(good))
                        message[rng.randrange(len(message))] = rng.randrange(256)
                        message += rng.randbytes(rng.choice((0, 0, 0, 1, 5000)))
                        send(rng.choice(pipes), bytes(message), rng.randrange(10))
                except (BrokenPipeError, ConnectionResetError):
                    pass
        equals("rp's descriptors", rp.fd_count, idle, 20)
        with local_proxy(near, tmp_path, *SCTP, to=RP, asan=False):
            works(near, mirror.port)
