# SPDX-License-Identifier: MIT
"""--remote-forward: rp listens where --permit-listen covers it, and lp connects."""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.ends import answers, echo, read_exactly, read_to_end, reset, serves, serving
from tests.relay.netns import Namespace
from tests.relay.pipes import pipes_in
from tests.relay.programs import binary, program
from tests.relay.proxies import LISTEN, RP_READY, extended_pair, local_proxy, pair, remote_proxy
from tests.relay.waiting import equals

PORT = 7000
AT = ("127.0.0.1", PORT)
PERMIT = ("--permit-listen", "7000-7009")
LISTENS = r"^lp: rp listens on 127\.0\.0\.1:7000 for "
NOT = r"^lp: rp does not listen on 127\.0\.0\.1:7000 for \S+: "


def rule(port: int, host: str = "127.0.0.1") -> tuple[str, str]:
    return ("--remote-forward", f"{PORT}:{host}:{port}")


def is_reset(box: Namespace, host: str = "127.0.0.1") -> bool:
    """A reset may come before connect() returns."""
    try:
        with box.connect((host, PORT)) as sock:
            return read_to_end(sock).how == "reset"
    except ConnectionResetError:
        return True


def test_bytes_go_both_ways(box: Namespace, tmp_path: Path) -> None:
    data = payload.seeded(1_500_000)
    with (
        serving(box, echo) as server,
        extended_pair(box, tmp_path, rp=PERMIT, lp=rule(server.port), lent=1) as proxies,
    ):
        proxies.lp.expect(LISTENS)
        for _ in range(3):
            with box.connect(AT) as sock:
                answers(sock)
                sock.sendall(data)
                sock.settimeout(20)
                assert read_exactly(sock, len(data)) == data
                sock.shutdown(socket.SHUT_WR)
                assert read_to_end(sock).how == "eof"


def test_a_name_is_raced(box: Namespace, tmp_path: Path) -> None:
    """localhost is ::1 as well, where nobody listens."""
    with (
        serving(box, echo) as server,
        extended_pair(
            box, tmp_path, rp=PERMIT, lp=rule(server.port, "localhost"), lent=1
        ) as proxies,
    ):
        proxies.lp.expect(LISTENS)
        with box.connect(AT) as sock:
            answers(sock)


def test_each_end_by_itself(box: Namespace, tmp_path: Path) -> None:
    """The server hears the end and answers still."""

    def late(sock: socket.socket) -> int:
        came = read_to_end(sock).size
        sock.sendall(b"%d" % came)
        return came

    with (
        serving(box, late) as server,
        extended_pair(box, tmp_path, rp=PERMIT, lp=rule(server.port), lent=1) as proxies,
    ):
        proxies.lp.expect(LISTENS)
        with box.connect(AT) as sock:
            sock.sendall(b"x" * 5000)
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(10)
            assert read_exactly(sock, 4) == b"5000"
        with box.connect(AT) as sock:
            sock.sendall(b"y")
            reset(sock)


def test_refused_by_the_server(box: Namespace, tmp_path: Path) -> None:
    with extended_pair(box, tmp_path, rp=PERMIT, lp=rule(1), lent=1) as proxies:
        proxies.lp.expect(LISTENS)
        assert is_reset(box)


def test_nothing_without_a_permit(box: Namespace, tmp_path: Path) -> None:
    others = ("--permit-listen", "7001", "--permit-listen", "127.0.0.2:7000")
    with extended_pair(box, tmp_path, rp=others, lp=rule(1)) as proxies:
        proxies.lp.expect(NOT + r"it may not \(rp --permit-listen\); it is asked again")
        proxies.rp.expect("wants rp to listen on 127.0.0.1:7000, and it does not: no --permit")
        assert not box.listening(PORT)


EVERYWHERE = ("--remote-forward", f"0.0.0.0:{PORT}:127.0.0.1:1")


def test_a_permit_is_for_loopback(box: Namespace, tmp_path: Path) -> None:
    with extended_pair(box, tmp_path, rp=PERMIT, lp=EVERYWHERE) as proxies:
        proxies.lp.expect("rp does not listen on 0.0.0.0:7000")
        assert not box.listening(PORT)


def test_a_permit_for_all_addresses(box: Namespace, tmp_path: Path) -> None:
    permit = ("--permit-listen", "0.0.0.0:7000")
    with extended_pair(box, tmp_path, rp=permit, lp=EVERYWHERE, lent=1) as proxies:
        proxies.lp.expect("rp listens on 0.0.0.0:7000")
        assert is_reset(box, "127.0.0.2")


def test_the_baseline_cannot_ask(box: Namespace, tmp_path: Path) -> None:
    with pair(box, tmp_path, rp=PERMIT, lp=rule(1)) as proxies:
        proxies.lp.expect("rp listens on nothing for --remote-forward: it was reached by the base")
        proxies.rp.expect("--permit-listen permits nothing: lp asks for it in the extension, which")
        assert not box.listening(PORT)


def test_gone_with_the_session(box: Namespace, tmp_path: Path) -> None:
    with serving(box, echo) as server, remote_proxy(box, tmp_path, *LISTEN, *PERMIT):
        with local_proxy(box, tmp_path, *rule(server.port)) as lp:
            lp.expect(LISTENS)
            assert box.listening(PORT)
        equals("somebody listens", lambda: box.listening(PORT), False)


