# SPDX-License-Identifier: MIT
"""Connections that a rule binds to a path: their bytes go over no other one, both ways.

The two paths are addresses of loopback.
"""

import getpass
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.relay import payload, records, test_paths
from tests.relay.ends import answers, echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import hang_up
from tests.relay.soak import LONG, PAUSE_S, SOAK_S, Held
from tests.relay.traffic import BOTH, traffic
from tests.relay.two_paths import (
    BOTH_PATHS,
    FAR,
    UP,
    bytes_by_path,
    kill,
    kill_by_turns,
    refuse_pipes,
    take_pipes,
)
from tests.relay.waiting import until

BLOCK = payload.seeded(200_000, seed=5)
PORT = 7000
NEAR_UP = r"3 pipes to 127.0.0.1:6010 over near are up"
SIDES = ("lp", "rp")
WORKERS = 4
ME = getpass.getuser()
PROGRAM = Path("/proc/self/exe").readlink()


@contextmanager
def relay(
    box: Namespace, tmp: Path, *lp: str, asan: bool = True
) -> Iterator[tuple[Program, Program]]:
    with test_paths.relay(box, tmp, *BOTH_PATHS, *lp, asan=asan) as (rp, local):
        local.expect(NEAR_UP)
        yield rp, local


class Written:
    """Bytes of connections that each path was given since, at both ends.

    The last bytes of the connections that `ended` before do not count.
    """

    def __init__(self, tmp: Path, ended: int = 0) -> None:
        self._tmp = tmp
        for side in SIDES:
            until(f"{side} to tell of what ended", lambda side=side: self._tells(side, ended))
        self._before = self._now()

    def _tells(self, side: str, ended: int) -> bool:
        stats = self._tmp / f"{side}.jsonl"
        closed = [it["closed"] for it in records.of(stats, "conn")]
        sampled = [it["time"] for it in records.of(stats, "path")]
        return not ended or (len(closed) >= ended and closed[ended - 1] < sampled[-1])

    def _now(self) -> dict[tuple[str, int], int]:
        return {
            (side, path): written
            for side in SIDES
            for path, written in bytes_by_path(self._tmp / f"{side}.jsonl").items()
        }

    def since(self, side: str, path: int) -> int:
        return self._now().get((side, path), 0) - self._before.get((side, path), 0)

    def is_all_over(self, path: int, size: int) -> None:
        for side in SIDES:
            until(f"{side}'s samples", lambda side=side: self.since(side, path) >= size)
            assert self.since(side, 1 - path) == 0, (side, self.since(side, 1 - path))


