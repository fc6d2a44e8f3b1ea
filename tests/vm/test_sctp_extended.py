# SPDX-License-Identifier: MIT
"""The extension over pipes of SCTP, in the guest's kernel: pipes die, and no byte is missed.

near (lp, clients) --- 10.77.0.0/24, netem --- far (rp, servers)
"""

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.relay import payload, records, wire, wire_ext
from tests.relay.associations import associations, dark
from tests.relay.ends import (
    Ending,
    echo,
    read_exactly,
    read_to_end,
    send_all,
    sending,
    serving,
    socks,
)
from tests.relay.programs import Program
from tests.relay.proxies import LP_READY, Pair, local_proxy, pair, remote_proxy
from tests.relay.soak import SOAK_S
from tests.relay.test_roaming import GONE, behind_one_address, moves_home
from tests.relay.traffic import BOTH, traffic
from tests.relay.waiting import until
from tests.vm.test_sctp import CMSG_SNDINFO, MIXED, RP, SCTP, SNDINFO, UNORDERED, Two, link, works
from topologies.lab import Lab
from topologies.topos import LastMile

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("TM3_GUEST") != "1", reason="SCTP is of the guest's kernel: make test-vm"
    ),
    pytest.mark.timeout(240),
]
ALLOW = ["--allow", "10.77.0.1"]
ALWAYS = ["--extend", "always"]
RCVINFO = 32  # socket option: each message comes with its PPID
CMSG_RCVINFO = 3
WINDOW = wire.data(0, 0, struct.pack("<BHQ", 4, 9, 1))  # of an id that is not in use: it counts
SIZE = 3_000_000
FORWARD = 7000
ABORTS_S = max(40.0, min(180.0, SOAK_S))  # of the guest's time


@contextmanager
def proxies(two: Two, tmp: Path, *both: str) -> Iterator[Pair]:
    near, far = two
    words = {
        "rp": [*ALLOW, "--stats", str(tmp / "rp.jsonl"), "--stats-interval", "0.5"],
        "lp": [*ALWAYS, "--stats", str(tmp / "lp.jsonl"), "--stats-interval", "0.5"],
    }
    with pair(far, tmp, lp_ns=near, to=RP, both=both, asan=False, **words) as running:
        yield running


def sent_over(tmp: Path, who: str, kind: str) -> int:
    pipes = records.of(tmp / f"{who}.jsonl", "pipe")
    return max((p["tx_bytes"] for p in pipes if p["transport"] == kind), default=0)


def both_ways(two: Two, pool: ThreadPoolExecutor, data: bytes, source: int, sink: int) -> list:
    """Two downloads and an upload under way: what each will have come to."""

    def download() -> Ending:
        with socks(two[0], RP, source) as sock:
            return read_to_end(sock, 100)

    def upload() -> Ending:
        with socks(two[0], RP, sink) as sock:
            send_all(sock, data, 100)
            sock.shutdown(socket.SHUT_WR)
            return read_to_end(sock, 100)

    return [pool.submit(download), pool.submit(download), pool.submit(upload)]


@pytest.mark.parametrize("pipes", [SCTP, MIXED], ids=["sctp", "mixed"])
def test_pipes_die_and_no_byte_is_missed(two: Two, tmp_path: Path, pipes: list[str]) -> None:
    """Loss and disorder, and every half second a pipe over SCTP is aborted under both proxies."""
    near, far = two
    link(two, "delay", "5ms", "reorder", "75%", "loss", "1.5%", "rate", "8mbit")
    data = payload.seeded(SIZE, seed=7)
    whole = Ending("eof", len(data), payload.digest(data))
    with (
        ThreadPoolExecutor() as pool,
        serving(far, sending(data), (RP, 0)) as source,
        serving(far, read_to_end, (RP, 0)) as sink,
        proxies(two, tmp_path, *pipes) as running,
        associations(far) as wire_of,
    ):
        under_way = both_ways(two, pool, data, source.port, sink.port)
        pause = threading.Event()
        until("SCTP to carry", lambda: sent_over(tmp_path, "rp", "sctp") > 100_000, 60)
        for _ in range(6):
            wire_of.kill_one()
            pause.wait(0.5)
        downs = [it.result() for it in under_way]
        assert downs[:2] == [whole] * 2
        assert downs[2].how == "eof" and sink.results.get(timeout=30) == whole
        assert wire_of.killed == 6
        running.lp.expect(r"session 1: pipe \d failed: .*pipes? (is|are) left", 10)
        running.lp.expect(LP_READY, 30, count=2)
        for who in (running.lp, running.rp):
            assert not who.lines("brought"), who.log
            assert not who.lines("session 1 .*ended"), "the session did not outlive its pipes"
        with serving(far, echo, (RP, 0)) as mirror:
            works(near, mirror.port)


