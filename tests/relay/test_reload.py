# SPDX-License-Identifier: MIT
"""SIGHUP: command line and files are read again, and no session is lost."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, read_to_end, serves, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import LP_READY, RP_READY, hang_up, local_proxy
from tests.relay.waiting import until

BASE = "pipes 2\nlisten 127.0.0.1\n"


@contextmanager
def rp_by_file(box: Namespace, tmp_path: Path, text: str, *argv: str) -> Iterator[Program]:
    (tmp_path / "rp.conf").write_text(BASE + text)
    command = [binary("rp"), "--config", str(tmp_path / "rp.conf"), *argv]
    with program(box, command, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp:
        yield rp


def reread(rp: Program, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "rp.conf").write_text(BASE + text)
    hang_up(rp, said)


def is_denied(box: Namespace, host: str, port: int) -> None:
    with socks(box, host, port) as sock:
        assert read_to_end(sock, 5).how == "reset"


@pytest.mark.parametrize("extend", ["auto", "never"])
def test_rules_of_destinations(box: Namespace, tmp_path: Path, extend: str) -> None:
    """What is open stays open; what comes next is held against the new rules."""
    with (
        serving(box, echo, ("0.0.0.0", 8000)),
        rp_by_file(box, tmp_path, "") as rp,
        local_proxy(box, tmp_path, "--extend", extend, pipes=2) as lp,
        socks(box, "127.0.0.2", 8000) as before,
    ):
        before.sendall(b"before")
        assert read_exactly(before, 6) == b"before"
        reread(rp, tmp_path, "deny 127.0.0.2\n", "going on with new --deny")
        before.sendall(b"after")
        assert read_exactly(before, 5) == b"after"
        is_denied(box, "127.0.0.2", 8000)
        rp.expect(r"denied: --deny 127\.0\.0\.2$")
        serves(box, 8000, "127.0.0.3")
        reread(rp, tmp_path, "deny 127.0.0.2\npermit 127.0.0.2\n", "going on with new --permit")
        serves(box, 8000, "127.0.0.2")
        assert len(rp.lines("session 1")) == len(rp.lines("session 1: ")), rp.log
        assert len(lp.lines(LP_READY)) == 1


def test_who_may_open_pipes(box: Namespace, tmp_path: Path) -> None:
    """Who has a session keeps it; who comes is let in or not by the new rules."""
    ways_in = ("--socks", "off", "--redirect", "off", "--extend", "always")
    with (
        serving(box, echo) as server,
        rp_by_file(box, tmp_path, "allow 127.0.0.1\n") as rp,
        local_proxy(box, tmp_path, pipes=2),
    ):
        reread(rp, tmp_path, "allow 192.0.2.0/24\n", "going on with new --allow")
        serves(box, server.port)
        more = (*ways_in, "--forward", f"7000:127.0.0.1:{server.port}")
        with local_proxy(box, tmp_path, *more, pipes=2, name="second", ready=None) as second:
            rp.expect(r"a pipe from 127\.0\.0\.1\S* was reset: no --allow")
            assert not second.lines(LP_READY)
            (tmp_path / "rp.conf").write_text(BASE + "allow 127.0.0.0/8\n")
            hang_up(rp, "going on with new --allow", count=2)
            second.expect(LP_READY)
        serves(box, server.port)


def test_nobody_is_let_in_by_an_empty_file(box: Namespace, tmp_path: Path) -> None:
    with serving(box, echo) as server, rp_by_file(box, tmp_path, "allow 192.0.2.0/24\n") as rp:
        reread(rp, tmp_path, "", r"--allow: without the last one .*; all stays as it was")
        with local_proxy(box, tmp_path, "--extend", "always", pipes=2, ready=None) as lp:
            rp.expect(r"a pipe from 127\.0\.0\.1\S* was reset: no --allow")
            reread(rp, tmp_path, "allow 0.0.0.0/0\n", "going on with new --allow")
            lp.expect(LP_READY)
            serves(box, server.port)


def test_limits(box: Namespace, tmp_path: Path) -> None:
    second = ("--socks", "off", "--redirect", "off", "--forward", "7000:127.0.0.1:80")
    limits = "max-sessions-each 2\nmax-connects 9\nmemory 64\nkeep 8M\nconnect-timeout 3\n"
    with (
        serving(box, echo) as server,
        rp_by_file(box, tmp_path, "max-sessions-each 1\nquiet\n", "--verbose") as rp,
        local_proxy(box, tmp_path, pipes=2),
        local_proxy(box, tmp_path, *second, pipes=2, name="second", ready=None) as late,
    ):
        rp.expect("--max-sessions-each allows")
        assert not late.lines(LP_READY)
        said = "--connect-timeout, --max-connects, --max-sessions-each, --memory, --keep"
        reread(rp, tmp_path, limits, rf"going on with new {said}, --quiet")
        late.expect(LP_READY)
        serves(box, server.port)


def test_what_cannot_change_is_named(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        rp_by_file(box, tmp_path, "") as rp,
        local_proxy(box, tmp_path, pipes=2),
    ):
        other = f"pipes 3\nlisten 127.0.0.1:6001\nstats {tmp_path}/rp.jsonl\nresume 5\n"
        (tmp_path / "rp.conf").write_text(other)
        hang_up(rp, "going on with new --resume")
        names = "--listen, where the extension is spoken, --stats, PIPES"
        (line,) = rp.lines("waits for a restart")
        assert sorted(line.split(": what changed of ")[1].split(" waits")[0].split(", ")) == sorted(
            names.split(", ")
        )
        assert box.listening(6000) and not box.listening(6001)
        assert not (tmp_path / "rp.jsonl").exists()
        serves(box, server.port)
        (tmp_path / "rp.conf").write_text(BASE + "resume 5\n")
        hang_up(rp, "going on")
        assert len(rp.lines("waits for a restart")) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deny 127.0.0.0/8\nnonsense\n", r"FILE:4: nonsense: there is no such option; .*"),
        ("deny 127.0.0.0/8\nallow x\n", r"FILE:4: --allow: 'x' is not an address .*"),
        ("deny 127.0.0.0/8\nlambda 2\n", r"--lambda goes with .*"),
        (None, r"--config: FILE: No such file or directory"),
    ],
)
def test_an_error_changes_nothing(
    box: Namespace, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "rp.conf"
    with (
        serving(box, echo) as server,
        rp_by_file(box, tmp_path, "") as rp,
        local_proxy(box, tmp_path, pipes=2),
    ):
        file.unlink()
        if text is not None:
            file.write_text(BASE + text)
        hang_up(rp, said.replace("FILE", str(file)) + "; all stays as it was")
        serves(box, server.port)
        file.write_text(BASE + "deny 127.0.0.0/8\n")
        hang_up(rp, "going on with new --deny")
        is_denied(box, "127.0.0.1", server.port)


def test_lp_reads_its_file(box: Namespace, tmp_path: Path) -> None:
    file = tmp_path / "lp.conf"
    text = "rp-address 127.0.0.1\npipes 2\nredirect off\n"
    file.write_text(text)
    with serving(box, echo) as server, rp_by_file(box, tmp_path, ""):
        argv = [binary("lp"), "--config", str(file)]
        with program(box, argv, tmp_path / "lp.log", name="lp", ready=LP_READY) as lp:
            serves(box, server.port)
            file.write_text(text.replace("127.0.0.1", "127.0.0.2") + "socks-reply late\n")
            hang_up(lp, "going on with new --socks-reply")
            lp.expect("^lp: SIGHUP: what changed of RP_ADDRESS waits for a restart$")
            # SOCKS5 knows now that nobody is there, which an early answer cannot tell.
            with pytest.raises(AssertionError, match="SOCKS with 5"):
                socks(box, "127.0.0.1", 1).close()
            serves(box, server.port)
            assert len(lp.lines(LP_READY)) == 1


def test_a_file_that_was_a_pipe(box: Namespace, tmp_path: Path) -> None:
    """As `--config <(...)` of a shell: it gave what it had, and nobody shall wait for more."""
    fifo = tmp_path / "rp.fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=(BASE + "deny 127.0.0.2\n",))
    writer.start()
    argv = [binary("rp"), "--config", str(fifo)]
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        local_proxy(box, tmp_path, pipes=2),
    ):
        writer.join()
        said = "is no regular file, so it cannot be read again"
        hang_up(rp, f"--config: {fifo}: {said}; all stays as it was")
        serves(box, server.port)
        is_denied(box, "127.0.0.2", server.port)


def test_a_file_of_roots_alone(box: Namespace, tmp_path: Path) -> None:
    """Who became another user reads what that user may read; all stays as it was."""
    with rp_by_file(box, tmp_path, "", "--user", "nobody") as rp:
        (tmp_path / "rp.conf").chmod(0o600)
        file = tmp_path / "rp.conf"
        hang_up(rp, f"--config: {file}: Permission denied; all stays as it was")
        until("rp to listen as before", lambda: box.listening(6000))
