# SPDX-License-Identifier: MIT
"""Descriptors of rp: pipes of sessions have half of them, and who has most makes room.

Sources of 127.0.0.0/8 are peers that differ.
"""

import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pytest

from tests.relay import wire_ext
from tests.relay.ends import echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import EXTENDED, LISTEN, RP_READY, local_proxy
from tests.relay.strangers import (
    hoarded,
    limit_counted,
    pipe_from,
    served,
    session_of,
    spoke_seldom,
)
from tests.relay.waiting import equals, until
from tests.relay.wire import Pipe

DESCRIPTORS = 256
MOST = 64  # pipes of a session
GREEDY = ("127.0.0.5", "127.0.0.6")
WITHOUT_ROOM = "pipes have as many descriptors as they may have"


def session(box: Namespace, stack: ExitStack, source: str, name: bytes, pipes: int) -> int:
    """As many pipes as it may have; the status of the last WELCOME, 0 where there was none."""
    status = 0
    for number in range(pipes):
        pipe = Pipe(stack.enter_context(pipe_from(box, source)))
        pipe.sock.settimeout(2)
        with suppress(OSError, AssertionError):
            pipe.send(wire_ext.Hello(name.ljust(16, b"."), number, pipes).to_bytes())
            status = wire_ext.status_of(pipe.receive())
        if status not in (wire_ext.NEW, wire_ext.RESUMED):
            break
    return status


