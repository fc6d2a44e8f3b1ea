# SPDX-License-Identifier: MIT
"""Whether lp and rp speak the extension: who asks, who answers, and who goes on without it."""

import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.relay import wire, wire_ext
from tests.relay.ends import (
    echo,
    read_exactly,
    serves,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
)
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.waiting import until
from tests.relay.wire import Message, Pipe, RawRp, raw_lp, raw_rp

HELLO = wire_ext.Hello(bytes(range(16)), 0, 3)
EXTENDED = ("127.0.0.1", wire_ext.PORT)
NETWORK_UNREACHABLE = 3
FOREIGN = "the other end does not speak the extension"


@contextmanager
def playing(ns: Namespace, player: Callable[[Pipe], object]) -> Iterator[list[object]]:
    """Somebody on port 6010 who does with each pipe what `player` does; what that returned."""
    rp = RawRp(ns, EXTENDED)
    seen: list[object] = []
    pipes: list[Pipe] = []

    def play() -> None:
        while True:
            try:
                pipes.extend(rp.accept(1))
                seen.append(player(pipes[-1]))
            except OSError:
                return

    rp.listener.settimeout(30)
    thread = Thread(target=play, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        rp.listener.shutdown(2)
        rp.listener.close()
        for pipe in pipes:
            pipe.sock.close()
        thread.join(timeout=10)


def silent(pipe: Pipe) -> wire_ext.Hello:
    return wire_ext.hello_of(pipe.receive())


def closes(pipe: Pipe) -> wire_ext.Hello:
    hello = wire_ext.hello_of(pipe.receive())
    pipe.sock.close()
    return hello


def says(*messages: bytes) -> Callable[[Pipe], wire_ext.Hello]:
    def player(pipe: Pipe) -> wire_ext.Hello:
        hello = wire_ext.hello_of(pipe.receive())
        pipe.send(*messages)
        return hello

    return player


# --- lp, and what it finds ------------------------------------------------------


def test_an_rp_without_the_extension(box: Namespace, tmp_path: Path) -> None:
    """Port 6010 refuses, so the baseline begins at once; not a byte of id 0 goes to it."""
    with raw_rp(box) as rp, local_proxy(box, tmp_path, ready=None) as lp:
        pipes = rp.accept(4)
        why = r"without the extension \(port 6010: Connection refused\)"  # no time was up
        lp.expect(rf"4 pipes to 127.0.0.1:6000 are up, {why}$")
        with socks(box, "192.0.2.1", 80) as sock:
            sock.sendall(b"x" * 100_000)
            sock.shutdown(socket.SHUT_WR)
            came: list[Message] = []
            poll = select.poll()
            for pipe in pipes:
                poll.register(pipe.sock, select.POLLIN)
            while not whole(came):
                assert poll.poll(10_000), f"only {len(came)} messages came"
                for pipe in pipes:
                    came += at_once(pipe)
            came.sort(key=lambda message: message.number)
            assert {m.kind for m in came[1:-1]} == {"data"} and came[0].kind == "syn"
            assert came[-1].body == bytes([wire.BY_FIN])
            assert sum(len(m.body) for m in came[1:-1]) == 100_000


def whole(came: list[Message]) -> bool:
    """All messages of a connection are there, up to its FIN."""
    return any(m.kind == "fin" and len(came) == m.number + 1 for m in came)


def at_once(pipe: Pipe) -> Iterator[Message]:
    """The messages that are there, none of which is of the extension."""
    while True:
        try:
            message = pipe.receive(0.01)
        except TimeoutError:
            return
        assert message is not None and message.conn != 0, message
        yield message


@pytest.mark.parametrize(
    ("player", "why"),
    [
        pytest.param(silent, "no answer to HELLO", id="silent"),
        pytest.param(closes, "the other end closed the first pipe", id="closes"),
        pytest.param(says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), FOREIGN, id="http"),
        pytest.param(
            says(wire_ext.welcome(wire_ext.REFUSED)), "rp refused the extension", id="refused"
        ),
        pytest.param(says(wire_ext.welcome(wire_ext.NEW, 1)), "Protocol error", id="half of it"),
    ],
)
def test_lp_goes_on_with_the_baseline(
    box: Namespace,
    tmp_path: Path,
    player: Callable[[Pipe], object],
    why: str,
) -> None:
    """Why tells whether it was for want of time: two seconds, and else at once."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--extended", "off"),
        playing(box, player) as seen,
    ):
        started = time.monotonic()
        with local_proxy(box, tmp_path) as lp:
            lp.expect(rf"without the extension \(port 6010: {why}\)")
            assert player is not silent or time.monotonic() - started > 1.9
            serves(box, server.port)
        (hello,) = seen
        assert isinstance(hello, wire_ext.Hello)
        assert (hello.pipe, hello.pipes, hello.incarnation) == (0, 4, 0)


def test_a_network_that_drops_the_port(box: Namespace, tmp_path: Path) -> None:
    box.nft(
        "table inet t {\nchain in {\ntype filter hook input priority 0\ntcp dport 6010 drop\n}\n}\n"
    )
    with serving(box, echo) as server, remote_proxy(box, tmp_path):
        started = time.monotonic()
        with local_proxy(box, tmp_path):
            assert time.monotonic() - started > 1.9
            serves(box, server.port)


def test_an_rp_that_comes_up_between_the_questions(box: Namespace, tmp_path: Path) -> None:
    """Port 6010 refuses, and a moment later 6000 answers: 6010 is asked once more."""
    box.nft(
        "table inet t {\nchain in {\ntype filter hook input priority 0\n"
        "tcp dport 6010 limit rate 1/day burst 1 packets reject with tcp reset\n}\n}\n"
    )
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1"),
        local_proxy(box, tmp_path) as lp,
    ):
        serves(box, server.port)
        assert lp.lines("4 pipes to 127.0.0.1:6010 are up")
        assert not lp.lines("127.0.0.1:6000 are up")


def test_each_session_is_asked_for_anew(box: Namespace, tmp_path: Path) -> None:
    """With another id, and before the baseline is tried again."""
    up = "4 pipes to 127.0.0.1:6000 are up"
    off = ("--extended", "off")
    with playing(box, closes) as seen, local_proxy(box, tmp_path, ready=None) as lp:
        for i in range(2):
            with remote_proxy(box, tmp_path, *off, name=f"rp{i}") as rp:
                rp.expect("session 1: 4 pipes")
                lp.expect(up, count=i + 1)
        until("a third HELLO", lambda: len(seen) >= 3)
        hellos = [hello for hello in seen if isinstance(hello, wire_ext.Hello)]
        assert len({hello.session for hello in hellos}) == len(seen)


def test_busy_is_waited_for(box: Namespace, tmp_path: Path) -> None:
    """rp speaks it, and will have room: the baseline has none either."""
    with (
        remote_proxy(box, tmp_path, "--extended", "off") as rp,
        playing(box, says(wire_ext.welcome(wire_ext.BUSY))) as seen,
        local_proxy(box, tmp_path, ready="rp has no room for another session"),
    ):
        until("three HELLOs", lambda: len(seen) >= 3)
        assert not rp.lines("session 1")


def test_who_welcomed_once_is_not_given_up_for_silence(box: Namespace, tmp_path: Path) -> None:
    """Somebody on the way who makes the port silent cannot bring the baseline back."""
    goodbye = wire.data(0, 0, b"\x07\x00")
    told: list[Pipe] = []

    def player(pipe: Pipe) -> wire_ext.Hello:
        hello = wire_ext.hello_of(pipe.receive())
        told.append(pipe)
        if len(told) == 1:
            pipe.send(wire_ext.welcome(wire_ext.NEW), goodbye)
        return hello

    with (
        remote_proxy(box, tmp_path, "--extended", "off", pipes=1) as rp,
        playing(box, player) as seen,
        local_proxy(box, tmp_path, pipes=1, ready="1 pipe to 127.0.0.1:6010 is up") as lp,
    ):
        lp.expect("the other end said GOODBYE")
        lp.expect("no pipes to 127.0.0.1:6010: no answer to HELLO", seconds=15)
        assert len(seen) >= 2 and not rp.lines("session 1")


def test_a_pipe_that_is_welcomed_while_lp_ends(box: Namespace, tmp_path: Path) -> None:
    """It comes too late: the session that it was dialled for takes leave already."""
    ending = Event()

    def player(pipe: Pipe) -> wire_ext.Hello:
        hello = wire_ext.hello_of(pipe.receive())
        if hello.pipe:
            assert ending.wait(10)
        pipe.send(wire_ext.welcome(wire_ext.RESUMED if hello.pipe else wire_ext.NEW))
        return hello

    with playing(box, player) as seen:
        with local_proxy(box, tmp_path, pipes=2, ready=None) as lp:
            until("the first pipe to be up and the second to be dialled", lambda: dialled(box) == 2)
            assert len(seen) == 1
            lp.send_signal(signal.SIGTERM)
            lp.expect("SIGTERM: ending")
            ending.set()
            until("lp to end", lambda: not lp.running())


def dialled(ns: Namespace) -> int:
    """lp's pipes on which it has said HELLO."""
    ends = ns.run("ss", "-tinHO", "state", "established", f"dport = :{wire_ext.PORT}")
    return ends.count("bytes_sent")