def hello(name: str) -> bytes:
    """What a TLS client sends first."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("path", [0, 1])
@pytest.mark.parametrize(
    "criteria",
    [
        "",
        f"port {PORT}",
        "port 6500-7500 network 127.0.0.0/8",
        f"user {ME}",
        f"program {PROGRAM.name}",
        f"user {ME} program {PROGRAM}",
    ],
)
def test_all_bytes_go_over_the_path(
    box: Namespace, tmp_path: Path, criteria: str, path: int
) -> None:
    rule = f"{criteria} paths {('near', 'far')[path]}"
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, "--rule", rule, "--rule", f"paths {('far', 'near')[path]}"),
        socks(box, "127.0.0.1", PORT) as sock,
    ):
        written = Written(tmp_path)
        for _ in range(5):
            answers(sock, BLOCK)
        written.is_all_over(path, 5 * len(BLOCK))


@pytest.mark.parametrize(
    "criteria",
    [
        f"port {PORT + 1}",
        "network 127.0.0.2",
        "name *.example.net",
        "user nobody",
        "program no-such-program",
        "program /usr/bin/no-such-program",
    ],
)
def test_who_meets_no_rule_may_go_over_all(box: Namespace, tmp_path: Path, criteria: str) -> None:
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, "--rule", f"{criteria} paths far") as (_, lp),
        socks(box, "127.0.0.1", PORT) as sock,
    ):
        written = Written(tmp_path)
        answers(sock, BLOCK)
        # The path that costs less, as if there were no rule.
        until("a sample", lambda: written.since("lp", 0) > len(BLOCK) / 2)
        # A process of root's may be closed to root itself, as those are that dump no core.
        assert len(lp.lines("--rule")) == len(lp.lines("a process of its user cannot be looked at"))


@pytest.mark.parametrize("names", ["rp", "lp"])
@pytest.mark.parametrize("reply", ["early", "late"])
def test_the_name_that_socks_asks_for(
    box: Namespace, tmp_path: Path, names: str, reply: str
) -> None:
    options = ("--names", names, "--socks-reply", reply, "--rule", "name LocalHost paths far")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, *options),
        socks(box, "localhost", PORT) as sock,
    ):
        written = Written(tmp_path)
        answers(sock, BLOCK)
        written.is_all_over(1, len(BLOCK))


@pytest.mark.parametrize(
    "first",
    [hello("www.example.net"), b"GET / HTTP/1.1\r\nHost: www.example.net\r\n\r\n"],
    ids=["tls", "http"],
)
@pytest.mark.parametrize("late", [False, True])
def test_the_name_in_the_first_bytes(
    box: Namespace, tmp_path: Path, first: bytes, late: bool
) -> None:
    """They are looked at before any of them is sent, whenever they come."""
    forward = ("--forward", f"{PORT + 1}:127.0.0.1:{PORT}")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, *forward, "--rule", "name *.example.net paths far"),
        box.connect(("127.0.0.1", PORT + 1)) as sock,
    ):
        if late:
            time.sleep(0.3)  # connected, and nothing is said
        written = Written(tmp_path)
        answers(sock, first)
        answers(sock, BLOCK)
        for side in SIDES:
            until("a sample", lambda side=side: written.since(side, 1) > len(BLOCK))
            # An OPEN and a SYNACK may have gone before the name was there.
            assert written.since(side, 0) < 100
            assert written.since(side, 1) > len(first) + len(BLOCK)


def test_first_bytes_without_a_name_are_waited_for_by_nobody(
    box: Namespace, tmp_path: Path
) -> None:
    """A server that speaks first is heard."""

    def greets(sock: socket.socket) -> None:
        sock.sendall(b"hello")
        echo(sock)

    forward = ("--forward", f"{PORT + 1}:127.0.0.1:{PORT}")
    with (
        serving(box, greets, ("127.0.0.1", PORT)),
        relay(box, tmp_path, *forward, "--rule", "name *.example.net paths far"),
        box.connect(("127.0.0.1", PORT + 1)) as sock,
    ):
        assert read_exactly(sock, 5) == b"hello"
        answers(sock, BLOCK)


@LONG
def test_under_path_death(box: Namespace, tmp_path: Path) -> None:
    """They are killed by turns; the other one carries nothing of it, ever. In a long run it counts
    what the proxies hold at its end."""
    seconds = SOAK_S or 5.0
    rules = ("--forward", f"{PORT}:127.0.0.1:8000", "--rule", "port 8000 paths far")
    with relay(box, tmp_path, *rules, asan=not SOAK_S) as (rp, lp), ExitStack() as stack:
        both = [Held(proxy, proxy.fd_count(), WORKERS, 5) for proxy in (rp, lp)]
        going = stack.enter_context(traffic(box, PORT, workers=WORKERS, pause_s=PAUSE_S))
        kill_by_turns(box, seconds, first=FAR, each=lambda: [one.look() for one in both])
        assert lp.running() and rp.running()
        assert not rp.lines("session 2")
    assert going.done[BOTH] > seconds
    going.check()
    for one in both:
        one.check()
    for side in SIDES:
        last = bytes_by_path(tmp_path / f"{side}.jsonl")
        # WINDOWs, which are the session's, count where they go again.
        assert last[0] < last[1] / 200 and last[1] > 100_000 * seconds, (side, last)


def test_without_its_path_it_waits_and_others_do_not(box: Namespace, tmp_path: Path) -> None:
    rule = ("--rule", f"port {PORT} paths far")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        serving(box, echo, ("127.0.0.1", PORT + 1)),
        relay(box, tmp_path, *rule) as (_, lp),
        socks(box, "127.0.0.1", PORT) as sock,
    ):
        answers(sock, BLOCK)
        refuse_pipes(box, FAR)
        kill(box, FAR)
        sock.sendall(BLOCK)
        sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        with socks(box, "127.0.0.1", PORT + 1) as other:
            for _ in range(5):
                answers(other, BLOCK)
        take_pipes(box)
        lp.expect(UP, count=2)
        sock.settimeout(20)
        assert read_exactly(sock, len(BLOCK)) == BLOCK
        answers(sock, BLOCK)


def test_a_client_of_another_namespace_is_said_once(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """Whose it is nobody here can know."""
    box, beside = two
    socks_on = ("--socks", "10.77.0.1:1080")
    rule = ("--rule", f"user {ME} paths far", "--rule", "program curl paths far")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, *socks_on, *rule) as (_, lp),
    ):
        for _ in range(3):
            with socks(beside, "127.0.0.1", PORT, ("10.77.0.1", 1080)) as sock:
                answers(sock)
        lp.expect(r"--rule: a client's user and program are not known, and meet no rule: it is no")
        assert len(lp.lines("--rule")) == 1


def test_rules_of_a_file_are_read_again(box: Namespace, tmp_path: Path) -> None:
    """What is open keeps its path; what comes next is held against the new rules."""
    conf = tmp_path / "lp.conf"
    conf.write_text(f"rule port {PORT} paths far\n")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        relay(box, tmp_path, "--config", str(conf)) as (_, lp),
        socks(box, "127.0.0.1", PORT) as before,
    ):
        conf.write_text("rule paths umts\n")
        hang_up(lp, r".*--rule: paths umts: there is no path umts \(--path\).*")
        written = Written(tmp_path)
        with socks(box, "127.0.0.1", PORT) as sock:
            answers(sock, BLOCK)
        written.is_all_over(1, len(BLOCK))
        conf.write_text(f"rule port {PORT} paths near\n")
        hang_up(lp, "going on with new --rule")
        written = Written(tmp_path, ended=1)
        with socks(box, "127.0.0.1", PORT) as sock:
            answers(sock, BLOCK)
        written.is_all_over(0, len(BLOCK))
        written = Written(tmp_path, ended=2)
        answers(before, BLOCK)
        written.is_all_over(1, len(BLOCK))