def test_it_outlives_its_pipes(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        extended_pair(box, tmp_path, rp=PERMIT, lp=rule(server.port), lent=1) as proxies,
        pipes_in(box) as pipes,
    ):
        proxies.lp.expect(LISTENS)
        with box.connect(AT) as sock:
            for _ in range(4):
                pipes.kill_one()
                answers(sock)
        equals("pipes", lambda: len(pipes.ports()), 4)
        with box.connect(AT) as sock:
            answers(sock)
        assert len(proxies.lp.lines(LISTENS)) == 1


def test_two_sessions_want_one_port(box: Namespace, tmp_path: Path) -> None:
    """The second is told, and gets it when the first is gone."""
    off = ("--socks", "off", "--redirect", "off")
    with serving(box, echo) as server, remote_proxy(box, tmp_path, *LISTEN, *PERMIT) as rp:
        with local_proxy(box, tmp_path, *rule(1), name="lp") as first:
            first.expect(LISTENS)
            second = local_proxy(box, tmp_path, *rule(server.port), *off, name="lp2")
            with second as lp:
                lp.expect("lp: rp does not listen on .*: somebody else does; it is asked again")
                rp.expect("wants rp to listen on .*: Address already in use")
                first.stop()
                lp.expect(LISTENS, seconds=20)
                with box.connect(AT) as sock:
                    answers(sock)
                assert len(lp.lines("rp does not listen")) == 1


def test_killed_and_started_anew(box: Namespace, tmp_path: Path) -> None:
    """The session of the one that was killed is kept, and gives the port back."""
    with serving(box, echo) as server, remote_proxy(box, tmp_path, *LISTEN, *PERMIT) as rp:
        with local_proxy(box, tmp_path, *rule(server.port), status=-signal.SIGKILL) as lp:
            lp.expect(LISTENS)
            lp.kill()
            rp.expect("0 pipes are left")
        assert box.listening(PORT)
        with local_proxy(box, tmp_path, *rule(server.port), name="lp2") as lp:
            lp.expect(LISTENS)
            rp.expect("it has no pipes, and a newer session wants it")
            with box.connect(AT) as sock:
                answers(sock)


def test_permits_change(box: Namespace, tmp_path: Path) -> None:
    """A permit that goes takes the port along, not what came there; it may come back."""
    conf = tmp_path / "rp.conf"
    base = "pipes 4\nlisten 127.0.0.1\n"
    conf.write_text(base + "permit-listen 7000\n")
    command = [binary("rp"), "--config", str(conf)]
    with (
        serving(box, echo) as server,
        program(box, command, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        local_proxy(box, tmp_path, *rule(server.port)) as lp,
    ):
        lp.expect(LISTENS)
        assert not rp.lines("permits nothing")
        with box.connect(AT) as sock:
            answers(sock)
            conf.write_text(base)
            rp.send_signal(signal.SIGHUP)
            rp.expect("SIGHUP: going on with new --permit-listen")
            rp.expect("no longer listening on 127.0.0.1:7000 for it: no --permit-listen covers it")
            lp.expect(NOT + "it may not")
            assert not box.listening(PORT)
            answers(sock)
        conf.write_text(base + "permit-listen 7000-7001\n")
        rp.send_signal(signal.SIGHUP)
        lp.expect(LISTENS, seconds=20, count=2)
        with box.connect(AT) as sock:
            answers(sock)


def test_low_ports_need_root_for_good(box: Namespace, tmp_path: Path) -> None:
    rp = ("--user", "nobody", "--permit-listen", "80")
    lp = ("--remote-forward", "80:127.0.0.1:1")
    with extended_pair(box, tmp_path, rp=rp, lp=lp) as proxies:
        proxies.rp.expect("wants rp to listen on 127.0.0.1:80, and it does not: Permission denied")
        proxies.lp.expect("rp does not listen on 127.0.0.1:80 .*: it cannot, and its log says why")


def test_more_than_there_is_room_for(box: Namespace, tmp_path: Path) -> None:
    """Who comes too many is reset at once; those that are there go on, and half is lp's."""
    with (
        serving(box, echo) as server,
        extended_pair(
            box, tmp_path, rp=[*PERMIT, "--max-conns", "5"], lp=rule(server.port), lent=1
        ) as proxies,
    ):
        proxies.lp.expect(LISTENS)
        socks = [box.connect(AT) for _ in range(3)]
        try:
            for sock in socks:
                answers(sock)
            assert is_reset(box)
            proxies.rp.expect("and others, were reset: its session has no room for more")
            for sock in socks:
                answers(sock)
            serves(box, server.port)
        finally:
            for sock in socks:
                sock.close()


def crowd(box: Namespace, most: int) -> Iterator[socket.socket]:
    """Those who come to the port and stay; who is reset comes no more."""
    for _ in range(most):
        with suppress(ConnectionResetError):
            yield box.connect(AT)


@pytest.mark.parametrize("short", ["rp", "lp"])
def test_a_crowd_leaves_descriptors(box: Namespace, tmp_path: Path, short: str) -> None:
    """Strangers hold as many as they may, and what lp opens finds one still."""
    with (
        serving(box, echo) as server,
        extended_pair(box, tmp_path, rp=PERMIT, lp=rule(server.port), lent=1) as proxies,
        ExitStack() as stack,
    ):
        proxies.lp.expect(LISTENS)
        pid = proxies.rp.pid if short == "rp" else proxies.lp.pid
        box.run("prlimit", "--pid", str(pid), "--nofile=100:")
        for sock in crowd(box, 120):
            stack.enter_context(sock)
        for _ in range(5):
            serves(box, server.port)