@pytest.mark.parametrize("workers", [1, 2])
def test_sessions_of_many_pipes_leave_descriptors_for_others(
    box: Namespace, tmp_path: Path, workers: int
) -> None:
    """Four of 64 pipes, of two addresses, are as many as there are descriptors."""
    stats = tmp_path / "rp.stats"
    argv = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", binary("rp", asan=False)]
    options = (*LISTEN, "--workers", str(workers), "--stats", str(stats), "1")
    with (
        serving(box, echo) as server,
        program(box, [*argv, *options], tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        idle = rp.fd_count()
        for number in range(2):
            came = session(box, stack, GREEDY[0], b"first%d" % number, MOST)
            assert came == wire_ext.RESUMED
        equals("pipes", lambda: rp.fd_count() - idle, 2 * MOST)
        # Who has none yet takes one of the two; for its second nobody has more than it would have.
        assert session(box, stack, GREEDY[1], b"second0", MOST) == wire_ext.RESUMED
        rp.expect(rf"session 1 of {GREEDY[0]} ended: its address has most pipes")
        assert session(box, stack, GREEDY[1], b"second1", MOST) == wire_ext.BUSY
        rp.expect(rf"a session of {GREEDY[1]} was told to come later: {WITHOUT_ROOM}")
        assert session(box, stack, GREEDY[1], b"second2", MOST) == wire_ext.BUSY
        spoke_seldom(rp, rf"of {GREEDY[1]} was told to come later", 1)
        with local_proxy(box, tmp_path, pipes=8, asan=False, ready=EXTENDED):
            assert all(served(box, server.port) for _ in range(10))
        equals("a descriptor's refusals", lambda: limit_counted(stats, "descriptors"), 4)


def test_so_do_those_of_the_baseline(box: Namespace, tmp_path: Path) -> None:
    argv = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", binary("rp", asan=False), "32"]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        for number in range(5):
            for _ in range(32):
                stack.enter_context(pipe_from(box, GREEDY[0], 6000))
            if number < 4:
                rp.expect(rf"session {number + 1}: 32 pipes from")
        rp.expect(rf"a pipe from {GREEDY[0]}:\d+ was reset: {WITHOUT_ROOM}")
        with local_proxy(box, tmp_path, "--extend", "never", pipes=32, asan=False):
            assert all(served(box, server.port) for _ in range(10))
        rp.expect(rf"session 1 of {GREEDY[0]} ended: its address has most pipes")


def test_sockets_to_servers_make_room_for_pipes(box: Namespace, tmp_path: Path) -> None:
    """Of 400 descriptors they have left 50, and friends come with 32 pipes each."""
    argv = ["prlimit", "--nofile=400:400", binary("rp", asan=False), *LISTEN, "1"]
    up = r"^lp: 32 pipes to \S+:6010 are up"
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        for source in GREEDY:
            stack.enter_context(hoarded(box, source, server.port, 300).sock)
        until("all that servers may have", lambda: rp.fd_count() >= 350)
        for number in range(3):
            ports = ("--redirect", "off", "--socks", str(1080 + number))
            friend = local_proxy(
                box, tmp_path, *ports, pipes=32, asan=False, ready=up, name=f"friend-{number}"
            )
            stack.enter_context(friend)
        assert all(served(box, server.port) for _ in range(10))


def filled_with_flows(box: Namespace, stack: ExitStack, source: str, flows: int) -> None:
    """Each has a socket at rp."""
    pipe = session_of(box, source, source.encode())
    stack.enter_context(pipe.sock)
    ids = range(1, flows + 1)
    pipe.send(*(wire_ext.open_(it, "127.0.0.1", 9, 0, protocol=wire_ext.UDP) for it in ids))


def test_silent_pipes_leave_descriptors_for_a_friend(box: Namespace, tmp_path: Path) -> None:
    """Sockets have all but the reserve of 32, and the lobby and the reception are full."""
    argv = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", binary("rp", asan=False)]
    with (
        serving(box, echo) as server,
        program(box, [*argv, *LISTEN, "2"], tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        for source in GREEDY:
            filled_with_flows(box, stack, source, 160)
        until("all that servers may have", lambda: rp.fd_count() >= DESCRIPTORS * 7 // 8)
        for n in range(40):
            stack.enter_context(pipe_from(box, f"127.0.1.{n + 1}", 6000))
        for n in range(40):
            stack.enter_context(pipe_from(box, f"127.0.2.{n + 1}"))
        with local_proxy(box, tmp_path, pipes=2, asan=False, ready=EXTENDED):
            assert all(served(box, server.port) for _ in range(10))
        assert not rp.lines("cannot accept connections"), "silent pipes took the last descriptor"
        rp.expect(r"1 of 2 pipes from \S+ was closed: 8 pipes wait for the others of their group")
        rp.expect(r"a pipe from \S+ was closed: 16 pipes have not said HELLO yet")


def cpu_over(rp: Program, seconds: float) -> float:
    before = rp.cpu_s()
    time.sleep(seconds)
    return (rp.cpu_s() - before) / seconds


def test_without_descriptors_a_friend_waits(box: Namespace, tmp_path: Path) -> None:
    """rp neither spins nor forgets him: he comes in when descriptors come free."""
    argv = ["prlimit", "--nofile=40:40", binary("rp", asan=False), *LISTEN, "1"]
    with (
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as greedy,
    ):
        for n in range(48):
            greedy.enter_context(pipe_from(box, f"127.0.1.{n % 40 + 1}", 6000))
        rp.expect(r"cannot accept connections on 127\.0\.0\.1:6000")
        assert cpu_over(rp, 1.0) < 0.5
        with local_proxy(box, tmp_path, "--extend", "never", pipes=1, asan=False, ready=None) as lp:
            with suppress(AssertionError):
                lp.expect("1 pipe to .* is up", 1)
            greedy.close()
            with serving(box, echo) as server:
                until("a friend to be served", lambda: served(box, server.port), 15)
        spoke_seldom(rp, "cannot accept connections", 2)


def with_descriptors(
    box: Namespace, tmp_path: Path, most: int, *options: str
) -> AbstractContextManager[Program]:
    argv = ["prlimit", f"--nofile={most}:{most}", binary("rp", asan=False), *options, "1"]
    return program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY)


def test_sessions_of_one_address_leave_descriptors_for_others(
    box: Namespace, tmp_path: Path
) -> None:
    """Of 100 they have 66: three quarters of those that are not for pipes."""
    with (
        serving(box, echo) as server,
        with_descriptors(box, tmp_path, 100) as rp,
        ExitStack() as stack,
    ):
        idle = rp.fd_count()
        for _ in range(3):
            stack.enter_context(hoarded(box, "127.0.0.5", server.port, 60).sock)
        # One line in ten seconds, so that of the first who met it: refused, or made room for.
        rp.expect("others were refused: no descriptor|has most of the descriptors")
        equals("descriptors", lambda: rp.fd_count() - idle, 3 + 66)
        with local_proxy(box, tmp_path, pipes=1, asan=False):
            assert all(served(box, server.port) for _ in range(10))
        assert rp.fd_count() - idle >= 3 + 66, "nobody had to give way"


def friend_has_twenty(box: Namespace, tmp_path: Path, port: int) -> None:
    """Connections, at the same time."""
    with local_proxy(box, tmp_path, pipes=1, asan=False), ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(socks(box, "127.0.0.1", port))
            sock.sendall(b"x")
            assert read_exactly(sock, 1) == b"x"


def test_who_has_most_descriptors_makes_room(box: Namespace, tmp_path: Path) -> None:
    """One has 60 of some 75, so it pays for the other's 30, and for all 20 of a friend."""
    with (
        serving(box, echo) as server,
        with_descriptors(box, tmp_path, 100) as rp,
        ExitStack() as stack,
    ):
        idle = rp.fd_count()
        stack.enter_context(hoarded(box, "127.0.0.5", server.port, 60).sock)
        equals("descriptors", lambda: rp.fd_count() - idle, 1 + 60)
        stack.enter_context(hoarded(box, "127.0.0.6", server.port, 30).sock)
        rp.expect(r"session 1: connection \d+ was reset: its peer has most of the descriptors")
        friend_has_twenty(box, tmp_path, server.port)
        assert not rp.lines("others were refused"), "nobody had more than his part"


def test_flows_of_datagrams_make_room_too(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        with_descriptors(box, tmp_path, 100, *LISTEN) as rp,
        ExitStack() as stack,
    ):
        idle = rp.fd_count()
        for source, flows in (("127.0.0.5", 60), ("127.0.0.6", 30)):
            filled_with_flows(box, stack, source, flows)
            if source == "127.0.0.5":
                equals("descriptors", lambda: rp.fd_count() - idle, 1 + 60)
        rp.expect(r"session 1: connection \d+ was reset: its peer has most of the descriptors")
        friend_has_twenty(box, tmp_path, server.port)
