# SPDX-License-Identifier: MIT
"""Rules with a user or a program for an lp that is not told all: systemd's part is played here.

The user namespace has root alone, as PrivateUsers=yes leaves root and the service's own user;
/proc is mounted as by ProtectProc=invisible.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import records
from tests.relay.ends import answers, echo, serving, socks_greet, socks_reply, socks_request
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import remote_proxy
from tests.relay.test_path_rules import BLOCK, NEAR_UP, PORT, PROGRAM, Written
from tests.relay.two_paths import ALLOW, BOTH_PATHS, UP
from tests.relay.waiting import until

NOBODY, SOMEBODY = 65534, 1234
ROOT_ALONE = ("unshare", "--user", "--map-root-user", "--")
HIDDEN = "mount -t proc -o hidepid=invisible proc /proc"
OTHERS_HIDDEN = ("unshare", "--mount", "--", "sh", "-c", f'{HIDDEN} && exec "$@"', "sh")
# What install/README.md proposes for `program`.
RIGHTS = "+sys_ptrace,+dac_read_search"
MAY_LOOK = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"),
    *(f"--inh-caps={RIGHTS}", f"--ambient-caps={RIGHTS}", f"--bounding-set=-all,{RIGHTS}"),
)
NOT_ALL_USERS = r"lp is in a user namespace without all users of this host \(PrivateUsers=yes"
NOT_ITS_USER = "a client's user and program are not known, .*: lp's user namespace has not its user"
NOT_ALL_SHOWN = r"/proc does not show lp the processes of other users \(ProtectProc=invisible"
NOT_ALLOWED = "a client's program is not known, .* cannot be looked at: Permission denied"
NONE_SHOWN = "a client's program is not known, .* cannot be looked at: /proc shows none"


@contextmanager
def service(
    box: Namespace, tmp: Path, within: Sequence[str], *rules: str, options: Sequence[str] = ()
) -> Iterator[Program]:
    stats = tmp / "lp.jsonl"
    stats.touch()
    stats.chmod(0o666)
    given = [word for rule in rules for word in ("--rule", rule)]
    argv = [*within, binary("lp"), *BOTH_PATHS, *given, *options, *records.soon(stats)]
    with (
        remote_proxy(box, tmp, *ALLOW, *records.soon(tmp / "rp.jsonl")),
        program(box, [*argv, "127.0.0.1", "4"], tmp / "lp.log", name="lp", ready=UP) as lp,
    ):
        lp.expect(NEAR_UP)
        yield lp


@contextmanager
def client(box: Namespace, user: int) -> Iterator[socket.socket]:
    """Its end is this user's for the kernel, before lp asks whose it is."""
    with socks_greet(box) as sock:
        os.fchown(sock.fileno(), user, -1)
        sock.sendall(socks_request("127.0.0.1", PORT))
        assert socks_reply(sock) == 0
        yield sock


def meets_no_rule(tmp: Path, sock: socket.socket) -> None:
    """It goes over the path that costs less."""
    written = Written(tmp)
    answers(sock, BLOCK)
    until("a sample", lambda: written.since("lp", 0) > len(BLOCK) / 2)


def is_bound_to_far(tmp: Path, sock: socket.socket, ended: int = 0) -> None:
    written = Written(tmp, ended)
    answers(sock, BLOCK)
    written.is_all_over(1, len(BLOCK))


@pytest.mark.parametrize("user", [NOBODY, SOMEBODY])
@pytest.mark.parametrize("rule", [f"user {NOBODY}", f"user {SOMEBODY}", f"program {PROGRAM}"])
def test_who_is_not_of_its_user_namespace(
    box: Namespace, tmp_path: Path, rule: str, user: int
) -> None:
    """The kernel says nobody of each of them, and a rule for nobody must not take them all."""
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, ROOT_ALONE, f"{rule} paths far") as lp,
    ):
        assert len(lp.lines(NOT_ALL_USERS)) == 1
        for _ in range(2):
            with client(box, user) as sock:
                meets_no_rule(tmp_path, sock)
        assert len(lp.lines(NOT_ITS_USER)) == 1
        assert len(lp.lines("--rule")) == 2


def test_a_user_that_its_user_namespace_has(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, ROOT_ALONE, "user root paths far") as lp,
        client(box, 0) as sock,
    ):
        is_bound_to_far(tmp_path, sock)
        assert len(lp.lines("--rule")) == len(lp.lines(NOT_ALL_USERS)) == 1


def test_a_program_outside_of_its_user_namespace(box: Namespace, tmp_path: Path) -> None:
    """Its user is known, and root of a user namespace may not look at what runs outside."""
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, ROOT_ALONE, f"program {PROGRAM} paths far") as lp,
        client(box, 0) as sock,
    ):
        meets_no_rule(tmp_path, sock)
        assert len(lp.lines(NOT_ALL_USERS)) == len(lp.lines(NOT_ALLOWED)) == 1


def test_who_is_nobody_where_all_users_are(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, (), f"user {NOBODY} paths far") as lp,
        client(box, NOBODY) as sock,
    ):
        is_bound_to_far(tmp_path, sock)
        assert not lp.lines("--rule")


def test_a_program_that_is_hidden(box: Namespace, tmp_path: Path) -> None:
    """Its user is known all the same."""
    rules = (f"program {PROGRAM} paths far", f"user {SOMEBODY} paths far")
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, OTHERS_HIDDEN, *rules, options=("--user", "nobody")) as lp,
    ):
        assert len(lp.lines(NOT_ALL_SHOWN)) == 1
        with client(box, 0) as sock:
            meets_no_rule(tmp_path, sock)
        assert len(lp.lines(NONE_SHOWN)) == 1
        with client(box, SOMEBODY) as sock:
            is_bound_to_far(tmp_path, sock, ended=1)
        assert len(lp.lines("--rule")) == 2


def test_a_rule_without_either_is_no_matter(box: Namespace, tmp_path: Path) -> None:
    with service(box, tmp_path, ROOT_ALONE, f"port {PORT} paths far") as lp:
        assert not lp.lines("--rule")


def test_two_rights_are_enough_for_programs(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo, ("127.0.0.1", PORT)),
        service(box, tmp_path, MAY_LOOK, f"program {PROGRAM} paths far") as lp,
        client(box, 0) as sock,
    ):
        is_bound_to_far(tmp_path, sock)
        assert not lp.lines("--rule")
