# SPDX-License-Identifier: MIT
"""What a byte and a connection cost in system calls, counted by strace: not the time they take."""

import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.relay import wire
from tests.relay.delays import FAR, delayed_pipes
from tests.relay.ends import echo, read_exactly, read_to_end, serving, socks
from tests.relay.keyed import key_file, made, needs_tls
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import LISTEN, Pair, extended_pair, local_proxy, pair, remote_proxy
from tests.relay.waiting import until
from tests.relay.wire import raw_lp

ECHOES = 200
BULK = 64 << 20
MESSAGE = wire.HEADER.size + wire.PAYLOAD_MAX
LARGE_RUN = 64 * MESSAGE
CONNECTIONS = 20
READS_EACH = 4  # of less than a segment, of what one connection has on the pipes
# 7.2 were counted. A proxy under strace is slow, so more timers end between two echoes: on a busy
# machine one more call. A look at each pipe would be one for each of them.
MOST_AN_ECHO = 12.0
MOST_A_PIPE = 0.05
A_TIMER = 4  # calls; on a busy machine that of the session itself may ring at each echo
SOONEST_S = 0.005  # that a timer of an idle session rings: a busy machine hears more of them
Options = tuple[tuple[str, ...], tuple[str, ...]]  # of rp, and of lp
CALL = re.compile(r"^\d+ +(\w+)\((.*)")