@pytest.mark.slow
def test_a_session_without_pipes_refuses_after_a_while(box: Namespace, tmp_path: Path) -> None:
    """For 10 s applications wait; then they are told, although rp may still come back."""
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1") as rp,
        local_proxy(box, tmp_path) as lp,
    ):
        box.nft(
            "table inet t {\nchain in {\n"
            "type filter hook input priority 0\ntcp dport 6010 drop\n}\n}\n"
        )
        lost = time.monotonic()
        rp.kill()
        lp.expect("4 of 4 pipes to 127.0.0.1:6010 are not up", seconds=15)
        with socks_greet(box) as sock:
            sock.sendall(socks_request("127.0.0.1", 80))
            until("lp to refuse", lambda: _refused(box), seconds=20)
        assert time.monotonic() - lost >= 10


def _refused(box: Namespace) -> bool:
    with socks_greet(box) as sock:
        sock.sendall(socks_request("127.0.0.1", 80))
        return socks_reply(sock) == NETWORK_UNREACHABLE


def test_never_asks_nobody(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, "--extended", "off"),
        playing(box, silent) as seen,
        local_proxy(box, tmp_path, "--extend", "never"),
    ):
        serves(box, server.port)
        assert seen == []


def test_always_takes_nothing_else(box: Namespace, tmp_path: Path) -> None:
    always = ("--extend", "always")
    with (
        remote_proxy(box, tmp_path, "--extended", "off") as rp,
        local_proxy(box, tmp_path, *always, ready="no pipes to 127.0.0.1:6010") as lp,
    ):
        lp.expect("Connection refused")
        with playing(box, closes) as seen:
            until("two HELLOs", lambda: len(seen) >= 2)
        assert not rp.lines("session 1") and "are up" not in lp.log


