# SPDX-License-Identifier: MIT
"""The load generator and the copy loops: they do what they say, and notice what relays do wrong."""

import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import tools
from bench.programs import Program, running


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tools.build_load(tmp_path_factory.mktemp("load"))


@pytest.fixture
def server(load: Path, tmp_path: Path) -> Iterator[int]:
    """The load generator's server on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running([Program("load", (str(load), "serve", str(port)), port=port)], tmp_path):
        yield port


def run_load(
    load: Path, port: int, *arguments: str, socks: str = "-"
) -> subprocess.CompletedProcess[str]:
    command = [str(load), str(port), socks, *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (("check", "1000003"), "bytes", 1_000_003),
        (("bulk", "down", "5000000", "1"), "bytes", 5_000_000),
        (("bulk", "up", "5000000", "4"), "bytes", 5_000_000),
        (("bulk", "both", "5000000", "2"), "bytes", 5_000_000),
        (("bulk", "up", "2560000", "256"), "bytes", 2_560_000),
        (("bulk", "both", "2560000", "256"), "bytes", 2_560_000),
        (("ask", "100", "1", "30", "alone"), "round_trips", 30),
        (("ask", "16384", "8", "80", "beside"), "round_trips", 80),
        (("connects", "50"), "connections", 50),
        (("idle", "50"), "connections", 50),
        (("echo", "20"), "round_trips", 20),
        (("churn", "50", "1"), "connections", 50),
        (("paced-tcp", "up", "120"), "came", 120),
        (("paced-tcp", "down", "120"), "came", 120),
    ],
)
def test_load_does_what_it_says(
    load: Path, server: int, arguments: tuple[str, ...], key: str, value: int
) -> None:
    done = run_load(load, server, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[key] == value


def test_datagrams_that_come_are_counted(load: Path) -> None:
    """Sent to the sink itself all of them are there; sent to another port none is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for to, came in ((port, 120), (other.getsockname()[1], 0)):
            done = run_load(load, to, "paced-udp", "up", "120", str(port))
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == {"packets": 120, "came": came}


Relayed = Callable[[bytes], bytes | None]


def relay(sock: socket.socket, sink: int, up: Relayed, down: Relayed, drop_each: int) -> None:
    """Whoever sends is the client, but the sink; of the datagrams each way some are dropped."""
    # All of them may be there before this is let run, and none but what it drops may be lost.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    client = ("", 0)
    numbers = {True: itertools.count(), False: itertools.count()}
    while True:
        packet, source = sock.recvfrom(2048)
        from_sink = source == ("127.0.0.1", sink)
        client = client if from_sink else source
        said = (down if from_sink else up)(packet)
        if said is not None and (next(numbers[from_sink]) + 1) % drop_each:
            sock.sendto(said, client if from_sink else ("127.0.0.1", sink))


@contextlib.contextmanager
def socks5(sink: int, drop_each: int) -> Iterator[int]:
    """A proxy that relays datagrams to the sink and back, but each so many, and whose header is as
    in RFC 1928; it asks for nothing."""
    header = b"\0\0\0\1" + socket.inet_aton("127.0.0.1") + sink.to_bytes(2, "big")

    def up(packet: bytes) -> bytes | None:
        return packet[len(header) :] if packet.startswith(header) else None

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.bind(("127.0.0.1", 0))
        bound = socket.inet_aton("127.0.0.1") + sock.getsockname()[1].to_bytes(2, "big")

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as control:
                assert control.recv(3, socket.MSG_WAITALL) == b"\5\1\0"
                control.sendall(b"\5\0")
                assert control.recv(10, socket.MSG_WAITALL) == b"\5\3\0\1" + bytes(6)
                control.sendall(b"\5\0\0\1" + bound)
                relay(sock, sink, up, lambda packet: header + packet, drop_each)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize("way", ["up", "down"])