class Calls:
    """What a process asked of the kernel meanwhile: names, and all of each line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self.lasted_s = 0.0

    def read(self) -> None:
        self.lines = [it for it in self.path.read_text().splitlines() if CALL.match(it)]

    def named(self, name: str) -> list[str]:
        return [line for line in self.lines if CALL.match(line)[1] == name]  # type: ignore[index]

    def counts(self) -> Counter[str]:
        return Counter(CALL.match(line)[1] for line in self.lines)  # type: ignore[index]


@contextmanager
def traced(who: Program, path: Path) -> Iterator[Calls]:
    """All threads of `who`; the calls are there behind the block."""
    calls = Calls(path)
    argv = ["strace", "-f", "-p", str(who.pid), "-o", str(path)]
    said = path.with_suffix(".err")
    with said.open("wb") as err:
        tracer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=err)
    try:
        until(
            f"strace to attach to {who.name}",
            lambda: "attached" in said.read_text() or tracer.poll() is not None,
        )
        assert tracer.poll() is None, said.read_text()
        began = time.monotonic()
        yield calls
        calls.lasted_s = time.monotonic() - began
    finally:
        tracer.terminate()
        tracer.wait(timeout=10)
    calls.read()


@contextmanager
def both_traced(proxies: Pair, tmp: Path) -> Iterator[dict[str, Calls]]:
    with ExitStack() as stack:
        yield {
            who.name: stack.enter_context(traced(who, tmp / f"{who.name}.calls"))
            for who in (proxies.rp, proxies.lp)
        }


@pytest.fixture(autouse=True)
def strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace on this machine")


@contextmanager
def idle_sessions(box: Namespace, tmp: Path, n: int) -> Iterator[None]:
    """So many more local proxies at rp, with nothing to do."""
    with ExitStack() as stack:
        for i in range(n):
            ways_in = ("--redirect", "off", "--socks", f"127.0.0.1:{1081 + i}")
            stack.enter_context(local_proxy(box, tmp, *ways_in, asan=False, name=f"idle{i}"))
        yield


def echo_calls(box: Namespace, tmp: Path, pipes: int, beside: int = 0) -> dict[str, Calls]:
    """Of each proxy, while one byte goes to a server and back, again and again, `beside` so many
    idle sessions."""
    many = ("--max-sessions-each", "64")
    with (
        serving(box, echo) as server,
        extended_pair(box, tmp, pipes=pipes, asan=False, rp=many) as proxies,
        idle_sessions(box, tmp, beside),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        for _ in range(20):
            sock.sendall(b"x")
            read_exactly(sock, 1)
        with both_traced(proxies, tmp) as calls:
            for _ in range(ECHOES):
                sock.sendall(b"x")
                read_exactly(sock, 1)
    return calls


def calls_an_echo(box: Namespace, tmp: Path, pipes: int) -> dict[str, float]:
    tmp.mkdir()
    calls = echo_calls(box, tmp, pipes)
    return {who: it.counts().total() / ECHOES for who, it in calls.items()}


def test_an_echo_costs_as_much_over_many_pipes(box: Namespace, tmp_path: Path) -> None:
    """Pipes on which nothing happens cost no system call."""
    found = {pipes: calls_an_echo(box, tmp_path / str(pipes), pipes) for pipes in (1, 4, 64)}
    for who in ("rp", "lp"):
        assert max(each[who] for each in found.values()) <= MOST_AN_ECHO, found
        assert found[64][who] - found[4][who] <= 60 * MOST_A_PIPE, found


def calls_of_each_echo(calls: Calls) -> list[int]:
    """Of rp, from one byte that comes from the server to the next."""
    ends = [i for i, it in enumerate(calls.lines) if re.search(r" readv\(.*\) += 1$", it)]
    assert len(ends) == ECHOES, calls.counts()
    return [end - begin for begin, end in pairwise(ends)]


def test_an_echo_costs_as_much_beside_many_sessions(box: Namespace, tmp_path: Path) -> None:
    """Sessions in which nothing happens cost no system call: eight were counted beside 1 and beside
    20. A look at each session would be 19 more. A timer of an idle one rings in few of the echoes,
    and the median has none of that."""
    usual = {}
    for beside in (1, 20):
        folder = tmp_path / str(beside)
        folder.mkdir()
        each = calls_of_each_echo(echo_calls(box, folder, 4, beside)["rp"])
        usual[beside] = statistics.median(each)
    assert usual[20] <= usual[1] + A_TIMER, usual


def test_how_soon_an_echo_is_acknowledged_is_sampled(box: Namespace, tmp_path: Path) -> None:
    """The kernel is not asked for each one, unless they are so far apart: a pipe has a sample every
    10 ms, and looks as often."""
    calls = echo_calls(box, tmp_path, 4)
    for who in ("rp", "lp"):
        asked = [it for it in calls[who].named("getsockopt") if "TCP_INFO" in it]
        most = max(ECHOES / 2, 2 * calls[who].lasted_s / 0.01)
        assert len(asked) <= most, (calls[who].lasted_s, calls[who].counts())


def test_one_timer_of_the_kernels_wakes_a_proxy(box: Namespace, tmp_path: Path) -> None:
    """A timeout of epoll_wait() would be one for each wait. This one is set when it has rung."""
    calls = echo_calls(box, tmp_path, 4)
    for who in ("rp", "lp"):
        waits = calls[who].named("epoll_wait")
        timeouts = {it[1] for it in (re.search(r", (-?\d+)\) += ", line) for line in waits) if it}
        assert "-1" in timeouts and timeouts <= {"-1", "0"}, timeouts
        most = max(ECHOES / 2, calls[who].lasted_s / SOONEST_S)
        assert len(calls[who].named("timerfd_settime")) <= most, calls[who].counts()


def sent_to_pipes(calls: Calls) -> list[int]:
    """Bytes of each write of at least a message; what goes to applications is single bytes."""
    ends = [re.search(r"= (\d+)$", it) for it in calls.named("sendto") + calls.named("sendmsg")]
    return [int(end[1]) for end in ends if end and int(end[1]) > wire.HEADER.size]


def baseline(_: Path) -> Options:
    return LISTEN, ("--extend", "never")


def extension(_: Path) -> Options:
    return LISTEN, ("--extend", "always")


def encrypted(tmp: Path) -> Options:
    needs_tls()
    key = key_file(tmp / "key", made("laptop"))
    return (*LISTEN, *key), key


@pytest.mark.parametrize("options", [baseline, extension, encrypted])
def test_what_is_sent_at_once_is_written_together(
    box: Namespace, tmp_path: Path, options: Callable[[Path], Options]
) -> None:
    """lp is stopped until all of its connections have something to send: then it has them in one
    batch, and each is a message of nine bytes, which are one record where pipes are encrypted.
    Single ones were a write each."""
    rp, lp = options(tmp_path)
    with ExitStack() as stack:
        server = stack.enter_context(serving(box, echo))
        own = (*lp, "--forward", f"7000:127.0.0.1:{server.port}")
        proxies = stack.enter_context(pair(box, tmp_path, asan=False, rp=rp, lp=own))
        apps = [stack.enter_context(box.connect(("127.0.0.1", 7000))) for _ in range(CONNECTIONS)]
        for sock in apps:
            sock.sendall(b"x")
            assert read_exactly(sock, 1) == b"x"
        with traced(proxies.lp, tmp_path / "calls") as calls:
            os.kill(proxies.lp.pid, signal.SIGSTOP)
            for sock in apps:
                sock.sendall(b"x")
            os.kill(proxies.lp.pid, signal.SIGCONT)
            for sock in apps:
                assert read_exactly(sock, 1) == b"x"
    sizes = sent_to_pipes(calls)
    assert sum(sizes) >= CONNECTIONS * (wire.HEADER.size + 1)
    assert len(sizes) <= CONNECTIONS / 3, sizes


def test_a_gap_does_not_ask_pipe_by_pipe(box: Namespace, tmp_path: Path) -> None:
    """Of 64 pipes that are late by up to half a second each, a number that is missing may come on
    any. How much is unread on them is asked once for a mebibyte, and not by each pipe that waits:
    that was 3.4 calls a message."""
    pipes, conns, numbers = 64, 20, 400
    body = bytes(wire.PAYLOAD_MAX)
    with (
        delayed_pipes(box, [n / 2 / pipes for n in range(pipes)]),
        serving(box, lambda sock: read_to_end(sock, 60.0).size) as server,
        remote_proxy(box, tmp_path, "--listen", FAR, pipes=pipes, asan=False) as rp,
        raw_lp(box, pipes) as raw,
    ):
        with traced(rp, tmp_path / "calls") as calls:
            for conn in range(1, conns + 1):
                raw[0].send(wire.syn(conn, "127.0.0.1", server.port))
            for first in range(1, numbers + 1, 8):
                for conn in range(1, conns + 1):
                    run = [wire.data(conn, number, body) for number in range(first, first + 8)]
                    raw[(first // 8 + conn) % pipes].send(*run)
            for conn in range(1, conns + 1):
                raw[0].send(wire.fin(conn, numbers + 1))
            for _ in range(conns):
                assert server.results.get(timeout=60) == numbers * len(body)
    asked = [line for line in calls.named("ioctl") if "FIONREAD" in line]
    mebibytes = conns * numbers * len(body) / (1 << 20)
    assert len(asked) <= pipes * (mebibytes + 4), calls.counts()
    assert len(calls.named("poll")) <= len(calls.named("epoll_wait")), calls.counts()


def written(calls: Calls) -> list[int]:
    """Bytes of each write that was more than a message."""
    ends = [re.search(r"= (\d+)$", it) for it in calls.named("sendto") + calls.named("sendmsg")]
    sizes = [int(end[1]) for end in ends if end]
    return [size for size in sizes if size > MESSAGE]


def bulk_when_asked(sock: socket.socket) -> int:
    """Not at once: buffers take 10 MB while strace attaches, which it would not see."""
    read_exactly(sock, 1)
    sock.sendall(bytes(BULK))
    return BULK


@pytest.mark.parametrize("binding", ["late", "early"])
def test_bulk_goes_in_runs(box: Namespace, tmp_path: Path, binding: str) -> None:
    """On a fast path both ways to bind write up to 256 KiB at a time. How much room a pipe has
    depends on how soon the other side reads: on a busy machine eleven messages were the mean."""
    with (
        serving(box, bulk_when_asked) as server,
        extended_pair(box, tmp_path, asan=False, both=("--binding", binding)) as proxies,
        socks(box, "127.0.0.1", server.port) as sock,
        both_traced(proxies, tmp_path) as calls,
    ):
        sock.sendall(b"x")
        assert read_to_end(sock, 60.0).size == BULK
    sizes = written(calls["rp"])
    assert sum(sizes) >= 0.9 * BULK
    assert statistics.mean(sizes) > 6 * MESSAGE, sorted(sizes)
    assert LARGE_RUN / 2 < max(sizes) <= LARGE_RUN


def options_set(calls: Calls) -> Counter[tuple[str, str]]:
    """By socket: what was set, and to what; a closed socket's number is used again."""
    found: Counter[tuple[str, str]] = Counter()
    for line in calls.named("setsockopt"):
        told = re.search(r"setsockopt\(\d+, \w+, (\w+), ([^)]*), \d+\)", line)
        assert told, line
        found[told[1], told[2]] += 1
    return found