def test_another_port_has_no_extension_unless_named(box: Namespace, tmp_path: Path) -> None:
    """Port 6010 may be that of another rp on this host."""
    listen = ("--listen", "127.0.0.1:6600", "--extended", "off")
    with remote_proxy(box, tmp_path, *listen), playing(box, closes) as seen:
        with local_proxy(box, tmp_path, to="127.0.0.1:6600"):
            assert seen == []
        with local_proxy(box, tmp_path, to="127.0.0.1:6600,6010", name="second"):
            assert len(seen) == 1


def test_with_always_the_port_of_the_extension_is_enough(box: Namespace, tmp_path: Path) -> None:
    """A port alone would be that of the baseline, which is not dialled: test_arguments."""
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--extended", "127.0.0.1:7010"),
        local_proxy(
            box,
            tmp_path,
            *("--extend", "always"),
            to="127.0.0.1,7010",
            ready="4 pipes to 127.0.0.1:7010 are up",
        ),
    ):
        pass
    for at in ("127.0.0.1", "127.0.0.1:6000", "127.0.0.1:7000,7010", "[::1],7010"):
        code, _, err = finish([binary("lp"), "--extend", "always", "--check", at, "4"], box, 10)
        assert (code, err) == (0, ""), at


# --- rp, and who comes ----------------------------------------------------------


def test_a_bare_rp_is_the_courses(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path) as rp:
        assert box.listening(6000) and not box.listening(wire_ext.PORT)
        assert not rp.lines("extension")


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (["--listen", "127.0.0.1"], ["127.0.0.1:6010"]),
        (["--allow", "127.0.0.0/8"], ["0.0.0.0:6010"]),
        (["--listen", "127.0.0.1", "--listen", "[::1]"], ["127.0.0.1:6010", r"\[::1\]:6010"]),
        (["--listen", "127.0.0.1:6600"], []),
        (["--extended", "127.0.0.1:7000"], ["127.0.0.1:7000"]),
        (["--extended", "0.0.0.0"], ["0.0.0.0:6010"]),
        (["--allow", "127.0.0.0/8", "--extended", "off"], []),
    ],
)
def test_where_rp_speaks_it(
    box: Namespace, tmp_path: Path, options: list[str], where: list[str]
) -> None:
    with remote_proxy(box, tmp_path, *options) as rp:
        for address in where:
            rp.expect(rf"listening on {address} for pipes of the extension")
        assert len(rp.lines("for pipes of the extension")) == len(where)


