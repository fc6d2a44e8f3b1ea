# SPDX-License-Identifier: MIT
"""Sessions in threads of their own: spread, whole, and all that speaks for the process does."""

import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.relay import payload, records, wire, wire_ext
from tests.relay.ends import (
    Ending,
    Server,
    answers,
    echo,
    read_exactly,
    read_to_end,
    sending,
    serves,
    serving,
    socks,
)
from tests.relay.keyed import key_file, made, needs_tls
from tests.relay.netns import Namespace
from tests.relay.pipes import Pipes
from tests.relay.programs import BUILD, Program, binary, program
from tests.relay.proxies import LISTEN, RP_READY, local_proxy, remote_proxy
from tests.relay.strangers import pipe_from
from tests.relay.test_metrics import PORT as METRICS
from tests.relay.test_metrics import Figures, scraped
from tests.relay.test_resume import WAITING_MOST, come_and_go, pipe_of
from tests.relay.test_system_calls import traced
from tests.relay.waiting import at_once, equals, until
from tests.relay.wire import Pipe

TWO = ("--workers", "2")
OFF = ("--redirect", "off")
BULK = payload.seeded(3_000_000, seed=19)
WHOLE = Ending("eof", len(BULK), payload.digest(BULK))
TRACED_BULK = 1_000_000_000  # each worker's
BLOCK = bytes(1_000_000)


def way_in(number: int) -> tuple[str, int]:
    return "127.0.0.1", 1080 + number


@contextmanager
def local(box: Namespace, tmp: Path, number: int, *args: str, pipes: int = 4) -> Iterator[Program]:
    """One of several local proxies in one place."""
    host, port = way_in(number)
    argv = [*OFF, "--socks", f"{host}:{port}", *args]
    with local_proxy(
        box, tmp, *argv, pipes=pipes, asan=False, name=f"lp{number}", status=None
    ) as lp:
        yield lp


@contextmanager
def several(box: Namespace, tmp: Path, rp: Program, n: int, *args: str) -> Iterator[list[Program]]:
    """One after the other: rp tells their sessions apart, in the baseline too."""
    with ExitStack() as stack:
        found = []
        for i in range(n):
            found.append(stack.enter_context(local(box, tmp, i, *args)))
            rp.expect(f"^rp: session {i + 1}: ")
        yield found


def digest_of(sock: socket.socket) -> Ending:
    return read_to_end(sock)


def both_ways(box: Namespace, number: int, source: Server, sink: Server) -> None:
    """Down, and up: each byte is what it was."""
    with socks(box, "127.0.0.1", source.port, way_in(number)) as sock:
        assert read_to_end(sock) == WHOLE
    with socks(box, "127.0.0.1", sink.port, way_in(number)) as sock:
        sock.sendall(BULK)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).how == "eof"
    assert sink.results.get(timeout=20) == WHOLE


def reset_three(way: Pipes) -> None:
    before = way.killed
    until("three pipes to be reset", lambda: way.kill_one() or way.killed >= before + 3)


def tasks(who: Program) -> int:
    return len(list(Path(f"/proc/{who.pid}/task").iterdir()))


def shares(rp: Program, count: int) -> list[int]:
    """How many sessions each worker has, as the `count`-th SIGUSR1 tells."""
    rp.send_signal(signal.SIGUSR1)
    rp.expect(r"^\d+ of \d+ sessions; ", count=count)
    rp.expect(r"^worker 2: ", count=count)
    found = [re.search(r"^worker \d+: (\d+) session", it) for it in rp.lines(r"^worker \d+: ")]
    return [int(it[1]) for it in found[-2:] if it]


def ended(figures: Figures) -> float:
    """Connections, however they did."""
    name = "tm3_connections_ended_total"
    return sum(value for (of, _), value in figures.value.items() if of == name)


# --- sessions ---


@pytest.mark.parametrize("speech", ["extension", "baseline"])
def test_sessions_are_spread(box: Namespace, tmp_path: Path, speech: str) -> None:
    """All bytes are whole, and table, statistics and metrics speak for both workers."""
    stats = tmp_path / "rp.jsonl"
    more = LISTEN if speech == "extension" else ("--extended", "off")
    told = [*records.soon(stats), "--metrics", str(METRICS)]
    with (
        serving(box, sending(BULK)) as source,
        serving(box, digest_of) as sink,
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *TWO, *more, *told) as rp,
        several(box, tmp_path, rp, 4),
    ):
        assert tasks(rp) == 3
        at_once({f"lp{i}": lambda i=i: both_ways(box, i, source, sink) for i in range(4)})
        assert shares(rp, 1) == [2, 2]
        figures = scraped(box)
        assert figures.of("tm3_sessions_now") == figures.of("tm3_sessions_total") == 4
        assert [figures.of("tm3_session_pipes", session=i) for i in (1, 2, 3, 4)] == [4] * 4
        with ExitStack() as stack:
            for i in range(4):
                sock = stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(i)))
                answers(sock)
            assert scraped(box).of("tm3_connections_now") == 4
        equals("connections that have ended", lambda: ended(scraped(box)), 12)
    begun = [it["session"] for it in records.of(stats, "session") if it["event"] == "begin"]
    assert sorted(begun) == [1, 2, 3, 4]
    assert {it["session"] for it in records.of(stats, "conn")} == {1, 2, 3, 4}
    assert all(json.loads(line) for line in stats.read_text().splitlines())


