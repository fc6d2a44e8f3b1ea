# SPDX-License-Identifier: MIT
"""lp and rp over the extension: names, IPv6, true answers, and many behind one address."""

import re
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.ends import (
    answers,
    echo,
    read_to_end,
    reset,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
)
from tests.relay.netns import Namespace, two_on_a_link
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import LP_READY, RP_READY, Pair, local_proxy, pair, remote_proxy
from tests.relay.test_redirect import from_guide
from tests.relay.waiting import at_once, equals, until

Connected = AbstractContextManager[socket.socket]
REFUSED, UNREACHABLE, DENIED, TIMED_OUT = 5, 4, 2, 6
LISTEN = ("--listen", "127.0.0.1")
EXTENDED = r"lp: 4 pipes to 127\.0\.0\.1:6010 are up"
LATE = ("--socks-reply", "late")


@contextmanager
def extended(box: Namespace, tmp: Path, *lp: str, rp: tuple[str, ...] = ()) -> Iterator[Pair]:
    with pair(box, tmp, rp=[*LISTEN, *rp], lp=lp) as proxies:
        assert proxies.lp.lines(EXTENDED), proxies.lp.log
        assert proxies.rp.lines("session 1: the first of 4 pipes")
        yield proxies


@contextmanager
def rp_that_knows(
    box: Namespace, tmp: Path, *hosts: str, rp: tuple[str, ...] = ()
) -> Iterator[Program]:
    """An rp whose /etc/hosts is `hosts`; nobody else sees it."""
    table = tmp / "hosts"
    table.write_text("".join(f"{line}\n" for line in hosts))
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    argv = ["unshare", "--mount", "--", "sh", "-c", script, table]
    argv += [binary("rp"), *LISTEN, *rp, "4"]
    with program(box, argv, tmp / "rp.log", name="rp", ready=RP_READY) as running:
        yield running


def reply_to(ns: Namespace, host: str, port: int) -> int:
    with socks_greet(ns) as sock:
        sock.sendall(socks_request(host, port))
        return socks_reply(sock)


def test_bytes_go_both_ways(box: Namespace, tmp_path: Path) -> None:
    data = payload.seeded(1_500_000)
    with serving(box, echo) as server, extended(box, tmp_path), ExitStack() as stack:
        socks_ = [stack.enter_context(socks(box, "127.0.0.1", server.port)) for _ in range(3)]
        for sock in socks_:
            sock.settimeout(20)
            answers(sock)
        for sock in socks_:
            for at in range(0, len(data), 100_000):
                answers(sock, data[at : at + 100_000])


def test_a_name_is_looked_up_by_rp(box: Namespace, tmp_path: Path) -> None:
    """Which knows names that nobody knows where lp is."""
    with (
        serving(box, echo) as server,
        rp_that_knows(box, tmp_path, "127.0.0.1 only.rp.example"),
        local_proxy(box, tmp_path, "--forward", f"7000:only.rp.example:{server.port}"),
    ):
        with socks(box, "only.rp.example", server.port) as sock:
            answers(sock)
        with box.connect(("127.0.0.1", 7000)) as sock:
            answers(sock)


def test_lp_looks_names_up_if_it_shall(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        rp_that_knows(box, tmp_path, "127.0.0.1 only.rp.example"),
        local_proxy(box, tmp_path, "--names", "lp"),
    ):
        assert reply_to(box, "only.rp.example", server.port) == UNREACHABLE
        with socks(box, "localhost", server.port) as sock:
            answers(sock)


def test_a_name_is_tried_at_all_of_its_addresses(box: Namespace, tmp_path: Path) -> None:
    """One refuses, one is denied by the rules and not tried."""
    hosts = [f"127.0.0.{last} several.example" for last in (3, 2, 1)]
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        serving(box, echo, ("127.0.0.2", 8000)) as denied,
        rp_that_knows(box, tmp_path, *hosts, rp=("--deny", "127.0.0.2")) as rp,
        local_proxy(box, tmp_path),
        socks(box, "several.example", 8000) as sock,
    ):
        answers(sock)
        rp.expect("to several.example:8000, which is 127.0.0.2, denied: --deny 127.0.0.2")
        assert denied.results.empty()


