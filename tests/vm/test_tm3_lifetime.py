# SPDX-License-Identifier: MIT
"""tm3.ko comes and goes: under load, over and over, and one namespace without the others."""

import ctypes
import errno
import os
import re
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.relay import conntrack
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.waiting import equals, until
from tests.vm.module import (
    KO,
    PROC,
    Log,
    configure,
    counters,
    in_guest,
    load,
    loaded,
    of_what_is_free,
    rmmod,
    setting,
    write,
)
from tests.vm.road import DEVICE, RP, Road, established, fetch, words

pytestmark = [in_guest, pytest.mark.timeout(180)]

Two = tuple[Namespace, Namespace]


@contextmanager
def connected(way: Road, count: int) -> Iterator[list[socket.socket]]:
    """Connections through lp that have been used and stay open; nobody says anything on them."""
    with ExitStack() as stack:
        socks = [stack.enter_context(way.near.connect((RP, 80), 30)) for _ in range(count)]
        for sock in socks:
            ask(sock)
        equals("connections at lp", lambda: established(way.near, 6003), count)
        yield socks


def ask(sock: socket.socket) -> None:
    sock.sendall(b"HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        more = sock.recv(65536)
        assert more, f"it ended after {answer!r}"
        answer += more
    assert answer.startswith(b"HTTP/1.1 200")


def ends_with(sock: socket.socket, number: int, seconds: float = 10.0) -> None:
    """Whoever waits for more is told so, with that error."""
    sock.settimeout(seconds)
    with pytest.raises(OSError) as ended:
        sock.recv(1)
    assert ended.value.errno == number


def test_rmmod_ends_what_is_redirected_and_restores_normal_traffic(way: Road) -> None:
    """More than it takes in one go; programs that only listen learn it too, and so does lp."""
    with way.proxies() as both:
        load(way.near, **words())
        with connected(way, 70) as socks:
            rmmod()
            for sock in socks:
                ends_with(sock, errno.ECONNABORTED, seconds=0.0)
        equals("connections at lp", lambda: established(way.near, 6003), 0)
        both.settled()
        equals("connections that ended at lp", lambda: len(way.ends()), 70)
        assert set(way.ends()) == {"local-reset"}
        assert fetch(way.near) == way.page
    assert len(way.relayed()) == 70


# --- forgotten by connection tracking ------------------------------------------------------------

# The module looks every 5 s (kmod/redirected.c); this guest's processor is emulated.
TOLD_S = 30.0


def forget(way: Road) -> None:
    """Once all is acknowledged: a late acknowledgement of the program's would be reset."""

    def unheard() -> set[str]:
        ends = "( sport = :6003 or dport = :6003 or dport = :80 or dport = :81 )"
        lines = way.near.run("ss", "-Htn", "state", "connected", ends).splitlines()
        return {line.split()[2] for line in lines if "SYN-SENT" not in line}

    until("all to be acknowledged", lambda: unheard() <= {"0"})
    conntrack.flush(way.near)


@contextmanager
def served(way: Road, count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Programs and, behind lp and rp, their server's ends, which have spoken once."""
    with ExitStack() as stack:
        listener = stack.enter_context(way.far.open_socket())
        listener.settimeout(TOLD_S)
        listener.bind((RP, 81))
        listener.listen()
        pairs = []
        for _ in range(count):
            program = stack.enter_context(way.near.connect((RP, 81), TOLD_S))
            server = stack.enter_context(listener.accept()[0])
            server.sendall(b"first")
            assert program.recv(5, socket.MSG_WAITALL) == b"first"
            pairs.append((program, server))
        yield pairs


def lp_asks_soon(way: Road) -> None:
    """After 3 s of silence, not 5 minutes, whether its programs are there."""
    way.near.run("sysctl", "-qw", "net.ipv4.tcp_keepalive_time=3")


@pytest.mark.parametrize("how", ["on", "off"])
def test_who_only_listens_is_told_that_its_connection_was_forgotten(way: Road, how: str) -> None:
    """And who sends, by whomever; not who never was redirected."""
    lp_asks_soon(way)
    with way.proxies() as both, way.near.connect((RP, 80), 30) as older:
        ask(older)
        load(way.near, **words("81"))
        with served(way, 2) as pairs, way.near.connect((RP, 80), 30) as direct:
            (idle, _), (active, _) = pairs
            ask(direct)
            if how == "off":
                write(way.near, "off")
            forget(way)
            active.sendall(b"word")
            active.settimeout(TOLD_S)
            with pytest.raises((ConnectionResetError, ConnectionAbortedError)):
                active.recv(1)
            ends_with(idle, errno.ECONNABORTED, TOLD_S)
            told = counters(way.near)
            assert told.pop("forgotten") in (1, 2), "who sends may be reset by its server first"
            assert told == {"redirected": 2}
            for sock in (older, direct):
                ask(sock)
            equals("connections at lp", lambda: established(way.near, 6003), 0, TOLD_S)
        both.settled(TOLD_S)
        rmmod()
        ask(older)


def test_who_waits_for_nothing_that_was_forgotten_is_left_alone(way: Road) -> None:
    """What has come is read to its end; who is still connecting is redirected once more."""
    size = 20_000  # which fits a window that nobody reads from
    deaf = "table ip deaf { chain o { type filter hook output priority 0;"
    deaf += " tcp sport 6003 tcp dport 45678 tcp flags & (syn | ack) == (syn | ack) drop; }; }"
    lp_asks_soon(way)
    with way.proxies() as both:
        load(way.near, **words("80,81"))
        with served(way, 1) as [(reader, server)], way.near.open_socket() as asking:
            server.sendall(b"x" * size)
            server.close()
            closed = ("ss", "-Htn", "state", "close-wait", "dport = :81")
            until("the end to come", lambda: way.near.run(*closed))
            way.near.nft(deaf)
            asking.bind(("10.77.0.1", 45678))
            asking.setblocking(False)
            assert asking.connect_ex((RP, 80)) == errno.EINPROGRESS
            with connected(way, 1) as [last]:  # in whose turn the others have had theirs
                forget(way)
                ends_with(last, errno.ECONNABORTED, TOLD_S)
            assert reader.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            got = 0
            while part := reader.recv(65536):
                got += len(part)
            assert got == size
            way.near.nft("delete table ip deaf")
            asking.settimeout(60)
            until("the connection", lambda: is_connected(asking), 60)
            ask(asking)
            assert counters(way.near)["forgotten"] == 1
        both.settled(TOLD_S)


def is_connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError as why:
        assert why.errno == errno.ENOTCONN
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        return False
    return True


def test_who_comes_later_with_the_same_addresses_is_somebody_else(way: Road) -> None:
    """Redirected and closed, then the same again and directly, before the module looked."""
    lp_asks_soon(way)
    with way.proxies() as both:
        load(way.near, **words())
        with connected(way, 1) as [last]:
            for number in range(2):
                sock = way.near.open_socket()
                sock.settimeout(30)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.bind(("10.77.0.1", 45678))
                sock.connect((RP, 80))
                if number == 0:
                    sock.close()
                    write(way.near, "off")
            with sock:
                ask(sock)
                forget(way)
                ends_with(last, errno.ECONNABORTED, TOLD_S)
                ask(sock)
        assert counters(way.near) == {"redirected": 2, "forgotten": 1}
        both.settled(TOLD_S)


def test_rmmod_tells_who_was_forgotten_a_moment_ago(way: Road) -> None:
    lp_asks_soon(way)
    with way.proxies() as both:
        load(way.near, **words())
        with connected(way, 3) as socks:
            forget(way)
            rmmod()
            for sock in socks:
                ends_with(sock, errno.ECONNABORTED, seconds=0.0)
        equals("connections at lp", lambda: established(way.near, 6003), 0, TOLD_S)
        both.settled(TOLD_S)


def test_unloads_under_load(way: Road) -> None:
    """Connections are being made all the while; each ends in one way or the other, none hangs."""
    with way.proxies(), ExitStack() as stack:
        load(way.near, **words())
        argv = ["curl", "-sS", "--fail", "--max-time", "60", "-o", "/dev/null"]
        argv += ["-o", "/dev/null", f"http://{RP}/page", f"http://{RP}/page"]
        crowd = [
            stack.enter_context(
                subprocess.Popen(way.near.command(argv), stderr=subprocess.PIPE, text=True)
            )
            for _ in range(8)
        ]
        until("connections to be redirected", lambda: counters(way.near).get("redirected", 0) > 4)
        rmmod()
        for curl in crowd:
            said = curl.communicate(timeout=30)[1]
            # Well, or cut off wherever it was; never 28, a time-out.
            assert curl.returncode in (0, 7, 18, 52, 55, 56), (
                f"curl ended with {curl.returncode}: {said}"
            )
        assert fetch(way.near) == way.page


# --- a program that keeps rmmod waiting -----------------------------------------------------------

MODPROBE = Path("/proc/sys/kernel/modprobe")
# In modprobe's place: says who it is, waits to be told, and then needs a namespace that begins.
LOADER = """#!/bin/sh
echo $$ >{asked}.new
mv {asked}.new {asked}
until [ -e {go} ]; do sleep 0.1; done
exec unshare --net true
"""


@contextmanager
def loader(asked: Path, go: Path) -> Iterator[None]:
    """Whoever has the kernel look for a module has it started, and waits for its end."""
    script, before = asked.with_name("loader"), MODPROBE.read_text()
    script.write_text(LOADER.format(asked=asked, go=go))
    script.chmod(0o755)
    MODPROBE.write_text(str(script))
    try:
        yield
    finally:
        MODPROBE.write_text(before)
        if asked.exists():  # so that nobody waits for ever
            with suppress(ProcessLookupError):
                os.kill(int(asked.read_text()), signal.SIGKILL)


def choose_no_control(sock: socket.socket) -> int:
    """A congestion control that no module has; the socket stays locked while the kernel looks.

    By the C library: Python's own would have its other threads wait.
    """
    libc, name = ctypes.CDLL(None, use_errno=True), b"tm3-none"
    number = sock.fileno()
    libc.setsockopt(number, socket.IPPROTO_TCP, socket.TCP_CONGESTION, name, len(name))
    return ctypes.get_errno()


def waits_for_a_socket(pid: int) -> bool:
    return "lock_sock" in Path(f"/proc/{pid}/stack").read_text()


def test_who_keeps_rmmod_waiting_may_wait_for_a_namespace(way: Road, tmp_path: Path) -> None:
    """Or, as TCP_ULP does, for a module that has something in each: both come to their end."""
    asked, go = tmp_path / "asked", tmp_path / "go"
    argv = ["sh", "-c", "read now && exec rmmod tm3"]
    with way.proxies() as both, ThreadPoolExecutor() as pool:
        load(way.near, **words())
        with (
            connected(way, 2) as (sock, other),
            subprocess.Popen(argv, stdin=subprocess.PIPE) as going,
            loader(asked, go),
        ):
            assert going.stdin
            asking = pool.submit(choose_no_control, sock)
            until("the kernel to look for a module", asked.exists)
            going.stdin.write(b"now\n")
            going.stdin.close()
            until("rmmod to wait for the socket", lambda: waits_for_a_socket(going.pid))
            with pytest.raises(OSError) as refused:
                configure(way.near, **words("81"))
            assert refused.value.errno == errno.EBUSY
            go.touch()
            equals("rmmod's exit status", going.poll, 0, 30)
            assert asking.result(10) == errno.ENOENT
            for it in (sock, other):
                ends_with(it, errno.ECONNABORTED)
        both.settled()
        assert fetch(way.near) == way.page


def test_off_lets_open_connections_go_on(way: Road) -> None:
    with way.proxies() as both:
        load(way.near, **words())
        with connected(way, 1) as (sock,):
            write(way.near, "off")
            assert fetch(way.near) == way.page
            assert established(way.near, 6003) == 1
            ask(sock)
        both.settled()
        assert counters(way.near) == {"redirected": 1}
    assert way.relayed() == [f"{RP}:80"]


def test_lp_that_moves_takes_new_connections_and_the_old_ones_end(way: Road) -> None:
    with way.rp(), way.lp("--socks", "off"):
        load(way.near, **words())
        with connected(way, 2) as socks:
            configure(way.near, **words(localPort="7003"))
            for sock in socks:
                ends_with(sock, errno.ECONNABORTED)
        assert counters(way.near) == {"redirected": 2, "aborted": 2}
        configure(way.near, **words(localPort="6003"))
        assert fetch(way.near) == way.page
        assert counters(way.near) == {"redirected": 3, "aborted": 2}


def kernel_kib() -> int:
    """What the kernel holds for itself."""
    found = re.search(r"^SUnreclaim:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


@of_what_is_free
@pytest.mark.timeout(600)
def test_a_hundred_times_in_and_out(way: Road, tmp_path: Path) -> None:
    """With a connection refused in each, one to somebody else open all the while, and no leak."""
    copy = tmp_path / "tm3.ko"
    copy.write_bytes(KO.read_bytes())
    before = 0
    with way.near.connect((RP, 80), 20) as other:
        for number in range(100):
            argv = ["insmod", copy, *(f"{name}={text}" for name, text in words().items())]
            way.near.run(*argv)
            with pytest.raises(ConnectionRefusedError):
                way.near.connect((RP, 80))
            for _ in range(8):
                configure(way.near, **words("1-65535"))
            rmmod()
            if number % 10 == 0:
                ask(other)  # nginx closes what says nothing for a minute
            if number == 10:  # the kernel's own caches have been filled
                before = kernel_kib()
    # 89 times nine configurations of 16 KiB would be 12 MiB.
    until("what was configured to be freed", lambda: kernel_kib() < before + 4096, 20)
    assert fetch(way.near) == way.page


def test_two_namespaces_with_settings_of_their_own(way: Road) -> None:
    """One redirects port 80 to an lp, the other port 81 to a port where nobody listens."""
    with namespace("next") as other, way.server(81), way.proxies():
        veth(other, "10.79.0.1/24", way.far, "10.79.0.2/24", name="next")
        other.ip("route", "add", "default", "via", "10.79.0.2")
        load(way.near, **words())
        assert setting(other) == "off"
        configure(
            other, remoteProxyIP="10.79.0.2", fwdInterface="next-l", portList="81", localPort="7003"
        )
        assert (
            setting(way.near)
            == f"remoteProxyIP={RP} fwdInterface={DEVICE} portList=80 localPort=6003"
        )
        assert fetch(way.near) == way.page
        assert fetch(way.near, port=81) == way.page
        assert fetch(other) == way.page
        with pytest.raises(ConnectionRefusedError):
            other.connect((RP, 81))
        assert counters(way.near) == {"redirected": 1}
        assert counters(other) == {"refused": 1}
        write(way.near, "off")
        with pytest.raises(ConnectionRefusedError):
            other.connect((RP, 81))
    assert way.relayed() == [f"{RP}:80"]


def test_namespaces_that_end_take_their_settings_along(log: Log) -> None:
    """Configured, with a connection under way, gone; and the module still comes out."""
    with namespace("first") as first:
        load(first)
    for _ in range(5):
        with namespace("near") as near, namespace("far") as far:
            veth(near, "10.77.0.1/24", far, f"{RP}/24")
            configure(near, **words("1-65535"))
            with near.open_socket() as listener:
                listener.bind(("127.0.0.1", 6003))
                listener.listen()
                client = near.connect((RP, 80))
                server, _ = listener.accept()
                assert counters(near) == {"redirected": 1}
                client.close()
                server.close()
    rmmod()
    assert not loaded()


def run_as(ns: Namespace, command: str, *setpriv: str) -> subprocess.CompletedProcess[str]:
    argv = ns.command(["setpriv", *setpriv, "sh", "-c", command])
    return subprocess.run(argv, capture_output=True, text=True, timeout=30)


def test_who_may_configure(two: Two, log: Log) -> None:
    """Whoever administers the network of that namespace, nobody else; everybody may read."""
    near, _ = two
    load(near, **words())
    before = setting(near)
    nobody = ("--reuid", "65534", "--regid", "65534", "--clear-groups")
    limited = ("--bounding-set=-net_admin", "--inh-caps=-net_admin")
    for privileges in (nobody, limited):
        done = run_as(near, "echo off | tee /proc/net/tm3", *privileges)
        assert done.returncode and "Operation not permitted" in done.stderr, done.stderr
        assert setting(near) == before
    assert run_as(near, "cat /proc/net/tm3", *nobody).stdout.startswith(before)
    owner = (
        "unshare --user --map-root-user --net sh -ec '"
        "ip link set lo up; ip link add own type veth peer name peer; "
        "echo remoteProxyIP=10.0.0.1 fwdInterface=own portList=80 >/proc/net/tm3; "
        "head -n 1 /proc/net/tm3'"
    )
    done = run_as(near, owner, *nobody)
    assert done.stdout.startswith("remoteProxyIP=10.0.0.1 fwdInterface=own"), done.stderr
    assert setting(near) == before


def test_a_reader_does_not_keep_it_from_going(two: Two, log: Log) -> None:
    near, _ = two
    load(near, **words())
    with near.entered():
        handle = PROC.open()
    with handle:
        assert handle.readline().startswith("remoteProxyIP=")
        rmmod()
        assert not loaded()


@pytest.mark.timeout(300)
def test_everything_at_once(way: Road) -> None:
    """Settings change and counters are read while connections are made; three times over."""
    with way.proxies():
        for _ in range(3):
            load(way.near, **words())
            stop = threading.Event()
            with ThreadPoolExecutor() as pool:
                crowd = [
                    pool.submit(work, way.near, stop)
                    for work in (change_settings, read_counters, connect, connect)
                ]
                stop.wait(3)
                until("connections meanwhile", partial(some, way, crowd))
                stop.set()
                for one in crowd:
                    one.result(30)
            assert sum(counters(way.near).values()) > 10
            rmmod()
        assert fetch(way.near) == way.page


def some(way: Road, crowd: list[Future[None]]) -> bool:
    """Were made, or somebody's work failed."""
    return sum(counters(way.near).values()) > 10 or any(one.done() for one in crowd)


def change_settings(ns: Namespace, stop: threading.Event) -> None:
    while not stop.is_set():
        for port in ("6003", "7003"):
            configure(ns, **words(localPort=port))
            write(ns, "off")
            configure(ns, **words("1-65535", localPort=port))


def read_counters(ns: Namespace, stop: threading.Event) -> None:
    while not stop.is_set():
        counters(ns)


def connect(ns: Namespace, stop: threading.Event) -> None:
    """Through lp, refused, cut off in between: all but hanging is well."""
    while not stop.is_set():
        try:
            with ns.connect((RP, 80), 20) as sock:
                sock.sendall(b"HEAD /page HTTP/1.0\r\n\r\n")
                sock.recv(100)
        except TimeoutError:
            raise
        except OSError:
            continue