@pytest.mark.parametrize("argv", [(), ("--workers", "1")], ids=["default", "one"])
def test_the_only_worker_is_the_first_thread(
    box: Namespace, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *LISTEN, *argv, asan=False) as rp,
        local(box, tmp_path, 0),
    ):
        serves(box, server.port, lp=way_in(0))
        assert tasks(rp) == 1
        rp.send_signal(signal.SIGUSR1)
        rp.expect(r"^1 of 64 sessions; ")
        assert not rp.lines("^worker ")


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "keys"])
def test_pipes_join_where_their_session_is(box: Namespace, tmp_path: Path, encrypted: bool) -> None:
    """They are reset again and again, on either worker, and nothing is lost."""
    way = Pipes(box)
    rp_keys: tuple[str, ...] = ()
    lp_keys: tuple[str, ...] = ()
    if encrypted:
        needs_tls()
        line = made("laptop")
        rp_keys = key_file(tmp_path / "rp.keys", line)
        lp_keys = key_file(tmp_path / "lp.key", line)
    with (
        serving(box, sending(BULK)) as source,
        serving(box, digest_of) as sink,
        remote_proxy(box, tmp_path, *TWO, *LISTEN, *rp_keys) as rp,
        several(box, tmp_path, rp, 2, *lp_keys),
    ):
        for _ in range(3):
            reset_three(way)
            at_once({f"lp{i}": lambda i=i: both_ways(box, i, source, sink) for i in range(2)})
        assert shares(rp, 1) == [1, 1]
        equals("all pipes", lambda: len(way.ports()), 8)
        assert not rp.lines("session [12] .*ended")


def test_four_of_an_address_wait(box: Namespace, tmp_path: Path) -> None:
    """Whichever worker they are on; see test_resume."""
    with remote_proxy(box, tmp_path, *LISTEN, *TWO, "--max-sessions-each", "9") as rp:
        for i in range(WAITING_MOST + 1):
            assert come_and_go(box, i) == wire_ext.NEW
            rp.expect("0 pipes are left", count=i + 1)
        rp.expect("session 1 of 127.0.0.1 ended: it had no pipe, as others of its address")
        assert come_and_go(box, 0, 1) == wire_ext.UNKNOWN
        for i in range(1, WAITING_MOST + 1):
            assert come_and_go(box, i, 1) == wire_ext.RESUMED
        assert len(rp.lines("ended")) == 1


def test_an_idle_session_goes_for_a_newcomer(box: Namespace, tmp_path: Path) -> None:
    """On whatever worker it is; who has connections stays."""
    full = ("--max-sessions", "3", "--max-sessions-each", "3")
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *LISTEN, *TWO, *full) as rp,
        several(box, tmp_path, rp, 2),
        pipe_of(box, 1) as (_, status),
        ExitStack() as stack,
    ):
        assert status == wire_ext.NEW
        held = [
            stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(i))) for i in range(2)
        ]
        for sock in held:
            answers(sock)
        sock = stack.enter_context(box.open_socket())
        sock.bind(("127.0.0.5", 0))
        sock.connect(("127.0.0.1", wire_ext.PORT))
        newcomer = Pipe(sock)
        newcomer.send(wire_ext.Hello(b"who came second.", 0, 1).to_bytes())
        assert wire_ext.status_of(newcomer.receive()) == wire_ext.NEW
        rp.expect("session 3 of 127.0.0.1 has to go: it had no connections")
        rp.expect("session 3 of 127.0.0.1 ended")
        for sock in held:
            answers(sock)


def test_a_port_is_given_back_by_another_worker(box: Namespace, tmp_path: Path) -> None:
    """The session of an lp that was killed is kept on one worker, the next one is on the other."""
    port = 7000
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *LISTEN, *TWO, "--permit-listen", str(port)) as rp,
    ):
        rule = ("--remote-forward", f"{port}:127.0.0.1:{server.port}")
        listens = f"rp listens on .*{port}"
        with local(box, tmp_path, 0, *rule) as lp:
            lp.expect(listens)
            lp.kill()
            rp.expect("0 pipes are left")
        with local(box, tmp_path, 1, *rule) as lp:
            lp.expect(listens)
            rp.expect("it has no pipes, and a newer session wants it")
            with box.connect(("127.0.0.1", port)) as sock:
                answers(sock)
            assert shares(rp, 1) == [1, 1]