def test_a_name_is_no_way_around_the_rules(box: Namespace, tmp_path: Path) -> None:
    hosts = ["169.254.169.254 metadata.example", "::ffff:10.1.2.3 wrapped.example"]
    with (
        rp_that_knows(box, tmp_path, *hosts, rp=("--deny", "10.0.0.0/8")),
        local_proxy(box, tmp_path, *LATE),
    ):
        for host in ("metadata.example", "wrapped.example", "169.254.169.254"):
            assert reply_to(box, host, 80) == DENIED


def test_ipv6(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo, ("::1", 8000)),
        extended(box, tmp_path, "--forward", "7000:[::1]:8000"),
    ):
        with socks(box, "::1", 8000) as sock:
            answers(sock)
        with box.connect(("127.0.0.1", 7000)) as sock:
            answers(sock)


def test_redirected_ipv6(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    near, far = two
    near.ip("address", "add", "2001:db8::1/64", "dev", "wire-l", "nodad")
    far.ip("address", "add", "2001:db8::2/64", "dev", "wire-r", "nodad")
    rules = ["--allow", "10.77.0.1/32", "--permit", "2001:db8::/64"]
    with (
        serving(far, echo, ("2001:db8::2", 80)),
        pair(
            far, tmp_path, rp=rules, lp=["--redirect", "[::1]:6003"], lp_ns=near, to="10.77.0.2"
        ) as proxies,
    ):
        assert proxies.lp.lines("4 pipes to 10.77.0.2:6010 are up")
        near.nft(from_guide("IPv6"))
        with near.connect(("2001:db8::2", 80)) as sock:
            answers(sock)
            proxies.rp.send_signal(signal.SIGUSR1)
            proxies.rp.expect(r"\[2001:db8::2\]:80")


def test_rules_of_ipv6(box: Namespace, tmp_path: Path) -> None:
    with extended(box, tmp_path, *LATE, rp=("--deny", "2001:db8::/32")):
        wrapped = ("64:ff9b::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00:808:808", "2002:a9fe:a9fe::1")
        for host in ("2001:db8::1", "fe80::1", "ff02::1", "::", *wrapped):
            assert reply_to(box, host, 80) == DENIED, host


# --- SOCKS5's true answers --------------------------------------------------------


def test_late_answers_are_true(box: Namespace, tmp_path: Path) -> None:
    box.ip("route", "add", "unreachable", "10.8.0.0/16")
    box.ip("address", "add", "10.9.0.1/32", "dev", "lo")
    box.nft(
        "table inet t {\nchain in {\n"
        "type filter hook input priority 0\nip daddr 10.9.0.1 drop\n}\n}\n"
    )
    options = ("--connect-timeout", "1")
    with serving(box, echo) as server, extended(box, tmp_path, *LATE, rp=options):
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock)
        assert reply_to(box, "127.0.0.1", 9) == REFUSED
        assert reply_to(box, "localhost", 9) == REFUSED
        assert reply_to(box, "10.8.0.1", 80) == UNREACHABLE
        assert reply_to(box, "no-such-name.invalid", 80) == UNREACHABLE
        assert reply_to(box, "169.254.169.254", 80) == DENIED
        started = time.monotonic()
        assert reply_to(box, "10.9.0.1", 80) == TIMED_OUT
        assert time.monotonic() - started > 0.9


def test_early_answers_do_not_wait(box: Namespace, tmp_path: Path) -> None:
    with extended(box, tmp_path), socks(box, "127.0.0.1", 9) as sock:
        assert read_to_end(sock, 5).how == "reset"