def test_datagrams_by_socks5_are_counted_too(load: Path, way: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        sink = free.getsockname()[1]
    with socks5(sink, drop_each=10) as proxy:
        done = run_load(load, sink, "paced-udp", way, "120", str(sink), socks=str(proxy))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"packets": 120, "came": 108}


def test_datagrams_are_asked_for(load: Path) -> None:
    """The server sends to whom it was asked by, and the client counts."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        sink = free.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]

        def serve() -> None:
            with contextlib.suppress(OSError):
                relay(sock, sink, bytes, bytes, 4)

        threading.Thread(target=serve, daemon=True).start()
        done = run_load(load, port, "paced-udp", "down", "120", str(sink))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"packets": 120, "came": 90}


def test_who_is_asked_and_is_not_there(load: Path, server: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        done = run_load(load, port, "paced-udp", "down", "120", str(server))
    assert done.returncode == 1
    assert "paced: Connection timed out" in done.stderr


@contextlib.contextmanager
def answering(halt_at: int, refuse_each: int) -> Iterator[int]:
    """A byte for each connection, but some get none, and before one of them it halts."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                for number in itertools.count(1):
                    sock, _ = listener.accept()
                    time.sleep(0.5 if number == halt_at else 0)
                    with sock:
                        if sock.recv(16) and number % refuse_each:
                            sock.sendall(b"x")

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_churn_counts_what_failed_and_tells_the_longest_pause(load: Path) -> None:
    with answering(halt_at=35, refuse_each=10) as port:
        done = run_load(load, port, "churn", "100", "1")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["connections"], told["unanswered"]) == (90, 10)
    assert 0.5 <= told["pause_s"] < told["seconds"]
    assert told["p99_us"] > 300_000, "it is counted from when a connection was due"