def test_a_key_is_taken_away(box: Namespace, tmp_path: Path) -> None:
    """Sessions on both workers end, and those of others do not."""
    needs_tls()
    lost, kept = made("lost"), made("kept")
    rp_keys = key_file(tmp_path / "rp.keys", lost, kept)
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *rp_keys, *TWO) as rp,
        several(box, tmp_path, rp, 2, *key_file(tmp_path / "lost.key", lost)),
        local(box, tmp_path, 2, *key_file(tmp_path / "kept.key", kept)),
    ):
        assert sorted(shares(rp, 1)) == [1, 2]
        key_file(tmp_path / "rp.keys", kept)
        rp.send_signal(signal.SIGHUP)
        rp.expect("2 sessions end, whose key was taken away")
        rp.expect("session [12] of 127.0.0.1 ended: its key was taken away", count=2)
        serves(box, server.port, lp=way_in(2))


def four_pipes(box: Namespace, stack: ExitStack, host: str) -> None:
    for _ in range(4):
        stack.enter_context(pipe_from(box, host, wire.PORT))


def silent(box: Namespace, stack: ExitStack, rp: Program, host: str, sessions: int) -> None:
    """Complete sets of pipes of the baseline from there, on which nothing is ever said."""
    for number in range(sessions):
        four_pipes(box, stack, host)
        rp.expect(f"^rp: session .* 4 pipes from {host}", count=number + 1)


def test_silent_sessions_on_every_worker(box: Namespace, tmp_path: Path) -> None:
    """They have all places, on both workers; who comes then has one all the same, on either."""
    full = ("--max-sessions", "8", "--max-sessions-each", "4")
    with (
        serving(box, sending(BULK)) as source,
        serving(box, digest_of) as sink,
        remote_proxy(box, tmp_path, *LISTEN, *TWO, *full) as rp,
        ExitStack() as stack,
    ):
        for host in ("127.0.0.5", "127.0.0.6"):
            silent(box, stack, rp, host, 4)
        assert shares(rp, 1) == [4, 4]
        for _ in range(3):  # these have not even a session
            stack.enter_context(pipe_from(box, "127.0.0.9", wire.PORT))
            stack.enter_context(pipe_from(box, "127.0.0.9"))
        stack.enter_context(several(box, tmp_path, rp, 2))
        at_once({f"lp{i}": lambda i=i: both_ways(box, i, source, sink) for i in range(2)})
        rp.expect("session [1-8] of .* ended: it had no connections", count=2)
        assert sum(shares(rp, 2)) == 8


def test_all_sessions_from_one_address(box: Namespace, tmp_path: Path) -> None:
    """An address has as many as it may have on all workers together, not on each."""
    with (
        serving(box, sending(BULK)) as source,
        serving(box, digest_of) as sink,
        remote_proxy(box, tmp_path, *LISTEN, *TWO, "--max-sessions-each", "6") as rp,
        ExitStack() as stack,
    ):
        silent(box, stack, rp, "127.0.0.5", 6)
        assert shares(rp, 1) == [3, 3]
        four_pipes(box, stack, "127.0.0.5")
        rp.expect("its address has as many sessions as --max-sessions-each allows")
        stack.enter_context(several(box, tmp_path, rp, 2))
        at_once({f"lp{i}": lambda i=i: both_ways(box, i, source, sink) for i in range(2)})
        assert shares(rp, 2) == [4, 4]


def test_a_worker_out_of_descriptors(box: Namespace, tmp_path: Path) -> None:
    """What it refuses is its own guests'; those of the other have what they had."""
    argv = ["prlimit", "--nofile=120:120", binary("rp"), *LISTEN, *TWO, "4"]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        several(box, tmp_path, rp, 2),
        ExitStack() as stack,
    ):
        greedy = [
            stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(0))) for _ in range(60)
        ]
        rp.expect("no descriptor is left for them")
        for _ in range(10):
            answers(stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(1))))
        works = 0
        for sock in greedy:
            try:
                answers(sock)
                works += 1
            except (AssertionError, ConnectionError):
                continue
        assert 20 < works < 60


# --- what they share ---


