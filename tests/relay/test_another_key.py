# SPDX-License-Identifier: MIT
"""SIGHUP: keys that rp's file has no more, and another one in lp's."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import wire_ext
from tests.relay.ends import answers, echo, serving
from tests.relay.keyed import (
    FORWARD,
    PORT,
    UP,
    Keys,
    encrypting,
    keys,
    made,
    psk_of,
    served,
    with_psk,
)
from tests.relay.netns import Namespace
from tests.relay.pipes import pipes_in
from tests.relay.programs import Program, program
from tests.relay.proxies import hang_up, local_proxy, remote_proxy
from tests.relay.waiting import equals, until

__all__ = ["encrypting", "keys"]  # fixtures; the first skips where there is no OpenSSL


def test_a_key_is_taken_away(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """SIGHUP reads the file again; one that is wrong changes nothing."""
    path = Path(keys.rp[1])
    before = path.read_text()

    def reread(rp: Program, text: str) -> None:
        path.write_text(text)
        rp.send_signal(signal.SIGHUP)

    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP) as lp,
    ):
        reread(rp, before + "short AAAA\n")
        rp.expect(r"SIGHUP: .*rp.keys:4: the key of short is too short.*all stays as it was")
        reread(rp, before.replace(keys.line, "") + keys.line)
        rp.expect("SIGHUP: going on$")
        served(box)
        reread(rp, before.replace(keys.line, ""))
        rp.expect("SIGHUP: going on with new keys")
        rp.expect("1 session ends, whose key was taken away")
        rp.expect("session 1 of 127.0.0.1 ended: its key was taken away")
        lp.expect("rp has not got this key of laptop")
        reread(rp, before)
        lp.expect(UP, 20, count=2)
        served(box)
        reread(rp, before.replace(keys.line, made("laptop")))
        rp.expect("session 2 of 127.0.0.1 ended: its key was taken away")


def test_keys_that_stay_send_nobody_away(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """Nor does a key that is gone send away who has not shown it. An lp that is back from an outage
    would take it for the end of its session."""
    path = Path(keys.rp[1])
    with (
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        box.connect(("127.0.0.1", wire_ext.PORT)) as waits,
    ):
        waits.setblocking(False)
        hang_up(rp, "going on")
        path.write_text(path.read_text() + made("tablet"))
        hang_up(rp, "going on with new keys")
        with pytest.raises(BlockingIOError):
            waits.recv(1)
        path.write_text(keys.line)
        hang_up(rp, "going on with new keys", count=2)
        with pytest.raises(BlockingIOError):
            waits.recv(1)


@contextmanager
def handshake(box: Namespace, tmp: Path, line: str, source: str) -> Iterator[Program]:
    """A program from that address that has shown that key, and says no HELLO."""
    name = line.split()[0]
    psk = with_psk(psk_of(line), "-alpn", "tm3/1", name=name)
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{wire_ext.PORT}", *psk]
    argv += ["-bind", f"{source}:0", "-brief", "-ign_eof"]
    log = tmp / f"{name}.log"
    ready = "CONNECTION ESTABLISHED"
    with program(box, argv, log, name=name, ready=ready, status=None) as it:
        yield it


@pytest.mark.parametrize("another", [False, True])
def test_who_has_shown_a_key_that_is_gone_goes(
    box: Namespace, tmp_path: Path, keys: Keys, another: bool
) -> None:
    """Or one that is another by now, of the same name. Whoever has shown the key that stays has its
    time to say HELLO."""
    path = Path(keys.rp[1])
    phone = path.read_text().splitlines()[-1]
    with (
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        handshake(box, tmp_path, keys.line, "127.0.0.2"),
        handshake(box, tmp_path, phone, "127.0.0.3") as shows,
    ):
        path.write_text(keys.line + (made("phone") if another else ""))
        hang_up(rp, "going on with new keys")
        shows.process.wait(10)
        silent = "a pipe from 127.0.0.{}:.* was closed: it did not say HELLO within 5 s"
        rp.expect(silent.format(2))
        assert not rp.lines(silent.format(3))


def test_lp_shows_another_key(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """A session goes on with the key that it began with; the next one has what lp's file has."""
    new, of_rp, of_lp = made("tablet"), Path(keys.rp[1]), Path(keys.lp[1])
    of_rp.write_text(keys.line + new)
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP) as lp,
        pipes_in(box) as pipes,
        box.connect(("127.0.0.1", PORT)) as sock,
    ):
        answers(sock)
        of_lp.write_text(new + keys.line)
        hang_up(lp, ".*lp.key has 2 keys, and lp shows one; all stays as it was")
        takes(lp, of_lp, new)
        pipes.kill_one()
        lp.expect(r"pipes? (is|are) left")
        equals("pipes that are up", lambda: len(pipes.ports()), 4)
        answers(sock)
        assert not rp.lines("was sent away"), "the session's pipe was dialled with another key"
        of_rp.write_text(new)
        rp.send_signal(signal.SIGHUP)
        rp.expect("session 1 of 127.0.0.1 ended: its key was taken away")
        rp.expect("session 2: the first of 4 pipes from 127.0.0.1, with the key of tablet")
        lp.expect(UP, 20, count=2)
        served(box)


def takes(lp: Program, path: Path, line: str, count: int = 1) -> None:
    """lp's file has that line from now on."""
    path.write_text(line)
    hang_up(lp, "going on with new key", count)


def test_another_key_is_shown_at_once(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """Who waits to try again with a key that rp has not got tries with the new one, and says what
    becomes of that."""
    path = Path(keys.lp[1])
    path.write_text(made("laptop1"))
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None) as lp,
    ):
        rp.expect("was closed: it gave a name that no key here has")
        until("lp to wait for seconds", lambda: tries(lp) >= 6, 20)
        takes(lp, path, made("laptop2"))
        lp.expect("rp has not got this key of laptop2", 2)
        takes(lp, path, keys.line, 2)
        lp.expect(UP, 2)
        served(box)


def tries(lp: Program) -> int:
    """What SIGUSR1 tells of the next one; 0 while one is under way."""
    before = len(lp.log)
    lp.send_signal(signal.SIGUSR1)
    told = re.compile(r"dialer: (?:try (\d+) at|looking|asking)")
    found = until("the table", lambda: told.search(lp.log[before:]))
    return int(found[1] or 0)


def test_a_session_whose_key_is_gone_for_good(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """rp is another process, that has the new key alone: lp goes on with that, and soon."""
    new = made("tablet")
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None) as lp,
    ):
        with remote_proxy(box, tmp_path, *keys.rp) as rp:
            lp.expect(UP)
            takes(lp, Path(keys.lp[1]), new)
            lp.send_signal(signal.SIGSTOP)  # it never finds nobody there
            rp.kill()
        Path(keys.rp[1]).write_text(new)
        with remote_proxy(box, tmp_path, *keys.rp, name="next") as rp:
            lp.send_signal(signal.SIGCONT)
            lp.expect("rp has not got its key any more; another session begins", 15)
            rp.expect("session 1: the first of 4 pipes from 127.0.0.1, with the key of tablet", 15)
            lp.expect(UP, count=2)
            served(box)


def test_another_key_while_lp_ends(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """It waits for rp, which does not answer."""
    with (
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP) as lp,
    ):
        rp.send_signal(signal.SIGSTOP)
        lp.send_signal(signal.SIGTERM)
        takes(lp, Path(keys.lp[1]), made("tablet"))
        assert lp.process.wait(10) == 0
        rp.send_signal(signal.SIGCONT)