def test_who_leaves_before_the_answer(box: Namespace, tmp_path: Path) -> None:
    """Nothing of it stays, at neither end; nor if rp answers at that moment."""
    box.ip("address", "add", "10.9.0.1/32", "dev", "lo")
    box.nft(
        "table inet t {\nchain in {\n"
        "type filter hook input priority 0\nip daddr 10.9.0.1 drop\n}\n}\n"
    )
    with serving(box, echo) as server, extended(box, tmp_path, *LATE) as proxies:
        for host, port in (("10.9.0.1", 80), ("127.0.0.1", server.port), ("127.0.0.1", 9)) * 5:
            sock = socks_greet(box)
            sock.sendall(socks_request(host, port))
            reset(sock)
        equals("lp's descriptors", proxies.lp.fd_count, proxies.lp_fds, 5)
        equals("rp's descriptors", proxies.rp.fd_count, proxies.rp_fds, 5)
        with socks(box, "127.0.0.1", server.port) as sock:
            answers(sock)


def test_when_rp_goes_who_waits_is_told(box: Namespace, tmp_path: Path) -> None:
    box.ip("address", "add", "10.9.0.1/32", "dev", "lo")
    box.nft(
        "table inet t {\nchain in {\n"
        "type filter hook input priority 0\nip daddr 10.9.0.1 drop\n}\n}\n"
    )
    with extended(box, tmp_path, *LATE) as proxies, socks_greet(box) as sock:
        sock.sendall(socks_request("10.9.0.1", 80))
        proxies.rp.kill()
        proxies.lp.expect("lost the pipes to 127.0.0.1:6010: rp is there no more")
        sock.settimeout(5)
        end = b""
        with suppress(ConnectionResetError):  # as true as an answer
            end = sock.recv(100)
        assert end[:2] != b"\x05\x00"


# --- many behind one address ------------------------------------------------------


def test_two_local_proxies_behind_one_address(box: Namespace, tmp_path: Path) -> None:
    """Each with another count of pipes than rp was started for, dialling at the same time."""
    counts = (1, 3, 5, 64)
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *LISTEN, pipes=4) as rp,
        ExitStack() as stack,
    ):
        lps = [
            stack.enter_context(
                local_proxy(
                    box, tmp_path, "--redirect", "off", "--socks", str(7000 + i),
                    pipes=n, name=f"lp{i}", ready=None,
                )
            )
            for i, n in enumerate(counts)
        ]  # fmt: skip
        for lp in lps:
            lp.expect(LP_READY)
            assert lp.lines("127.0.0.1:6010 (is|are) up")
        assert len(rp.lines(r"session \d: the first of")) == len(counts)
        for _ in range(3):
            socks_ = [
                stack.enter_context(socks(box, "127.0.0.1", server.port, ("127.0.0.1", 7000 + i)))
                for i in range(len(counts))
            ]
            for i, sock in enumerate(socks_):
                for _ in range(20):
                    answers(sock, struct.pack("<I", i) * 1000)


def test_old_and_new_on_one_rp(box: Namespace, tmp_path: Path) -> None:
    never = ("--extend", "never", "--redirect", "off", "--socks", "7001")
    with (
        serving(box, echo) as server,
        extended(box, tmp_path) as proxies,
        local_proxy(box, tmp_path, *never, name="old"),
    ):
        proxies.rp.expect("session 2: 4 pipes from 127.0.0.1")
        for port in (1080, 7001):
            with socks(box, "127.0.0.1", server.port, ("127.0.0.1", port)) as sock:
                answers(sock)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_when_rp_comes_back(box: Namespace, tmp_path: Path, how: str) -> None:
    with serving(box, echo) as server, local_proxy(box, tmp_path, ready=None) as lp:
        for i in range(2):
            with remote_proxy(box, tmp_path, *LISTEN, name=f"rp{i}") as rp:
                lp.expect(EXTENDED, count=i + 1)
                with socks(box, "127.0.0.1", server.port) as sock:
                    answers(sock)
                    if how == "kill":
                        rp.kill()
                    else:
                        rp.stop()
                    assert read_to_end(sock, 5).how == "reset"
                lp.expect("lost the pipes", count=i + 1)


def ends_of_pipes(ns: Namespace) -> list[str]:
    """A line for each, with what its kernel counted; both ends are here."""
    told = ns.run("ss", "-tinHO", "state", "established", "( sport = :6010 or dport = :6010 )")
    return told.splitlines()


def counted(line: str, what: str) -> int:
    found = re.search(rf"\b{what}:(\d+)", line)
    return int(found[1]) if found else 0