def bulk_when_asked(sock: socket.socket) -> int:
    read_exactly(sock, 1)
    for _ in range(TRACED_BULK // len(BLOCK)):
        sock.sendall(BLOCK)
    return TRACED_BULK


def test_no_thread_waits_for_another(box: Namespace, tmp_path: Path) -> None:
    """No futex is called while a gigabyte goes through each worker: they have no lock in common
    there. It takes four seconds under strace."""
    if shutil.which("strace") is None:
        pytest.skip("no strace on this machine")
    with (
        serving(box, bulk_when_asked) as server,
        remote_proxy(box, tmp_path, *LISTEN, *TWO, asan=False) as rp,
        several(box, tmp_path, rp, 2),
        ExitStack() as stack,
    ):
        socket_of = [
            stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(i))) for i in range(2)
        ]

        def download(sock: socket.socket) -> None:
            sock.sendall(b"x")
            assert read_to_end(sock, 60.0).size == TRACED_BULK

        with traced(rp, tmp_path / "calls") as calls:
            at_once({f"lp{i}": lambda s=s: download(s) for i, s in enumerate(socket_of)})
        assert shares(rp, 1) == [1, 1]
    threads = {line.split()[0] for line in calls.named("recvmsg") + calls.named("recvfrom")}
    assert len(threads) == 2, calls.counts()
    assert not calls.named("futex"), calls.named("futex")


def killed(box: Namespace, tmp: Path, number: int, server: Server) -> None:
    """A local proxy comes, does something, and is killed."""
    with local(box, tmp, number) as lp:
        serves(box, server.port, lp=way_in(number))
        lp.kill()


def visit(box: Namespace, host: str, session: int) -> None:
    """Somebody begins a session, or is told to come later, and goes."""
    with box.open_socket() as sock:
        sock.bind((host, 0))
        sock.connect(("127.0.0.1", wire_ext.PORT))
        pipe = Pipe(sock)
        pipe.send(wire_ext.Hello(bytes([session] * 16), 0, 1).to_bytes())
        assert wire_ext.status_of(pipe.receive()) in (wire_ext.NEW, wire_ext.BUSY)


def one_after_another(box: Namespace) -> None:
    for i in range(12):
        visit(box, "127.0.0.5", i)


def strangers(box: Namespace) -> None:
    """So few that those who have several idle sessions make room for all of them."""
    for i in range(4):
        visit(box, f"127.0.1.{i + 1}", 100 + i)


def scrape(box: Namespace, rp: Program) -> None:
    for _ in range(10):
        scraped(box)
        rp.send_signal(signal.SIGUSR1)
        rp.send_signal(signal.SIGHUP)


def thread_sanitizer() -> Sequence[str | Path]:
    """How rp with it is started here, where it can be."""
    rp = BUILD / "tsan" / "rp"
    assert rp.exists(), f"{rp} is not built: make test-programs"
    tried = subprocess.run([rp, "--version"], capture_output=True, text=True)
    if not tried.returncode:
        return [rp]
    # Kernels that place memory more at random than it knows of.
    argv = ["setarch", "-R", rp]
    again = subprocess.run([*argv, "--version"], capture_output=True, text=True)
    if again.returncode:
        pytest.skip(f"no ThreadSanitizer on this machine: {tried.stderr.strip()[-200:]}")
    return argv


def test_nothing_races(box: Namespace, tmp_path: Path) -> None:
    """ThreadSanitizer over sessions that come, go and fail while others run, with a full
    --max-sessions, SIGUSR1, SIGHUP and metrics meanwhile; then SIGTERM with all of it."""
    stats = tmp_path / "rp.jsonl"
    full = ("--max-sessions", "8", "--max-sessions-each", "8")
    argv = [
        *thread_sanitizer(), *LISTEN, *TWO, *full, *records.soon(stats),
        "--metrics", str(METRICS), "4",
    ]  # fmt: skip
    way = Pipes(box)
    with (
        serving(box, sending(BULK)) as source,
        serving(box, digest_of) as sink,
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        several(box, tmp_path, rp, 2),
        ExitStack() as stack,
    ):
        for i in range(2):  # who has connections is not the one to go
            answers(stack.enter_context(socks(box, "127.0.0.1", server.port, way_in(i))))
        bulks = {f"lp{i}": lambda i=i: both_ways(box, i, source, sink) for i in range(2)}
        looks = {"looks": lambda: scrape(box, rp)}
        gone = {"lp2": lambda: killed(box, tmp_path, 2, server)}
        at_once({**bulks, **looks, **gone, "visits": lambda: one_after_another(box)})
        rp.expect("ended: it had no pipe, as others of its address")
        at_once({**bulks, **looks, "strangers": lambda: strangers(box)})
        rp.expect("ended: it had no connections, and another one needs its place")
        until("a pipe to be reset", lambda: way.kill_one() or way.killed)
        for i in range(2):
            serves(box, server.port, lp=way_in(i))
        assert rp.lines("SIGHUP: going on")