def test_turns_go_round_all_connections(load: Path, server: int) -> None:
    """Each line that it reads is answered by how many messages there were in that time."""
    command = [str(load), str(server), "-", "turns", "40", "1", "100"]
    done = subprocess.run(
        command, input="0.1\n0.2\n", capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    opened, *told = (json.loads(line) for line in done.stdout.splitlines())
    assert opened == {"connections": 40}
    assert len(told) == 2 and all(it["messages"] > 40 for it in told)


def test_churn_of_which_nothing_is_answered_is_a_failure(load: Path) -> None:
    with answering(halt_at=0, refuse_each=1) as port:
        done = run_load(load, port, "churn", "20", "1")
    assert done.returncode == 1 and "none of 20 connections had an answer" in done.stderr


@contextlib.contextmanager
def bad_relay(target: int, spoil: Callable[[bytes], bytes]) -> Iterator[int]:
    """Relays one connection after the other, spoiling what the server says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(change(data))
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", target))
                up = threading.Thread(target=pump, args=(near, far, bytes), daemon=True)
                up.start()
                pump(far, near, spoil)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


@contextlib.contextmanager
def two_loops(
    target: int, modes: tuple[str, str], build: Path, tmp: Path
) -> Iterator[tuple[int, int]]:
    """The ports of the first, and of what is between them."""
    tool = str(tools.build_copyloop(build))
    with contextlib.ExitStack() as probes:
        free = [probes.enter_context(socket.socket()) for _ in range(2)]
        for probe in free:
            probe.bind(("127.0.0.1", 0))
        entry, middle = (probe.getsockname()[1] for probe in free)
    relay = [
        Program("back", (tool, str(middle), str(target), modes[1]), port=middle),
        Program("front", (tool, str(entry), str(middle), modes[0]), port=entry),
    ]
    with running(relay, tmp):
        yield entry, middle


@pytest.mark.parametrize("modes", [("plain", "plain"), ("frame", "unframe")], ids=" ".join)
def test_copy_loops_relay_what_comes(
    load: Path, server: int, tmp_path: Path, modes: tuple[str, str]
) -> None:
    with two_loops(server, modes, load.parent, tmp_path) as (entry, _):
        for arguments in (
            ("check", "5000003"),
            ("bulk", "down", "50000000", "3"),
            ("bulk", "up", "50000000", "3"),
            ("connects", "50"),
            ("echo", "20"),
        ):
            done = run_load(load, entry, *arguments)
            assert done.returncode == 0, (arguments, done.stderr)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(8, sys.byteorder) + payload


def one_listening(box: contextlib.ExitStack) -> tuple[socket.socket, int]:
    sock = box.enter_context(socket.create_server(("127.0.0.1", 0)))
    return sock, sock.getsockname()[1]


def read_all(sock: socket.socket) -> bytes:
    sock.settimeout(10)
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def test_frames_of_any_size_are_undone(load: Path, tmp_path: Path) -> None:
    """Of a byte each, so that many come at once, cut anywhere, and of full size."""
    sizes = [1] * 5000 + [4096] * 100 + list(range(1, 4097, 37))
    payload = bytes(n % 251 for n in range(sum(sizes)))
    frames, at = [], 0
    for size in sizes:
        frames.append(framed(payload[at : at + size]))
        at += size
    whole = b"".join(frames)
    with contextlib.ExitStack() as box:
        server, port = one_listening(box)
        _, middle = box.enter_context(two_loops(port, ("frame", "unframe"), load.parent, tmp_path))
        sock = box.enter_context(socket.create_connection(("127.0.0.1", middle)))
        there, _ = server.accept()
        box.enter_context(there)
        sender = threading.Thread(target=send_in_pieces, args=(sock, whole))
        sender.start()
        assert read_all(there) == payload
        sender.join()


def send_in_pieces(sock: socket.socket, data: bytes) -> None:
    """First byte by byte, then in pieces that end anywhere."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(100):
        sock.sendall(data[at : at + 1])
    for at in range(100, len(data), 9973):
        sock.sendall(data[at : at + 9973])
    sock.shutdown(socket.SHUT_WR)


def test_what_is_no_frame_ends_the_connection(load: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as box:
        server, port = one_listening(box)
        _, middle = box.enter_context(two_loops(port, ("frame", "unframe"), load.parent, tmp_path))
        for wrong in (bytes(8), (4097).to_bytes(8, sys.byteorder)):
            sock = box.enter_context(socket.create_connection(("127.0.0.1", middle)))
            there, _ = server.accept()
            box.enter_context(there)
            sock.sendall(framed(b"sound") + wrong + b"x")
            with contextlib.suppress(ConnectionError):
                assert read_all(there) in (b"", b"sound")
            with contextlib.suppress(ConnectionError):
                assert read_all(sock) == b""


@pytest.mark.parametrize("words", [(), ("1", "2"), ("1", "2", "sideways")])
def test_copyloop_refuses_wrong_words(load: Path, words: tuple[str, ...]) -> None:
    tool = tools.build_copyloop(load.parent)
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "copyloop" in done.stderr


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: data[1:] + data[:1]],
    ids=["a flipped bit", "bytes out of order"],
)
def test_check_catches_a_relay_that_spoils_bytes(
    load: Path, server: int, spoil: Callable[[bytes], bytes]
) -> None:
    with bad_relay(server, spoil) as port:
        done = run_load(load, port, "check", "300000")
    assert done.returncode == 1
    assert "wrong after byte" in done.stderr


def test_a_transfer_cut_short_is_a_failure(load: Path, server: int) -> None:
    with bad_relay(server, cut_after(100_000)) as port:
        done = run_load(load, port, "bulk", "down", "300000", "1")
    assert done.returncode == 1
    assert "200000 bytes short" in done.stderr


def cut_after(limit: int) -> Callable[[bytes], bytes]:
    left = limit

    def cut(data: bytes) -> bytes:
        nonlocal left
        if left == 0:
            raise OSError
        data = data[:left]
        left -= len(data)
        return data

    return cut