def read_behind_the_end(calls: Calls) -> list[str]:
    """Reads of a descriptor that had told of its end before."""
    ended: set[str] = set()
    found = []
    for line in calls.lines:
        told = re.match(r"\d+ +(\w+)\((\d+)", line)
        if not told:
            continue
        if told[1] in ("readv", "recvfrom"):
            if told[2] in ended:
                found.append(line)
            if line.endswith(" = 0"):
                ended.add(told[2])
        elif told[1] == "close":
            ended.discard(told[2])
    return found


def test_options_are_set_once(box: Namespace, tmp_path: Path) -> None:
    """lp's connections have theirs from the socket that listened, rp's get each one once. Linger is
    set and, for an orderly end, taken back. What is closed is not taken out of epoll before. A pipe
    acknowledges in the same batch what comes alone, messages of a connection and ACKs. An
    application's end is read once, and to close its socket says ours."""
    with (
        serving(box, echo) as server,
        extended_pair(
            box, tmp_path, asan=False, lp=("--forward", f"7000:127.0.0.1:{server.port}")
        ) as proxies,
    ):
        with both_traced(proxies, tmp_path) as calls:
            for _ in range(CONNECTIONS):
                with box.connect(("127.0.0.1", 7000)) as sock:
                    sock.sendall(b"x")
                    assert read_exactly(sock, 1) == b"x"
            proxies.settled()
    armed = "{l_onoff=1, l_linger=0}"
    orderly = "{l_onoff=0, l_linger=0}"
    own = {("SO_LINGER", orderly): CONNECTIONS}
    asked = {
        ("TCP_NODELAY", "[1]"): CONNECTIONS,
        ("SO_OOBINLINE", "[1]"): CONNECTIONS,
        ("SO_KEEPALIVE", "[1]"): CONNECTIONS,
        ("SO_LINGER", armed): CONNECTIONS,
    }
    for who, wanted in (("lp", own), ("rp", own | asked)):
        found = options_set(calls[who])
        of_pipes = [it for it in found if it[0] in ("TCP_NOTSENT_LOWAT", "TCP_QUICKACK")]
        assert {it: n for it, n in found.items() if it not in of_pipes} == wanted
        assert found["TCP_QUICKACK", "[1]"] <= READS_EACH * CONNECTIONS
        assert not [it for it in calls[who].named("epoll_ctl") if "EPOLL_CTL_DEL" in it]
        assert not [it for it in calls[who].named("getsockopt") if "SO_ERROR" in it]
        assert not read_behind_the_end(calls[who])
    assert not calls["lp"].named("shutdown")
    assert len(calls["rp"].named("shutdown")) == CONNECTIONS


def test_how_many_descriptors_there_may_be_is_asked_once_a_batch(
    box: Namespace, tmp_path: Path
) -> None:
    """From outside it may be changed at any time. Of a connection that comes alone it is asked
    once, not twice; of several that come at once, once for all."""
    with (
        serving(box, echo) as server,
        extended_pair(
            box, tmp_path, asan=False, lp=("--forward", f"7000:127.0.0.1:{server.port}")
        ) as proxies,
        both_traced(proxies, tmp_path) as calls,
    ):
        for _ in range(CONNECTIONS):
            with box.connect(("127.0.0.1", 7000)) as sock:
                sock.sendall(b"x")
                assert read_exactly(sock, 1) == b"x"
    assert len(calls["rp"].named("connect")) == CONNECTIONS
    assert 1 <= len(calls["rp"].named("prlimit64")) <= CONNECTIONS
    assert not calls["lp"].named("prlimit64")