@pytest.mark.timeout(200 + ABORTS_S)
def test_no_request_arrives_twice(two: Two, tmp_path: Path) -> None:
    """Pipes are aborted one after the other, and the server counts what it is asked."""
    near, far = two
    link(two, "delay", "5ms", "rate", "4mbit")
    words = [*SCTP, "--forward", f"{FORWARD}:{RP}:8000"]
    with (
        remote_proxy(far, tmp_path, *SCTP, *ALLOW, asan=False) as rp,
        local_proxy(near, tmp_path, *words, *ALWAYS, to=RP, asan=False) as lp,
        associations(far) as wire_of,
        traffic(near, FORWARD, workers=2, most=50_000, far=far, host=RP) as going,
    ):
        ends_at = time.monotonic() + ABORTS_S
        killed = set()  # by lp's port: each pipe has one of its own
        while time.monotonic() < ends_at and not going.wrong:
            killed.add(wire_of.kill_one())
            time.sleep(0.3)
        for who in (lp, rp):
            assert not who.lines("brought"), who.log
            assert not who.lines("session 1 .*ended"), "the session did not outlive its pipes"
    assert len(killed) > ABORTS_S / 2, f"{len(killed)} pipes were aborted"
    assert lp.lines(r"session 1: pipe \d failed: .*pipes? (is|are) left")
    assert going.done[BOTH] > ABORTS_S / 2, going.done