def sent_on_pipes(ns: Namespace) -> dict[tuple[str, str], int]:
    """Bytes so far, by the addresses of a pipe's end and its peer."""
    found = {}
    for line in ends_of_pipes(ns):
        _, _, end, peer, *_ = line.split()
        found[end, peer] = counted(line, "bytes_sent")
    return found


def quiet_ms(ns: Namespace) -> int:
    """How long none of them has sent data."""
    return min(counted(line, "lastsnd") for line in ends_of_pipes(ns))


@pytest.mark.slow
def test_an_idle_session_says_nothing_but_ping(box: Namespace, tmp_path: Path) -> None:
    """With connections open, one of which has just had a megabyte, all of it acknowledged."""
    ping, pong, seconds = 25, 33, 18.0
    with (
        serving(box, echo) as server,
        extended(box, tmp_path),
        socks(box, "127.0.0.1", server.port) as sock,
        socks(box, "127.0.0.1", server.port) as other,
    ):
        answers(other)
        for _ in range(10):
            answers(sock, bytes(100_000))
        until("what is left of the megabyte to be said", lambda: quiet_ms(box) > 500)
        before = sent_on_pipes(box)
        time.sleep(seconds)
        after = sent_on_pipes(box)
        assert len(before) == 8 and set(after) == set(before)
        grown = [after[end] - before[end] for end in before]
        # Each end of a pipe asks every 15 s at most and answers the other.
        few = {pings * ping + pongs * pong for pings in (0, 1, 2) for pongs in (0, 1, 2)}
        assert set(grown) <= few and sum(grown) > 0, grown
        answers(sock)


@pytest.mark.parametrize("size", [0, 1, 50_000, 500_000])
def test_half_close(box: Namespace, tmp_path: Path, size: int) -> None:
    """What `cat file | nc` does: the server answers when it has read to the end."""

    def count(sock: socket.socket) -> None:
        sock.sendall(str(read_to_end(sock).size).encode())

    with (
        serving(box, count) as server,
        extended(box, tmp_path),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        sock.sendall(b"x" * size)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == str(size).encode()
        assert read_to_end(sock).how == "eof"


def who_half_closed_and_went(
    near: Namespace, far: Namespace, tmp_path: Path, connected: Callable[[Namespace], Connected]
) -> None:
    near.run("sysctl", "-q", "-w", "net.ipv4.tcp_fin_timeout=1")
    rules = ["--allow", "10.77.0.1/32", "--permit", "10.77.0.0/24"]
    forward = ["--forward", "7000:10.77.0.2:80"]

    def is_told(sock: socket.socket) -> tuple[str, bool]:
        how = read_to_end(sock).how
        poller = select.poll()
        poller.register(sock, 0)
        return how, bool(poller.poll(20_000))

    with (
        serving(far, is_told, ("10.77.0.2", 80)) as server,
        pair(far, tmp_path, rp=rules, lp=forward, lp_ns=near, to="10.77.0.2") as proxies,
    ):
        assert proxies.lp.lines("4 pipes to 10.77.0.2:6010 are up")
        near.nft(from_guide("Programs of this machine"))
        with connected(near) as sock:
            sock.sendall(b"a question")
            sock.shutdown(socket.SHUT_WR)
        assert server.results.get(timeout=30) == ("eof", True)
        proxies.settled()


@pytest.mark.slow
@pytest.mark.usefixtures("box")
def test_who_half_closed_and_went_is_missed(tmp_path: Path) -> None:
    """Nobody sends anything; lp asks after 10 s, and the kernel knows no such connection. Each way
    in a network of its own, all at once: none has more to do than to wait."""
    ways: dict[str, Callable[[Namespace], Connected]] = {
        "socks": lambda near: socks(near, "10.77.0.2", 80),
        "forward": lambda near: near.connect(("127.0.0.1", 7000)),
        "redirect": lambda near: near.connect(("10.77.0.2", 80)),
    }

    def alone(way: str) -> None:
        (tmp_path / way).mkdir()
        with two_on_a_link() as (near, far):
            who_half_closed_and_went(near, far, tmp_path / way, ways[way])

    at_once({way: partial(alone, way) for way in ways})
