# SPDX-License-Identifier: MIT
"""rp is for many: nobody takes all of its sessions, places or descriptors."""

import fcntl
import signal
import socket
import struct
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.relay import wire, wire_ext
from tests.relay.ends import echo, serves, serving
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import RP_READY, local_proxy, remote_proxy
from tests.relay.waiting import equals
from tests.relay.wire import Pipe, raw_lp

GREEDY = "127.0.0.5"


def pipe_from(box: Namespace, source: str, port: int = 6000) -> socket.socket:
    sock = box.open_socket()
    sock.settimeout(5)
    sock.bind((source, 0))
    with suppress(ConnectionResetError):  # it may come before connect() returns
        sock.connect(("127.0.0.1", port))
    return sock


def unsent(pipe: Pipe) -> int:
    """What of it is not yet in the other end's buffer."""
    told = fcntl.ioctl(pipe.sock, termios.TIOCOUTQ, struct.pack("i", 0))
    return int(struct.unpack("i", told)[0])


def test_one_address_does_not_shut_out_others(box: Namespace, tmp_path: Path) -> None:
    """128 idle pipes of one address, which were 64 sessions."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, pipes=1) as rp,
        ExitStack() as stack,
    ):
        for _ in range(128):
            stack.enter_context(pipe_from(box, GREEDY))
        with local_proxy(box, tmp_path, pipes=1):
            serves(box, server.port)
        rp.expect(r"was reset: its address has as many sessions as --max-sessions-each allows")
        assert len(rp.lines(rf"session \d+: 1 pipe from {GREEDY}")) <= 16


def test_who_has_most_idle_sessions_makes_room(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--max-sessions", "4", "--max-sessions-each", "4", pipes=1),
        ExitStack() as stack,
    ):
        pipes = [stack.enter_context(pipe_from(box, GREEDY)) for _ in range(4)]
        with local_proxy(box, tmp_path, pipes=1):
            serves(box, server.port)
            assert pipes[0].recv(1) == b"", "the oldest went"
            pipes[1].setblocking(False)
            with pytest.raises(BlockingIOError):
                pipes[1].recv(1)


def test_pipes_that_wait_do_not_shut_out_others(box: Namespace, tmp_path: Path) -> None:
    """1,500 single pipes, each from an address of its own, and 256 places (rp/reserve.h)."""
    argv = ["prlimit", "--nofile=8192:8192", binary("rp", asan=False), "4"]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        ExitStack() as stack,
    ):
        for n in range(1500):
            stack.enter_context(pipe_from(box, f"127.1.{n // 250}.{n % 250 + 1}"))
        with local_proxy(box, tmp_path, asan=False) as lp:
            serves(box, server.port)
            assert not lp.lines("no pipes|lost")
        rp.expect(r"1 of 4 pipes from 127\.1\.\d+\.\d+ was closed: 256 pipes wait")


def gap(count: int, conn: int = 1) -> list[bytes]:
    """Messages of a connection that wait for its number 1."""
    return [wire.data(conn, number, bytes(4096)) for number in range(2, 2 + count)]


def fill(pipe: Pipe, port: int, mib: int) -> None:
    with suppress(OSError):
        pipe.send(wire.syn(1, "127.0.0.1", port), *gap(mib << 8))


def held_mib(
    box: Namespace, tmp_path: Path, sources: list[str], memory_mib: int, *, too_much: bool = True
) -> int:
    """Each sends 40 MiB that nobody can take; rp's growth. Somebody with little lives on."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--memory", str(memory_mib), pipes=1, asan=False) as rp,
        ExitStack() as stack,
    ):
        (modest,) = stack.enter_context(raw_lp(box, 1))
        modest.send(wire.syn(1, "127.0.0.1", server.port), wire.data(1, 2, b"two"))
        pipes = [Pipe(stack.enter_context(pipe_from(box, source))) for source in sources]
        before = rp.rss_kib()
        for pipe in pipes:
            fill(pipe, server.port, 40)
            equals("what rp did not read", lambda p=pipe: unsent(p), 0)
        peak = rp.rss_kib() - before
        if too_much:
            rp.expect(r"of all it holds most, \d+ bytes, and there is too much: reset 1 conn")
        modest.send(wire.data(1, 1, b"one"))
        answer = b""
        while answer != b"onetwo":
            message = modest.receive()
            assert message is not None and message.kind == "data", message
            answer += message.body
        return peak >> 10