def test_another_address_behind_the_same_one(two: Two, tmp_path: Path) -> None:
    """lp's host moves twice behind who translates: connections go on, and no byte is missed.

    There is no key over SCTP, so rp has to see lp come from where its session began.
    """
    link(two, "delay", "5ms", "rate", "8mbit")
    data = payload.seeded(SIZE // 2, seed=11)
    whole = Ending("eof", len(data), payload.digest(data))
    with (
        ThreadPoolExecutor() as pool,
        behind_one_address(two) as (home, far),
        serving(far, sending(data), (RP, 0)) as source,
        serving(far, read_to_end, (RP, 0)) as sink,
        proxies((home, far), tmp_path, *SCTP) as running,
    ):
        under_way = both_ways((home, far), pool, data, source.port, sink.port)
        until("SCTP to carry", lambda: sent_over(tmp_path, "rp", "sctp") > 100_000, 60)
        for times, (old, new) in enumerate(((1, 3), (3, 4)), start=1):
            assert not any(it.done() for it in under_way)
            moves_home(home, old, new)
            running.lp.expect(LP_READY, 30, count=times + 1)
        downs = [it.result() for it in under_way]
        assert downs[:2] == [whole] * 2
        assert downs[2].how == "eof" and sink.results.get(timeout=30) == whole
        assert not running.rp.lines("session 2"), "the session did not outlive its address"
        assert len(running.lp.lines(GONE)) == 8


def test_a_mixed_set_lives_on_what_is_left(two: Two, tmp_path: Path) -> None:
    """TCP's pipes go dark, SCTP's carry; and when TCP is there again its pipes come back."""
    near, far = two
    link(two, "delay", "5ms", "rate", "16mbit")
    data = payload.seeded(4 * SIZE, seed=8)
    with (
        serving(far, sending(data), (RP, 0)) as source,
        proxies(two, tmp_path, *MIXED) as running,
        socks(near, RP, source.port) as sock,
    ):
        got = read_exactly(sock, 1_000_000)
        assert sent_over(tmp_path, "rp", "sctp") < 100_000, "TCP was to carry while all is well"
        with dark(far, "tcp"):
            got += read_exactly(sock, SIZE)
            until("SCTP to carry", lambda: sent_over(tmp_path, "rp", "sctp") > SIZE / 6, 30)
            running.rp.expect(r"session 1: pipe \d: nothing was acknowledged for", 30)
        got += read_exactly(sock, len(data) - len(got))
        assert got == data
        running.lp.expect(LP_READY, 30, count=2)
        assert not running.rp.lines("session 1 .*ended")


@contextmanager
def downloading(two: Two, tmp: Path) -> Iterator[tuple[Pair, Callable[[], None]]]:
    """A download over SCTP is under way until whoever has it end: then more, and all of it came."""
    near, far = two
    link(two, "delay", "5ms", "rate", "8mbit")
    data, block = payload.seeded(SIZE, seed=9), payload.seeded(8192, seed=10)
    rest = threading.Event()

    def download(sock: socket.socket) -> Ending:
        while not rest.wait(0.02):
            sock.sendall(block)
        sock.sendall(data)
        return Ending("eof", 0, "")

    def everything(sock: socket.socket) -> bytes:
        sock.settimeout(60)
        return b"".join(iter(lambda: sock.recv(1 << 16), b""))

    with (
        ThreadPoolExecutor() as pool,
        serving(far, download, (RP, 0)) as source,
        proxies(two, tmp, *SCTP) as running,
        socks(near, RP, source.port) as sock,
    ):
        assert read_exactly(sock, len(block)) == block
        rest_of_it = pool.submit(everything, sock)

        def ends() -> None:
            rest.set()
            got = rest_of_it.result(120)
            blocks, end = got[: len(got) - len(data)], got[len(got) - len(data) :]
            assert end == data and blocks == block * (len(blocks) // len(block))

        try:
            yield running, ends
        finally:
            rest.set()
        for who in (running.lp, running.rp):
            assert not who.lines("session 1 .*ended"), "the session did not outlive its pipes"


@pytest.mark.parametrize("ways", [("up",), ("down",), ("up", "down")], ids="-".join)
def test_a_dark_pipe(two: Two, tmp_path: Path, ways: tuple[str, ...]) -> None:
    """Its bytes go on the others, long before SCTP gives it up."""
    with associations(two[1]) as wire_of, downloading(two, tmp_path) as (running, ends):
        with dark(two[1], "sctp", wire_of.in_use(), ways):
            ends()
            given_up = r"session 1: pipe \d: nothing was acknowledged for"
            until(
                "either to give it up",
                lambda: running.rp.lines(given_up) or running.lp.lines(given_up),
                30,
            )
        running.lp.expect(LP_READY, 30, count=2)


def test_all_pipes_are_dark(two: Two, tmp_path: Path) -> None:
    with downloading(two, tmp_path) as (_, ends):
        with dark(two[1], "sctp"):
            time.sleep(30)  # what is tested
        ends()


@pytest.mark.parametrize("which", ["lp", "rp"])
def test_a_proxy_is_frozen(two: Two, tmp_path: Path, which: str) -> None:
    with downloading(two, tmp_path) as (running, ends):
        proxy = running.lp if which == "lp" else running.rp
        proxy.send_signal(signal.SIGSTOP)
        time.sleep(20)  # what is tested
        proxy.send_signal(signal.SIGCONT)
        ends()


def greet(sock: socket.socket) -> Ending:
    sock.sendall(b"hello")
    return read_to_end(sock, 60)


@pytest.mark.parametrize("victim", ["lp", "rp"])
def test_killed(two: Two, tmp_path: Path, victim: str) -> None:
    """Its end is a reset for application and server alike, and the next one has a session."""
    near, far = two
    rp_words = [*SCTP, *ALLOW, "--resume", "1"]
    lp_words = [*SCTP, *ALWAYS]
    with (
        ThreadPoolExecutor() as pool,
        serving(far, greet, (RP, 0)) as greeter,
        serving(far, echo, (RP, 0)) as mirror,
        ExitStack() as stack,
    ):
        rp = stack.enter_context(remote_proxy(far, tmp_path, *rp_words, asan=False))
        lp = stack.enter_context(local_proxy(near, tmp_path, *lp_words, to=RP, asan=False))
        with socks(near, RP, greeter.port) as sock:
            assert read_exactly(sock, 5) == b"hello"
            reader = pool.submit(read_to_end, sock, 60)
            (lp if victim == "lp" else rp).kill()
            assert reader.result(60).how == "reset"
            assert greeter.results.get(timeout=60).how == "reset"
        if victim == "lp":
            words = {"to": RP, "asan": False, "name": "next"}
            stack.enter_context(local_proxy(near, tmp_path, *lp_words, **words))
        else:
            words = {"asan": False, "name": "next"}
            stack.enter_context(remote_proxy(far, tmp_path, *rp_words, **words))
            lp.expect(LP_READY, 30, count=2)
        works(near, mirror.port)


# --- who speaks what -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rp_words", "lp_words", "said"),
    [
        ([], [], "listening on 0.0.0.0:6000 for 4 pipes over sctp"),
        ([*ALLOW, "--extended", "off"], [], "listening on 0.0.0.0:6000 for 4 pipes over sctp"),
        (ALLOW, ["--extend", "never"], "listening on 0.0.0.0:6010 for pipes of the extension over"),
    ],
    ids=["not-allowed", "rp-off", "lp-never"],
)
def test_the_baseline_where_one_of_them_does_not(
    two: Two, tmp_path: Path, rp_words: list[str], lp_words: list[str], said: str
) -> None:
    near, far = two
    with (
        serving(far, echo, (RP, 0)) as mirror,
        remote_proxy(far, tmp_path, *SCTP, *rp_words, asan=False) as rp,
        local_proxy(near, tmp_path, *SCTP, *lp_words, to=RP, asan=False),
    ):
        assert said in rp.log
        rp.expect("session 1: 4 pipes from 10.77.0.1")
        works(near, mirror.port)


def test_rp_takes_tcp_alone(two: Two, tmp_path: Path) -> None:
    """A session of the extension goes on with the pipes that rp takes; lp says what is missing."""
    near, far = two
    with (
        serving(far, echo, (RP, 0)) as mirror,
        remote_proxy(far, tmp_path, *ALLOW, asan=False) as rp,
        local_proxy(near, tmp_path, *MIXED, *ALWAYS, to=RP, asan=False, ready=None) as lp,
    ):
        lp.expect(r"2 of 4 pipes to 10\.77\.0\.2:6010 are not up: sctp: Connection refused", 20)
        rp.expect("session 1: the first of 4 pipes from 10.77.0.1")
        works(near, mirror.port)
        assert len(lp.lines("are not up")) == 1


@pytest.mark.timeout(300)
def test_what_a_lab_s_pipes_speak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TM3_RUN", str(tmp_path / "run"))
    with Lab(LastMile("wired", link="netem"), logs=tmp_path) as lab:
        for transport, extend, spoken in (
            ("sctp", "always", "extension"),
            ("mixed", "auto", "extension"),
            ("sctp", "never", "baseline"),
        ):
            with lab.proxies(4, transport=transport, extend=extend) as both:
                assert both.dialect() == both.describe()["dialect"] == spoken
            pipes = [line for line in both.statistics("rp") if line["type"] == "pipe"]
            kinds = {line["transport"] for line in pipes}
            assert kinds == ({"sctp"} if transport == "sctp" else {"tcp", "sctp"})


# --- by hand -------------------------------------------------------------------------------------


def is_ack(message: bytes) -> bool:
    return message[:2] == b"\0\0" and message[8] == 9


class Hand:
    """The test is lp, on one pipe: what it says has the counts that it likes."""

    def __init__(self, two: Two, session: int) -> None:
        self.counts: list[int] = []
        self.acked = 0  # *received* of the last ACK
        with two[0].entered():
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
        self.sock.settimeout(20)
        self.sock.setsockopt(socket.IPPROTO_SCTP, RCVINFO, 1)
        self.sock.connect((RP, wire_ext.PORT))
        self.say(wire_ext.Hello(bytes([session] * 16), 0, 1).to_bytes(), 0, unordered=False)
        self.welcome = self.hears()

    def say(self, message: bytes, count: int, *, unordered: bool = True) -> None:
        flags = UNORDERED if unordered else 0
        info = SNDINFO.pack(0, flags, socket.htonl(count), 0, 0)
        self.sock.sendmsg([message], [(socket.IPPROTO_SCTP, CMSG_SNDINFO, info)])

    def hears(self) -> tuple[bytes, int, int]:
        """The next message, its stream and its count."""
        message, ancillary, _, _ = self.sock.recvmsg(8192, 256)
        ((_, kind, info),) = ancillary
        assert kind == CMSG_RCVINFO
        count = int.from_bytes(info[8:12], "big")
        self.counts += [count] if count else []
        if is_ack(message):
            assert count == 0, "an ACK that counts"
            assert message[21] == 1
            self.acked = int.from_bytes(message[27:35], "little")
        return message, int.from_bytes(info[:2], "little"), count

    def hears_ack(self) -> int:
        """*received* of the next ACK, all else passed over."""
        while not is_ack(self.hears()[0]):
            pass
        return self.acked


@pytest.fixture
def rp(two: Two, tmp_path: Path) -> Iterator[Program]:
    with remote_proxy(two[1], tmp_path, *SCTP, *ALLOW, asan=False) as running:
        yield running


def test_counts_travel_with_messages(two: Two, rp: Program) -> None:
    text = [b"one ", b"two ", b"three ", b"four"]
    with serving(two[1], echo, (RP, 0)) as mirror:
        hand = Hand(two, 1)
        message, stream, count = hand.welcome
        assert (message[8], stream, count) == (2, 0, 0)
        hand.say(wire.data(5, 4, text[3]), 5)
        hand.say(wire.data(5, 2, text[1]), 3)
        hand.say(wire_ext.open_(5, RP, mirror.port, number=0), 1)
        assert hand.hears_ack() == 1, "of 1, 3 and 5 all up to 1 were parsed"
        hand.say(wire.data(5, 3, text[2]), 4)
        hand.say(wire.data(5, 1, text[0]), 2)
        echoed = b""
        while echoed != b"".join(text) or hand.acked != 5:
            message, _, _ = hand.hears()
            if message[:2] == b"\5\0":
                echoed += message[8:]
        assert sorted(hand.counts) == list(range(1, len(hand.counts) + 1)), "rp's counts"
        hand.sock.close()
    rp.expect("session 1: pipe 0")


@pytest.mark.parametrize(
    ("counts", "wrong"),
    [
        ((1, 2, 2), "a count that came before: 2"),
        ((1, 3, 3), "a count that came before: 3"),
        ((1, 4098), "a count too far ahead: 4098"),
        ((1, 0), "a count where none is due, or none where one is: 0"),
        ((0xFFFFFFFF,), "a count that came before: 4294967295"),
    ],
)
def test_a_count_that_cannot_be(two: Two, rp: Program, counts: tuple[int, ...], wrong: str) -> None:
    """It costs the pipe and nothing else; the session waits for the next one."""
    hand = Hand(two, 2)
    for count in counts:
        hand.say(WINDOW, count, unordered=False)
    rp.expect(f"session 1: pipe 0 brought {wrong}; 0 pipes are left")
    assert read_to_end(hand.sock).how in ("eof", "reset")
    assert not rp.lines("session 1 .*ended")