def test_a_default_port_that_is_taken_is_no_reason_to_end(box: Namespace, tmp_path: Path) -> None:
    taken = RawRp(box, EXTENDED)
    with taken.listener, remote_proxy(box, tmp_path, "--listen", "127.0.0.1") as rp:
        rp.expect("the extension is not spoken on 127.0.0.1:6010: Address already in use")
        with raw_lp(box, 4):
            rp.expect("session 1: 4 pipes from 127.0.0.1")


def test_rp_is_no_destination_of_its_own_there_either(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--permit", "0.0.0.0/0") as rp,
        local_proxy(box, tmp_path, "--extend", "never"),
        socks(box, "127.0.0.1", wire_ext.PORT) as sock,
    ):
        with pytest.raises(ConnectionResetError):
            read_exactly(sock, 1)
        rp.expect("127.0.0.1:6010 denied: it is where rp itself listens")


@pytest.mark.parametrize("name", ["::1%1", "::1%7"])
def test_no_scope_hides_that_it_is_rp_itself(box: Namespace, tmp_path: Path, name: str) -> None:
    """Behind a name that is an address a number may stand, whether it means anything or not."""
    with (
        remote_proxy(box, tmp_path, "--listen", "[::1]") as rp,
        local_proxy(box, tmp_path, to="[::1]"),
        socks(box, name, wire_ext.PORT) as sock,
    ):
        with pytest.raises(ConnectionResetError):
            read_exactly(sock, 1)
        rp.expect("which is ::1, denied: it is where rp itself listens")


def test_who_is_not_allowed_says_nothing(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    near, far = two
    with remote_proxy(far, tmp_path, "--allow", "127.0.0.0/8") as rp:
        with (
            suppress(ConnectionResetError),  # it may come before connect() returns
            raw_lp(near, 1, ("10.77.0.2", wire_ext.PORT)) as (pipe,),
        ):
            assert pipe.ended(5)
        rp.expect("a pipe from 10.77.0.1:[0-9]+ was reset: no --allow covers it")


@pytest.mark.parametrize(
    "hello",
    [
        pytest.param(wire_ext.Hello(b"s" * 16, 0, 2, features=0x1F), id="a feature is missing"),
        pytest.param(wire_ext.Hello(b"s" * 16, 0, 2, version=0), id="version 0"),
        pytest.param(
            wire_ext.Hello(b"s" * 16, 0, 2, features=wire_ext.VERSION_1 | 0x200, path=7),
            id="no such path",
        ),
    ],
)
def test_a_hello_that_rp_refuses(box: Namespace, tmp_path: Path, hello: wire_ext.Hello) -> None:
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1") as rp,
        raw_lp(box, 1, EXTENDED) as (pipe,),
    ):
        pipe.send(hello.to_bytes())
        assert wire_ext.status_of(pipe.receive()) == wire_ext.REFUSED
        assert pipe.ended(5)
        rp.expect("sent away: the version, features or path of its HELLO will not do")


def test_a_session_that_rp_does_not_know(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1"),
        raw_lp(box, 1, EXTENDED) as (pipe,),
    ):
        pipe.send(wire_ext.Hello(b"s" * 16, 0, 2, incarnation=3).to_bytes())
        assert wire_ext.status_of(pipe.receive()) == wire_ext.UNKNOWN
        assert pipe.ended(5)


def test_over_the_baseline_nothing_is_reinjected(box: Namespace, tmp_path: Path) -> None:
    """lp says so once, and goes on."""
    told = "nothing is sent again for --reinject timely: rp was reached by the baseline"
    with (
        remote_proxy(box, tmp_path, "--extended", "off"),
        local_proxy(box, tmp_path, "--reinject", "timely") as lp,
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        lp.expect(told)
        sock.sendall(b"on")
        assert read_exactly(sock, 2) == b"on"
        assert len(lp.lines(told)) == 1
