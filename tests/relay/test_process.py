# SPDX-License-Identifier: MIT
"""The proxies as processes: signals, a log or statistics that nobody reads, open doors."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.relay import records, wire, wire_ext
from tests.relay.ends import echo, serves, serving
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary
from tests.relay.proxies import local_proxy, pair, remote_proxy
from tests.relay.waiting import until

TOLD = 16  # sessions of one address that are told of one by one in 10 s


def test_sighup_ends_nothing(box: Namespace, tmp_path: Path) -> None:
    with serving(box, echo) as server, pair(box, tmp_path) as proxies:
        for proxy in (proxies.rp, proxies.lp):
            proxy.send_signal(signal.SIGHUP)
            proxy.expect(rf"^{proxy.name}: SIGHUP: going on$")
        serves(box, server.port)


@pytest.mark.parametrize("option", ["--redirect", "--socks", "--forward"])
def test_listening_for_everybody_is_warned_of(box: Namespace, tmp_path: Path, option: str) -> None:
    ways_in = {"--redirect": "off", "--socks": "off", "--forward": "7000:127.0.0.1:80"}
    open_to_all = {
        "--redirect": "0.0.0.0:6004",
        "--socks": "0.0.0.0:1081",
        "--forward": "0.0.0.0:7001:127.0.0.1:80",
    }
    words = [word for pair_of in ways_in.items() for word in pair_of]
    warning = rf"^lp: {option} 0\.0\.0\.0:\d+ serves everybody who can reach it"
    with remote_proxy(box, tmp_path):
        with local_proxy(box, tmp_path, *words) as lp:
            assert not lp.lines(r"serves everybody")
        words += [option, open_to_all[option]]
        with local_proxy(box, tmp_path, *words, name="open") as lp:
            lp.expect(warning)
            assert len(lp.lines(r"serves everybody")) == 1


@contextmanager
def unread(box: Namespace, *argv: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose stderr is a pipe that is full before it starts and that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *box.command(argv)],
        stdin=subprocess.DEVNULL,
        stderr=writer,
    )
    os.close(writer)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def test_a_log_that_nobody_reads(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        unread(box, binary("rp"), "--listen", "127.0.0.1", "--verbose", "4") as rp,
    ):
        until("rp to listen", lambda: box.listening(6000))
        with local_proxy(box, tmp_path):
            serves(box, server.port)
            rp.send_signal(signal.SIGUSR1)
            serves(box, server.port)
        rp.terminate()
        assert rp.wait(10) == 0


def test_statistics_that_nobody_reads(box: Namespace, tmp_path: Path) -> None:
    """They are dropped and counted, and whoever comes later reads whole lines."""
    fifo = tmp_path / "stats"
    os.mkfifo(fifo)
    with (
        serving(box, echo) as server,
        pair(box, tmp_path, rp=["--stats", str(fifo), "--stats-interval", "0.01"]) as proxies,
    ):
        proxies.rp.expect(r"--stats: \S+ is not read, so lines are dropped", seconds=60)
        serves(box, server.port)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        text = b""

        def has_a_dropped_record() -> bool:
            nonlocal text
            try:
                text += os.read(reader, 1 << 20)
            except BlockingIOError:
                return False
            return b'{"type":"dropped"' in text

        until("a record of what was dropped", has_a_dropped_record, 30)
        os.close(reader)
    (tmp_path / "read").write_bytes(text[: text.rindex(b"\n") + 1])
    (dropped,) = records.of(tmp_path / "read", "dropped")[:1]
    assert dropped["lines"] > 0


def test_a_flood_of_sessions_is_a_few_lines(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--verbose", pipes=1) as rp:
        for _ in range(2000):
            with suppress(ConnectionResetError):  # past the limit of one address
                box.connect(("127.0.0.1", 6000)).close()
        until("all to be over", lambda: "0 of 64 sessions" in table(rp))
        few(rp)


def few(rp: Program) -> None:
    """Of a stranger's sessions, all of which began in a few seconds."""
    assert 1 <= len(rp.lines(r"^rp: session \d+: .* from 127\.0\.0\.1")) <= TOLD
    assert len(rp.lines(r"^rp: session \d+ of 127\.0\.0\.1 ended")) <= TOLD
    rp.expect(r"127\.0\.0\.1: in the last 10 s \d+ more sessions began", 12)


def test_a_flood_of_sessions_that_are_wrong_is_a_few_lines(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "stats.jsonl"
    wrong = wire.header(1, 0, 5)  # a length that no message has
    both = ("--listen", "127.0.0.1", "--extended", "127.0.0.1")
    with remote_proxy(box, tmp_path, *both, *records.soon(stats), pipes=1) as rp:
        for n in range(60):
            for port, hello in (
                (wire_ext.PORT, wire_ext.Hello(n.to_bytes(16, "big"), 0, 1).to_bytes()),
                (wire.PORT, b""),
            ):
                with box.connect(("127.0.0.1", port)) as sock:
                    sock.sendall(hello + wrong)
                    with suppress(ConnectionResetError):
                        while sock.recv(4096):
                            pass
        few(rp)
        assert 1 <= len(rp.lines("5 is neither 9 to 4104, SYN nor FIN")) <= TOLD
        assert len(rp.lines("impossible length 5")) <= TOLD  # of how sessions ended
        rp.expect(r"127\.0\.0\.1: in the last 10 s \d+ more times .* for what came")
        counted = records.of(stats, "limits")[-1]
        assert counted["protocol"] > TOLD and counted["begun"] > TOLD


def table(rp: Program) -> str:
    before = len(rp.log)
    rp.send_signal(signal.SIGUSR1)
    until("the table", lambda: re.search(r"\d+ of \d+ sessions", rp.log[before:]))
    return rp.log[before:]
