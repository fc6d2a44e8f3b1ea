# SPDX-License-Identifier: MIT
"""Connections over the extension outlive their pipes, and never pretend to outlive a proxy.

Short here. `make soak` runs the same for SOAK_SECONDS, and with pauses as long as people know them.
"""

import random
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.relay.ends import serving
from tests.relay.kinds import mptcp
from tests.relay.netns import Namespace
from tests.relay.pipes import DOWN, UP, pipes_in, pipes_of_mptcp
from tests.relay.proxies import LISTEN, Pair, local_proxy, pair, remote_proxy
from tests.relay.soak import LONG, PAUSE_S, SOAK_S, Held
from tests.relay.traffic import BOTH, Plan, Traffic, traffic
from tests.relay.waiting import equals, until

PORT = 7000
PIPES, WORKERS = 4, 4
FORWARD = ("--extend", "always", "--forward", f"{PORT}:127.0.0.1:8000")
ENDLESS = 1 << 30
UP_AGAIN = re.compile("lost the pipes.*pipes to 127.0.0.1:6010 are up", re.DOTALL)

pytestmark = LONG


def short_or_long(short_s: float, long_s: float) -> float:
    return long_s if SOAK_S else short_s


@pytest.fixture(params=["tcp", pytest.param("mptcp", marks=mptcp)])
def kind(box: Namespace, request: pytest.FixtureRequest) -> tuple[str, str]:
    """What pipes are made of, as an option of both proxies."""
    if request.param == "mptcp":
        box.run("sysctl", "-q", "net.mptcp.enabled=1")
    return "--pipe", request.param


@contextmanager
def relay(box: Namespace, tmp: Path, kind: tuple[str, str]) -> Iterator[None]:
    with (
        remote_proxy(box, tmp, *LISTEN, *kind) as rp,
        local_proxy(box, tmp, *FORWARD, *kind) as lp,
    ):
        assert pipes_of_mptcp(box) == (PIPES if "mptcp" in kind else 0)
        yield
        assert rp.running() and lp.running()


def goes_on(going: Traffic, connections: int = 8) -> None:
    """So many more connections are opened and come to their ends."""
    before = going.done.total()
    until(
        f"{connections} more connections to end",
        lambda: going.wrong or going.done.total() >= before + connections,
        60,
    )
    assert not going.wrong, going.wrong[:3]


def held(proxies: Pair) -> list[Held]:
    return [
        Held(proxies.rp, proxies.rp_fds, WORKERS, PIPES),
        Held(proxies.lp, proxies.lp_fds, WORKERS, PIPES),
    ]


def test_pipes_are_killed_all_the_time(box: Namespace, tmp_path: Path) -> None:
    """Long, it is the soak: what the proxies hold at its end is what they held at its beginning."""
    with (
        pipes_in(box) as pipes,
        pair(box, tmp_path, rp=LISTEN, lp=FORWARD, asan=not SOAK_S) as proxies,
        traffic(box, PORT, workers=WORKERS, pause_s=PAUSE_S) as going,
    ):
        both = held(proxies)
        end = time.monotonic() + short_or_long(2, SOAK_S)
        while time.monotonic() < end or pipes.killed < 5:
            pipes.kill_one()
            for one in both:
                one.look()
            time.sleep(0.2)  # the pace at which they are killed
        goes_on(going)
        until("lp to have noticed", lambda: proxies.lp.lines(r"pipes? (is|are) left"))
    print(f"{pipes.killed} pipes killed, {going.done.total()} connections, {going.moved} bytes")
    for one in both:
        one.check()


def test_who_was_welcomed_is_dialled_again_soon(box: Namespace, tmp_path: Path) -> None:
    """The pause between tries grows while they fail, not because pipes are killed often."""
    with pipes_in(box) as pipes, pair(box, tmp_path, rp=LISTEN, lp=FORWARD):
        for _ in range(8):
            equals("pipes that are up", lambda: len(pipes.ports()), 4, 3)
            pipes.kill_one()


@mptcp
@pytest.mark.parametrize("kind", ["mptcp"], indirect=True)
def test_subflows_are_killed(box: Namespace, tmp_path: Path, kind: tuple[str, str]) -> None:
    """Nobody tells the ends of an MPTCP connection: their pipes are dark."""
    with (
        pipes_in(box) as pipes,
        relay(box, tmp_path, kind),
        traffic(box, PORT) as going,
    ):
        end = time.monotonic() + short_or_long(0, min(180, SOAK_S))
        while time.monotonic() < end or pipes.killed < 2:
            goes_on(going)
            pipes.kill_one()
        goes_on(going)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([UP], id="up"),
        pytest.param([DOWN], id="down"),
        pytest.param([UP, DOWN], id="both"),
    ],
)
def test_a_dark_pipe(
    box: Namespace, tmp_path: Path, kind: tuple[str, str], rules: tuple[str, ...]
) -> None:
    """Its bytes go on other pipes: connections begin and end meanwhile."""
    with pipes_in(box) as pipes, relay(box, tmp_path, kind), traffic(box, PORT) as going:
        goes_on(going)
        with pipes.dark(*rules, port=pipes.ports()[0]):
            lift = time.monotonic() + short_or_long(0, 30)
            goes_on(going)
            while time.monotonic() < lift:
                goes_on(going)
        goes_on(going)