def test_memory_of_all_together_is_bounded(box: Namespace, tmp_path: Path) -> None:
    sources = [f"127.0.1.{n}" for n in range(1, 5)]
    assert held_mib(box, tmp_path, sources, 96) < 130


def test_memory_of_one_address_is_bounded(box: Namespace, tmp_path: Path) -> None:
    assert held_mib(box, tmp_path, [GREEDY] * 4, 96) < 80


def test_so_is_that_of_its_sessions_of_the_extension(box: Namespace, tmp_path: Path) -> None:
    """Two hold 0.7 MiB each, and half of what all may hold is 1 MiB."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--max-memory", "2") as rp,
        ExitStack() as stack,
    ):
        for session in (b"a" * 16, b"b" * 16):
            pipe = Pipe(stack.enter_context(pipe_from(box, GREEDY, wire_ext.PORT)))
            pipe.send(wire_ext.Hello(session, 0, 1).to_bytes())
            assert wire_ext.status_of(pipe.receive()) == wire_ext.NEW
            for conn in range(1, 13):
                start = wire_ext.open_(conn, "127.0.0.1", server.port)
                pipe.send(start, *gap(15, conn))
        rp.expect(r"of all it holds most, \d+ bytes, and there is too much: reset \d+ conn")


@contextmanager
def silent_names(box: Namespace, tmp_path: Path) -> Iterator[tuple[Program, socket.socket]]:
    """An rp whose name server answers nothing, and this one's socket; one name is in /etc/hosts."""
    files = {"resolv.conf": "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n",
             "hosts": "127.0.0.1 known.example\n"}  # fmt: skip
    mounts = []
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        mounts.append(f'mount --bind "{tmp_path / name}" "$(readlink -f /etc/{name})"')
    argv = ["unshare", "--mount", "--", "sh", "-c", " && ".join([*mounts, 'exec "$0" "$@"']),
            binary("rp"), "--listen", "127.0.0.1", "4"]  # fmt: skip
    silent = box.open_socket(kind=socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    with silent, program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp:
        yield rp, silent


def ask_for_names(pipe: Pipe, session: bytes, port: int, count: int = 8) -> None:
    """So many, none of which is found; they were asked for when this returns."""
    pipe.send(wire_ext.Hello(session.ljust(16, b"."), 0, 1).to_bytes())
    assert wire_ext.status_of(pipe.receive()) == wire_ext.NEW
    names = [f"{session.decode()}{number}.example" for number in range(count)]
    pipe.send(*(wire_ext.open_name(1 + at, name, 80) for at, name in enumerate(names)))
    pipe.send(wire_ext.open_(9, "127.0.0.1", port))
    assert pipe.receive() is not None


def asked_for(name_server: socket.socket, names: set[bytes]) -> None:
    """A thread looks each of them up."""
    name_server.settimeout(10)
    while names:
        query = name_server.recv(512)
        names -= {name for name in names if name in query}


def test_names_of_one_peer_leave_threads_for_others(box: Namespace, tmp_path: Path) -> None:
    """Four sessions of an address ask for as many names as there are threads, and all hang."""
    with (
        serving(box, echo) as server,
        silent_names(box, tmp_path) as (rp, name_server),
        local_proxy(box, tmp_path),
        ExitStack() as stack,
    ):
        for session in (b"a", b"b", b"c", b"d"):
            pipe = Pipe(stack.enter_context(pipe_from(box, GREEDY, wire_ext.PORT)))
            ask_for_names(pipe, session, server.port)
            if session == b"a":
                asked_for(name_server, {f"a{number}".encode() for number in range(8)})
        rp.expect("and others have to wait: 8 names of this peer are being looked up")
        serves(box, server.port, "known.example")


def test_names_of_several_peers_leave_threads_for_others(box: Namespace, tmp_path: Path) -> None:
    """Four that may have a quarter of the threads each have all of them, and all hang.

    A fifth one then has two of its own, and a friend finds his name all the same.
    """
    with (
        serving(box, echo) as server,
        silent_names(box, tmp_path) as (rp, _),
        local_proxy(box, tmp_path),
        ExitStack() as stack,
    ):
        tasks = Path(f"/proc/{rp.process.pid}/task")
        idle = len(list(tasks.iterdir()))
        peers = zip((b"a", b"b", b"c", b"d", b"e"), (8, 16, 24, 32, 34), strict=True)
        for at, (session, busy) in enumerate(peers):
            source = f"127.0.0.{10 + at}"
            pipe = Pipe(stack.enter_context(pipe_from(box, source, wire_ext.PORT)))
            ask_for_names(pipe, session, server.port)
            equals("threads that look up", lambda: len(list(tasks.iterdir())) - idle, busy)
        serves(box, server.port, "known.example")


def test_names_of_peers_that_went_leave_threads_for_who_was_there(
    box: Namespace, tmp_path: Path
) -> None:
    """They come one after the other, and their names hang on when their sessions have ended.

    All threads are theirs, but for two of the friend, who has had a session since before.
    """
    with (
        serving(box, echo) as server,
        silent_names(box, tmp_path) as (rp, name_server),
        local_proxy(box, tmp_path),
        ExitStack() as stack,
    ):
        for at in range(70):
            pipe = Pipe(stack.enter_context(pipe_from(box, f"127.0.1.{at}", wire_ext.PORT)))
            count = 8 if at < 4 else 2
            ask_for_names(pipe, f"peer{at}-".encode(), server.port, count)
            if at >= 67:  # names of the next one, or of the next but one, wait
                continue
            asked_for(name_server, {f"peer{at}-{number}".encode() for number in range(count)})
            pipe.send(wire.data(0, 0, b"\x07\x00"))  # GOODBYE
            assert pipe.ended()
        rp.expect("have to wait: names of other peers, that hang, have all threads")
        serves(box, server.port, "known.example")


def test_as_much_memory_as_is_allowed_is_there(box: Namespace, tmp_path: Path) -> None:
    assert held_mib(box, tmp_path, [GREEDY] * 4, 640, too_much=False) > 150


def arrived(box: Namespace) -> list[str]:
    """What the kernel holds for rp, taken or not."""
    return box.run("ss", "-Htn", "state", "established", "dport = :6000").splitlines()


@pytest.mark.parametrize(
    ("pipes", "said"),
    [
        (1, r"^rp: sessions 1 and 2 of 127\.0\.0\.1 began within 5 s, .* started for 1 pipe:"),
        (2, r"^rp: 4 pipes came from 127\.0\.0\.1 at once, and rp was started for 2"),
        (3, r"^rp: 4 pipes came from 127\.0\.0\.1 at once, and rp was started for 3"),
    ],
)
def test_an_lp_with_more_pipes_is_told_of(
    box: Namespace, tmp_path: Path, pipes: int, said: str
) -> None:
    """rp is stopped until all of them are there: a group would be whole before the last came."""
    with (
        remote_proxy(box, tmp_path, pipes=pipes) as rp,
        ExitStack() as stack,
    ):
        rp.send_signal(signal.SIGSTOP)
        stack.callback(rp.send_signal, signal.SIGCONT)
        stack.enter_context(local_proxy(box, tmp_path, pipes=4, ready=None))
        equals("pipes that came", lambda: len(arrived(box)), 4)
        rp.send_signal(signal.SIGCONT)
        rp.expect(said)


@pytest.mark.parametrize(("pipes", "came"), [(1, [1, 1]), (2, [2, 2])])
def test_so_is_one_whose_pipes_come_later(
    box: Namespace, tmp_path: Path, pipes: int, came: list[int]
) -> None:
    """As where a SYN is lost: for the lobby those before are a group."""
    with remote_proxy(box, tmp_path, pipes=pipes) as rp, ExitStack() as stack:
        for session, count in enumerate(came, 1):
            for _ in range(count):
                stack.enter_context(pipe_from(box, GREEDY))
            rp.expect(rf"session {session}: {pipes} pipes? from {GREEDY}")
        rp.expect(rf"sessions 1 and 2 of {GREEDY} began within 5 s, .* for {pipes} pipe")


def test_several_with_the_right_number_go_on(box: Namespace, tmp_path: Path) -> None:
    """They may be one: said, and nothing done."""
    with remote_proxy(box, tmp_path) as rp, local_proxy(box, tmp_path, pipes=4):
        ports = ("--socks", "off", "--redirect", "off", "--forward", "7001:127.0.0.1:80")
        rp.expect("session 1: 4 pipes")
        with local_proxy(box, tmp_path, *ports, name="second"):
            rp.expect("sessions 1 and 2 of .* if both are of one lp that was started for more")
            assert not rp.lines("reset|closed")


def test_sessions_of_the_extension_say_who_they_are(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1") as rp,
        local_proxy(box, tmp_path, pipes=2),
        local_proxy(box, tmp_path, "--redirect", "off", "--socks", "7001", pipes=2, name="second"),
    ):
        rp.expect("session 2: the first of 2 pipes")
        assert not rp.lines("began within")


def test_waiting_pipes_of_one_address_leave_room_for_others(box: Namespace, tmp_path: Path) -> None:
    """More than there are places in all, of one that never stops for a group to be made."""
    with (
        remote_proxy(box, tmp_path, asan=False) as rp,
        pipe_from(box, "127.0.0.9") as modest,
        ExitStack() as stack,
    ):
        for _ in range(1500):
            stack.enter_context(pipe_from(box, GREEDY))
        rp.expect(rf"\d+ pipes came from {GREEDY} at once, .* all were reset")
        modest.setblocking(False)
        with pytest.raises(BlockingIOError):
            modest.recv(1)


@contextmanager
def limited(box: Namespace, tmp_path: Path, soft: int, hard: int, pipes: int) -> Iterator[Program]:
    argv = ["prlimit", f"--nofile={soft}:{hard}", binary("rp", asan=False), str(pipes)]
    with program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp:
        yield rp


def test_the_soft_limit_of_descriptors_is_raised(box: Namespace, tmp_path: Path) -> None:
    with limited(box, tmp_path, 100, 3000, 4) as rp:
        limits = Path(f"/proc/{rp.pid}/limits").read_text()
        (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
        assert line.split()[3:5] == ["3000", "3000"]


def test_one_session_does_not_take_all_descriptors(box: Namespace, tmp_path: Path) -> None:
    """Who comes later still gets pipes, and connections."""
    with (
        serving(box, echo) as server,
        limited(box, tmp_path, 100, 100, 1) as rp,
        raw_lp(box, 1) as (greedy,),
    ):
        greedy.send(*[wire.syn(conn, "127.0.0.1", server.port) for conn in range(1, 301)])
        rp.expect(r"others were refused: no descriptor")
        with local_proxy(box, tmp_path, pipes=1):
            serves(box, server.port)


def test_a_whole_group_may_wait_where_descriptors_are_few(box: Namespace, tmp_path: Path) -> None:
    """Of the baseline, more pipes than the share of descriptors that those who wait have."""
    argv = ["prlimit", "--nofile=100:100", binary("rp", asan=False), "--listen", "127.0.0.1", "32"]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY),
        local_proxy(box, tmp_path, "--extend", "never", pipes=32, asan=False),
    ):
        serves(box, server.port)
