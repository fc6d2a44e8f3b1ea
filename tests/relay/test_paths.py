# SPDX-License-Identifier: MIT
"""Pipes of one session over several paths, which are addresses of loopback here."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.relay import payload, records, wire, wire_ext
from tests.relay.ends import answers, echo, serving, socks
from tests.relay.netns import Namespace, veth
from tests.relay.programs import Program
from tests.relay.proxies import LISTEN, local_proxy, remote_proxy
from tests.relay.soak import LONG, PAUSE_S, SOAK_S, Held
from tests.relay.test_another_key import tries
from tests.relay.test_extend import playing
from tests.relay.traffic import BOTH, traffic
from tests.relay.two_paths import (
    ALLOW,
    BOTH_PATHS,
    FAR,
    NEAR,
    UP,
    WITH_BACKUP,
    bytes_by_path,
    kill,
    kill_by_turns,
    pipes_from,
    refuse_pipes,
    take_pipes,
)
from tests.relay.waiting import until

NOWHERE = "127.0.0.4"
WORKERS = 4


@contextmanager
def relay(
    box: Namespace, tmp: Path, *lp: str, asan: bool = True
) -> Iterator[tuple[Program, Program]]:
    with (
        remote_proxy(box, tmp, *ALLOW, *records.soon(tmp / "rp.jsonl"), asan=asan) as rp,
        local_proxy(box, tmp, *lp, *records.soon(tmp / "lp.jsonl"), asan=asan, ready=UP) as local,
    ):
        yield rp, local


def test_each_path_has_its_pipes(box: Namespace, tmp_path: Path) -> None:
    with relay(box, tmp_path, *BOTH_PATHS) as (rp, lp), serving(box, echo) as server:
        lp.expect(r"3 pipes to 127.0.0.1:6010 over near are up")
        assert pipes_from(box, NEAR) == 3 and pipes_from(box, FAR) == 2
        rp.expect(rf"session 1: the first of 5 pipes from {NEAR}")
        rp.expect(rf"session 1: pipes of path 1 come from {FAR}")
        assert not rp.lines("sent away")
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock, payload.seeded(300_000))
        for side in ("lp", "rp"):
            stats = tmp_path / f"{side}.jsonl"
            until("samples", lambda stats=stats: len(records.last_of_pipes(stats)) == 5)
            at = [it["path"] for it in records.last_of_pipes(stats)]
            assert at == [0, 0, 0, 1, 1]
            until("both", lambda stats=stats: {0, 1} <= bytes_by_path(stats).keys())
            assert {it["path"] for it in records.of(stats, "aggregate")} == {0, 1}
            far = next(it for it in records.of(stats, "path") if it["path"] == 1)
            assert (far["state"], far["cost"]) == ("use", 9)
            assert far["name"] == ("far" if side == "lp" else None)


def test_a_backup_is_used_while_the_other_is_gone(box: Namespace, tmp_path: Path) -> None:
    with relay(box, tmp_path, *WITH_BACKUP) as (_, lp), serving(box, echo) as server:
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock, payload.seeded(300_000))
            until("samples", lambda: 1 in bytes_by_path(tmp_path / "lp.jsonl"))
            assert bytes_by_path(tmp_path / "lp.jsonl")[1] == 0
            assert bytes_by_path(tmp_path / "rp.jsonl")[1] == 0
            refuse_pipes(box, NEAR)
            kill(box, NEAR)
            answers(sock, payload.seeded(300_000))
            until("the backup", lambda: bytes_by_path(tmp_path / "lp.jsonl")[1] > 300_000)
            lp.expect(r"of 3 pipes to 127.0.0.1:6010 over near (is|are) not up")
            take_pipes(box)
            lp.expect(r"3 pipes to 127.0.0.1:6010 over near are up", count=2)
            before = bytes_by_path(tmp_path / "lp.jsonl")[1]
            answers(sock, payload.seeded(300_000))
            time.sleep(0.2)  # two more samples
            assert bytes_by_path(tmp_path / "lp.jsonl")[1] == before


@LONG
def test_paths_are_killed_by_turns(box: Namespace, tmp_path: Path) -> None:
    """Every byte is looked at, and in a long run what the proxies hold at its end."""
    forward = ("--forward", "7000:127.0.0.1:8000")
    seconds = SOAK_S or 6.0
    given = (*BOTH_PATHS, *forward)
    with relay(box, tmp_path, *given, asan=not SOAK_S) as (rp, lp), ExitStack() as stack:
        lp.expect("over near are up")
        both = [Held(proxy, proxy.fd_count(), WORKERS, 5) for proxy in (rp, lp)]
        going = stack.enter_context(traffic(box, 7000, workers=WORKERS, pause_s=PAUSE_S))
        kill_by_turns(box, seconds, each=lambda: [one.look() for one in both])
        assert going.moved > 100_000 * seconds
        assert lp.running() and rp.running()
        assert len(rp.lines("session 1")) and not rp.lines("session 2")
    assert going.done[BOTH] > 2 * seconds
    going.check()
    for one in both:
        one.check()


def test_both_paths_at_once_end_no_session(box: Namespace, tmp_path: Path) -> None:
    """rp knows where pipes of each came from, and takes them again."""
    with relay(box, tmp_path, *BOTH_PATHS) as (rp, lp), serving(box, echo) as server:
        with socks(box, "127.0.0.1", server.port) as sock:
            for times in range(2, 5):
                answers(sock)
                box.run("ss", "-K", "dport", "=", ":6010")
                answers(sock, payload.seeded(100_000))
                lp.expect(UP, count=times)
                lp.expect(r"over near are up", count=times)
        assert not rp.lines("session 2") and not rp.lines("sent away")


def test_a_session_may_begin_on_any_path(box: Namespace, tmp_path: Path) -> None:
    refuse_pipes(box, NEAR)
    with relay(box, tmp_path, *BOTH_PATHS) as (rp, lp), serving(box, echo) as server:
        rp.expect(rf"session 1: the first of 5 pipes from {FAR}")
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock)
            take_pipes(box)
            lp.expect(r"over near are up")
            answers(sock)
        assert pipes_from(box, NEAR) == 3


def test_over_the_baseline_several_paths_are_refused(box: Namespace, tmp_path: Path) -> None:
    refused = r"no pipes to 127.0.0.1:6010: .*; and in the baseline there are not several paths"
    with (
        remote_proxy(box, tmp_path) as _,
        local_proxy(box, tmp_path, *BOTH_PATHS, ready=refused) as lp,
    ):
        assert not lp.lines("are up")


def test_the_baseline_is_refused_once_however_often_it_is_tried(
    box: Namespace, tmp_path: Path
) -> None:
    refused = "in the baseline there are not several paths"
    with (
        wire.raw_rp(box) as rp,
        local_proxy(box, tmp_path, *BOTH_PATHS, ready=refused) as lp,
    ):
        time.sleep(1.5)  # some more tries
        assert len(lp.lines(refused)) == 1
        rp.listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            rp.accept(1)


def test_an_rp_that_does_not_know_several_paths_is_refused(box: Namespace, tmp_path: Path) -> None:
    """One of before, which has the rest of the extension. lp does not go on over one path."""
    refused = r"this rp, an older one, does not take several paths \(--path\); trying again"
    seen = []

    def of_before(pipe: wire.Pipe) -> None:
        seen.append(wire_ext.hello_of(pipe.receive()))
        pipe.send(wire_ext.welcome(wire_ext.NEW))
        pipe.receive()

    with (
        playing(box, of_before),
        wire.raw_rp(box) as baseline,
        local_proxy(box, tmp_path, *BOTH_PATHS, ready=refused) as lp,
    ):
        until("more tries", lambda: len(seen) > 3)
        assert all(it.features & wire_ext.PATH for it in seen)
        assert {it.path for it in seen} == {0, 1}
        assert len(lp.lines(refused)) == 1 and not lp.lines("are up")
        baseline.listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            baseline.accept(1)


def test_one_path_is_no_matter_to_an_rp_of_before(box: Namespace, tmp_path: Path) -> None:
    def of_before(pipe: wire.Pipe) -> None:
        hello = wire_ext.hello_of(pipe.receive())
        assert not hello.features & wire_ext.PATH
        pipe.send(wire_ext.welcome(wire_ext.NEW))
        while pipe.receive():
            pass

    with (
        playing(box, of_before),
        local_proxy(box, tmp_path, "--path", f"near,src={NEAR},pipes=1", ready="near is up"),
    ):
        pass


def test_one_path_may_be_had_in_the_baseline(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path) as rp,
        local_proxy(box, tmp_path, "--path", f"near,src={NEAR},dev=lo"),
    ):
        rp.expect(rf"session 1: 4 pipes from {NEAR}")


def test_an_address_may_go_and_come_back(box: Namespace, tmp_path: Path) -> None:
    """Of a path alone: the other one does not notice."""
    box.ip("address", "add", "10.9.9.9/32", "dev", "lo")
    paths = ("--path", f"near,src={NEAR},pipes=3", "--path", "far,src=10.9.9.9,pipes=2")
    with ExitStack() as stack:
        rp = stack.enter_context(remote_proxy(box, tmp_path, *LISTEN, "--allow", "0.0.0.0/0"))
        lp = stack.enter_context(local_proxy(box, tmp_path, *paths, ready=UP))
        server = stack.enter_context(serving(box, echo))
        sock = stack.enter_context(socks(box, "127.0.0.1", server.port))
        answers(sock)
        box.ip("address", "del", "10.9.9.9/32", "dev", "lo")
        lp.expect(r"pipe \d: 10.9.9.9, where it leaves from, is this host's no more", count=2)
        lp.expect(r"2 of 2 pipes to 127.0.0.1:6010 over far are not up: Cannot assign")
        answers(sock, payload.seeded(300_000))
        box.ip("address", "add", "10.9.9.9/32", "dev", "lo")
        lp.expect(UP, count=2)
        answers(sock, payload.seeded(300_000))
        assert not rp.lines("session 2")
        assert len(lp.lines("over near are up")) == 1


def test_an_address_that_comes_later(box: Namespace, tmp_path: Path) -> None:
    """lp is started without it, by way of the path that is there."""
    named = "lp: --path: far: 10.9.9.9 is none of this host's addresses; lp begins with the paths"
    paths = ("--path", "far,src=10.9.9.9,pipes=2", "--path", f"near,src={NEAR},pipes=3")
    with (
        remote_proxy(box, tmp_path, *LISTEN, "--allow", "0.0.0.0/0") as rp,
        local_proxy(box, tmp_path, *paths, ready="over near are up") as lp,
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        assert len(lp.lines(named)) == 1
        answers(sock, payload.seeded(300_000))
        box.ip("address", "add", "10.9.9.9/32", "dev", "lo")
        lp.expect(UP)
        answers(sock, payload.seeded(300_000))
        assert pipes_from(box, "10.9.9.9") == 2 and not rp.lines("session 2")


def test_a_device_that_comes_later(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """A modem that was not there yet: its pipes are dialled as netlink tells of it."""
    near, far = two
    paths = ("--path", "wifi,dev=wire-l,pipes=3", "--path", "lte,dev=modem-l,pipes=2")
    with (
        remote_proxy(far, tmp_path, "--allow", "10.0.0.0/8") as rp,
        local_proxy(near, tmp_path, *paths, to="10.77.0.2", ready="over wifi are up") as lp,
        serving(far, echo, ("10.77.0.2", 0)) as server,
        socks(near, "10.77.0.2", server.port) as sock,
    ):
        lp.expect("2 of 2 pipes to 10.77.0.2:6010 over lte are not up: No such device")
        answers(sock, payload.seeded(300_000))
        veth(near, "10.78.0.1/24", far, "10.78.0.2/24", name="modem")
        lp.expect("2 pipes to 10.77.0.2:6010 over lte are up")
        answers(sock, payload.seeded(300_000))
        assert len(lp.lines("modem-l")) == 1 and not rp.lines("session 2")


def test_all_paths_come_later(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """At boot, before the network is up: lp says so and waits. The first that comes will do."""
    near, far = two
    paths = ("--path", "wifi,src=10.78.0.9,pipes=3", "--path", "lte,dev=modem-l,pipes=2")
    ready = "lp: SOCKS5 on "
    with (
        remote_proxy(far, tmp_path, "--allow", "10.0.0.0/8", "--permit", "10.78.0.2") as rp,
        local_proxy(near, tmp_path, *paths, to="10.78.0.2", ready=ready) as lp,
    ):
        waits = "lp waits until one of its paths is there"
        lp.expect(f"wifi: 10.78.0.9 is none of .*; lte: this host has no device modem-l; {waits}")
        lp.expect("no pipes to 10.78.0.2:6010: ")
        until("lp to wait for seconds", lambda: tries(lp) >= 6, 30)
        veth(near, "10.78.0.1/24", far, "10.78.0.2/24", name="modem")
        lp.expect("2 pipes to 10.78.0.2:6010 over lte are up", 2)
        near.ip("address", "add", "10.78.0.9/24", "dev", "modem-l")
        lp.expect("3 pipes to 10.78.0.2:6010 over wifi are up")
        with serving(far, echo, ("10.78.0.2", 0)) as server:
            with socks(near, "10.78.0.2", server.port) as sock:
                answers(sock, payload.seeded(300_000))
        assert len(lp.lines("modem-l|none of this host's")) == 1
        assert not rp.lines("session 2")


# --- who may come with whose path ---


class Caller:
    """Plays lp, from several addresses."""

    def __init__(self, box: Namespace, stack: ExitStack) -> None:
        self.box, self.stack = box, stack
        self.session = os.urandom(16)

    def says(self, address: str, pipe: int, path: int, incarnation: int = 0) -> socket.socket:
        features = wire_ext.VERSION_1 | wire_ext.PATH
        hello = wire_ext.Hello(
            self.session, pipe, 4, incarnation, features=features, path=path, cost=7
        )
        with self.box.entered():
            sock = self.stack.enter_context(socket.socket())
        sock.settimeout(10)
        sock.bind((address, 0))
        sock.connect(("127.0.0.1", wire_ext.PORT))
        sock.sendall(hello.to_bytes())
        return sock

    def status(self, address: str, pipe: int, path: int, incarnation: int = 0) -> int:
        return wire_ext.status_of(wire.Pipe(self.says(address, pipe, path, incarnation)).receive())


@pytest.fixture
def caller(box: Namespace, tmp_path: Path) -> Iterator[Caller]:
    with ExitStack() as stack:
        stack.enter_context(remote_proxy(box, tmp_path, *ALLOW))
        yield Caller(box, stack)


def test_who_knows_a_session_has_no_path_of_it(caller: Caller) -> None:
    first = caller.says(NEAR, 0, 0)
    assert wire_ext.status_of(wire.Pipe(first).receive()) == wire_ext.NEW
    assert caller.status(FAR, 1, 1) == wire_ext.UNKNOWN
    first.sendall(wire_ext.path(1, serial=1))
    until("the door", lambda: caller.status(FAR, 1, 1) == wire_ext.RESUMED)
    assert caller.status(NOWHERE, 2, 1) == wire_ext.UNKNOWN
    assert caller.status(NOWHERE, 2, 0) == wire_ext.UNKNOWN
    assert caller.status(FAR, 0, 0, 1) == wire_ext.UNKNOWN
    assert caller.status(FAR, 2, 1) == wire_ext.RESUMED
    first.sendall(wire_ext.path(1, serial=1))  # a copy opens nothing
    assert caller.status(NOWHERE, 3, 1) == wire_ext.UNKNOWN
    first.sendall(wire_ext.path(1, serial=2))
    until("the door", lambda: caller.status(NOWHERE, 3, 1) == wire_ext.RESUMED)
    assert caller.status(FAR, 2, 1, 1) == wire_ext.UNKNOWN


def test_the_number_of_a_path_is_looked_at(caller: Caller) -> None:
    first = caller.says(NEAR, 0, 0)
    assert wire_ext.status_of(wire.Pipe(first).receive()) == wire_ext.NEW
    stranger = caller.says(NEAR, 1, 7)
    assert stranger.recv(1) == b"", "a path that there cannot be"
    assert caller.status(NEAR, 1, 6, 1) == wire_ext.RESUMED