def test_all_pipes_dark(box: Namespace, tmp_path: Path, kind: tuple[str, str]) -> None:
    with pipes_in(box) as pipes, relay(box, tmp_path, kind), traffic(box, PORT) as going:
        goes_on(going)
        with pipes.dark(UP, DOWN):
            time.sleep(short_or_long(2, 30))  # what is tested
        goes_on(going)


@pytest.mark.parametrize("which", ["lp", "rp"])
def test_a_proxy_is_frozen(
    box: Namespace, tmp_path: Path, kind: tuple[str, str], which: str
) -> None:
    with (
        pair(box, tmp_path, rp=LISTEN, lp=FORWARD, both=kind) as proxies,
        traffic(box, PORT) as going,
    ):
        goes_on(going)
        proxy = proxies.lp if which == "lp" else proxies.rp
        proxy.send_signal(signal.SIGSTOP)
        time.sleep(short_or_long(1, 20))  # what is tested
        proxy.send_signal(signal.SIGCONT)
        goes_on(going)


def test_stops_are_longer_than_a_connect_may_take(box: Namespace, tmp_path: Path) -> None:
    """Whoever waited for its turn to connect when rp was stopped has it, and is not too late."""
    rng = random.Random(1)
    with (
        pair(box, tmp_path, rp=[*LISTEN, "--connect-timeout", "1"], lp=FORWARD) as proxies,
        traffic(box, PORT, workers=8, most=20_000) as going,
    ):
        for _ in range(int(short_or_long(4, 50))):
            goes_on(going)
            time.sleep(0.2 * rng.random())  # so that each stop falls somewhere else
            proxies.rp.send_signal(signal.SIGSTOP)
            time.sleep(1.2)  # what is tested
            proxies.rp.send_signal(signal.SIGCONT)
        goes_on(going)


def endless(box: Namespace, stack: ExitStack, going: Traffic, seen: dict[int, str]) -> list[Thread]:
    """Connections that send both ways until something ends them; `seen` tells how at the client."""

    def client(sock: socket.socket, plan: Plan) -> None:
        sock.sendall(plan.header())
        ways = (plan.token, plan.up), (~plan.token, plan.down)
        seen[plan.token] = going.talk(sock, *ways)

    threads = []
    for token in range(3):
        sock = stack.enter_context(box.connect(("127.0.0.1", PORT), seconds=60))
        plan = Plan(token, BOTH, ENDLESS, ENDLESS)
        threads.append(Thread(target=client, args=(sock, plan), daemon=True))
        threads[-1].start()
    until("bytes both ways", lambda: len(going.came) == 3 and going.moved > 1_000_000, 30)
    return threads


RESETS = {0: "reset", 1: "reset", 2: "reset"}


def test_rp_is_killed_and_started_again(
    box: Namespace, tmp_path: Path, kind: tuple[str, str]
) -> None:
    """All are reset at both ends, and no byte comes behind the gap."""
    going, seen = Traffic(), {}
    with (
        serving(box, going.serve, ("127.0.0.1", 8000)),
        local_proxy(box, tmp_path, *FORWARD, *kind, ready=None) as lp,
        ExitStack() as stack,
    ):
        with remote_proxy(box, tmp_path, *LISTEN, *kind) as rp:
            lp.expect("4 pipes to 127.0.0.1:6010 are up")
            threads = endless(box, stack, going, seen)
            rp.kill()
        with remote_proxy(box, tmp_path, *LISTEN, *kind, name="next"):
            for thread in threads:
                thread.join(60)
            assert seen == RESETS, seen
            until("the server to see resets", lambda: going.saw == RESETS, 30)
            until("a new session", lambda: UP_AGAIN.search(lp.log), 60)
            with box.connect(("127.0.0.1", PORT)) as sock:
                going.play(sock, Plan(9, BOTH, 1000, 1000))
    assert not going.wrong, going.wrong


def test_lp_is_killed(box: Namespace, tmp_path: Path, kind: tuple[str, str]) -> None:
    """Its clients are reset at once, and the servers when rp waits for it no longer."""
    going, seen = Traffic(), {}
    with (
        serving(box, going.serve, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *LISTEN, *kind, "--resume", "1"),
        ExitStack() as stack,
    ):
        with local_proxy(box, tmp_path, *FORWARD, *kind) as lp:
            threads = endless(box, stack, going, seen)
            lp.kill()
        for thread in threads:
            thread.join(60)
        assert seen == RESETS, seen
        with local_proxy(box, tmp_path, *FORWARD, *kind, name="next"):
            with box.connect(("127.0.0.1", PORT)) as sock:
                going.play(sock, Plan(9, BOTH, 1000, 1000))
            # The client knows that it has all, not yet that the server has.
            until("the fourth to end", lambda: going.saw.get(9) == "eof")
        until("the server to see resets", lambda: going.saw == {**RESETS, 9: "eof"}, 30)
    assert not going.wrong, going.wrong
