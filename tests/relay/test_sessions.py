# SPDX-License-Identifier: MIT
"""Local proxies that come, go, come back, and do not know of each other."""

import fcntl
import signal
import socket
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.relay import payload, records, wire
from tests.relay.ends import (
    Ending,
    echo,
    ending_of,
    read_exactly,
    read_to_end,
    sending,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
)
from tests.relay.netns import Namespace, namespace, two_on_a_link, veth
from tests.relay.programs import Program
from tests.relay.proxies import LP_READY, local_proxy, pair, remote_proxy
from tests.relay.waiting import at_once, equals, until
from tests.relay.wire import Pipe, raw_lp

BULK = payload.seeded(4_000_000, seed=2)
WHOLE = Ending("eof", len(BULK), payload.digest(BULK))
SERVER = ("0.0.0.0", 8000)
FAR = "10.77.0.2"


def endless(sock: socket.socket) -> None:
    while True:
        sock.sendall(BULK)


def downloads(ns: Namespace, host: str = FAR, port: int = 8000) -> None:
    with socks(ns, host, port) as sock:
        assert read_to_end(sock) == WHOLE


def test_several_local_proxies_are_independent(box: Namespace, tmp_path: Path) -> None:
    """Three on addresses of their own; one is killed, the others never notice."""
    stats = tmp_path / "rp.jsonl"
    with (
        namespace("second") as second,
        namespace("third") as third,
        serving(box, sending(BULK), SERVER),
        serving(box, endless, ("0.0.0.0", 8001)),
        remote_proxy(box, tmp_path, "--permit", "10.0.0.0/8", "--stats", str(stats)) as rp,
    ):
        veth(box, "10.1.0.1/24", second, "10.1.0.2/24", name="a")
        veth(box, "10.2.0.1/24", third, "10.2.0.2/24", name="b")
        idle = rp.fd_count()
        places = ((box, "127.0.0.1", "l1"), (second, "10.1.0.1", "l2"), (third, "10.2.0.1", "l3"))
        with (
            local_proxy(box, tmp_path, to="127.0.0.1", name="l1"),
            local_proxy(second, tmp_path, to="10.1.0.1", name="l2") as doomed,
            local_proxy(third, tmp_path, to="10.2.0.1", name="l3"),
        ):
            equals("rp's descriptors with three sessions", rp.fd_count, idle + 12)
            held = [(ns, socks(ns, host, 8001 if ns is second else 8000)) for ns, host, _ in places]
            for _, sock in held:
                read_exactly(sock, 1000)
            doomed.kill()
            for ns, sock in held:
                with sock:
                    rest = read_to_end(sock)
                    if ns is second:
                        assert rest.how == "reset"
                    else:
                        assert rest == Ending("eof", len(BULK) - 1000, payload.digest(BULK[1000:]))
            equals("rp's descriptors with two sessions", rp.fd_count, idle + 8)
            for ns, host, _ in (places[0], places[2]):
                downloads(ns, host)
        equals("rp's descriptors with no session", rp.fd_count, idle)
        begun = [r["session"] for r in records.of(stats, "session") if r["event"] == "begin"]
        assert len(set(begun)) == 3


def test_two_from_one_address_one_after_the_other(box: Namespace, tmp_path: Path) -> None:
    """The second group of N pipes from an address is the next session."""
    with (
        serving(box, sending(BULK), SERVER),
        remote_proxy(box, tmp_path) as rp,
        local_proxy(box, tmp_path, name="first"),
    ):
        second = ("--socks", "1081", "--redirect", "6013")
        with local_proxy(box, tmp_path, *second, name="second"):
            for port in (1080, 1081):
                with socks(box, "127.0.0.1", 8000, ("127.0.0.1", port)) as sock:
                    assert read_to_end(sock) == WHOLE
        downloads(box, "127.0.0.1")
        assert rp.running()


def test_a_killed_lp_leaves_nothing_and_the_next_is_served(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    with (
        serving(box, endless) as flood,
        serving(box, sending(BULK), SERVER),
        remote_proxy(box, tmp_path, "--stats", str(stats)) as rp,
    ):
        idle = rp.fd_count()
        for turn in range(3):
            with local_proxy(box, tmp_path, name=f"lp{turn}") as lp:
                socks_in_use = [socks(box, "127.0.0.1", flood.port) for _ in range(10)]
                for sock in socks_in_use:
                    read_exactly(sock, 200_000)
                lp.kill()
                for sock in socks_in_use:
                    with sock:
                        assert read_to_end(sock).how == "reset"
            equals("rp's descriptors", rp.fd_count, idle)
        for _ in range(30):
            assert isinstance(flood.results.get(timeout=10), ConnectionError)
        with local_proxy(box, tmp_path, name="next"):
            downloads(box, "127.0.0.1")
        equals("rp's descriptors", rp.fd_count, idle)
    events = [(r["session"], r["event"]) for r in records.of(stats, "session")]
    assert events == [(n, e) for n in (1, 2, 3, 4) for e in ("begin", "end")]


DROP = """
table inet cut {{
chain cut {{
type filter hook {hook} priority 0
{direction} != "lo" drop
}}
}}
"""


def unread(pipe: Pipe) -> int:
    told = fcntl.ioctl(pipe.sock, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", told)[0])


@contextmanager
def closed_window(near: Namespace, far: Namespace, tmp: Path) -> Iterator[tuple[Program, Pipe]]:
    """An rp that has more to send on a pipe than its lp, which reads nothing, has room for."""
    with (
        serving(far, endless, ("0.0.0.0", 8000)),
        remote_proxy(far, tmp, pipes=1) as rp,
        raw_lp(near, 1, (FAR, 6000)) as (pipe,),
    ):
        pipe.send(wire.syn(1, FAR, 8000))
        until(
            "the window to be closed",
            lambda: far.run("ss", "-Htno", "sport = :6000").count("persist"),
        )
        yield rp, pipe


def closed_window_and_a_short_silence(tmp: Path, how: str) -> None:
    """8 s without a network while the window is closed: rp's probes go unanswered, and yet the
    peer was heard 8 s ago, not 20."""
    with two_on_a_link() as (near, far), closed_window(near, far, tmp) as (rp, pipe):
        waited = unread(pipe)
        if how == "down":
            far.ip("link", "set", "wire-r", "down")
        else:
            far.nft(DROP.format(hook=how, direction="oif" if how == "output" else "iif"))
        time.sleep(8)  # what the network is silent for
        if how == "down":
            far.ip("link", "set", "wire-r", "up")
        else:
            far.nft("delete table inet cut")
        pipe.sock.settimeout(30)
        read_exactly(pipe.sock, waited + (8 << 20))
        assert not rp.lines("ended")


def closed_window_whose_peer_is_gone(tmp: Path) -> None:
    with two_on_a_link() as (near, far), closed_window(near, far, tmp) as (rp, _):
        far.nft(DROP.format(hook="input", direction="iif"))
        began = time.monotonic()
        rp.expect("nothing was acknowledged for 20 s", 40)
        assert 18 < time.monotonic() - began < 32


def network_that_goes_silent(tmp: Path, busy: bool) -> None:
    """No packet gets through any more: both proxies notice, rp keeps nothing of it."""
    with (
        two_on_a_link() as (near, far),
        serving(far, endless, ("0.0.0.0", 8000)) as flood,
        remote_proxy(far, tmp) as rp,
    ):
        idle = rp.fd_count()
        with local_proxy(near, tmp, to=FAR) as lp:
            equals("rp's descriptors with all pipes up", rp.fd_count, idle + 4)
            sock = socks(near, FAR, 8000) if busy else None
            if sock:
                read_exactly(sock, 200_000)
            far.nft(DROP.format(hook="input", direction="iif"))
            equals("rp's descriptors", rp.fd_count, idle, 60)
            if sock:
                with sock:
                    assert read_to_end(sock, 60).how == "reset"
                assert isinstance(flood.results.get(timeout=10), ConnectionError)
            far.nft("delete table inet cut")
            lp.expect(LP_READY, 60, count=2)
            with socks(near, FAR, 8000) as again:
                read_exactly(again, 200_000)


def half_a_group_of_pipes_is_closed_after_ten_seconds(tmp: Path) -> None:
    """rp wants 4 and 3 come: one line with both counts, and the 3 are closed."""
    with namespace("box") as box, remote_proxy(box, tmp, pipes=4) as rp:
        idle = rp.fd_count()
        with raw_lp(box, 3) as pipes:
            line = rp.expect(r"\b3\b.*\b4\b|\b4\b.*\b3\b", 14)
            assert "127.0.0.1" in line
            assert all(pipe.ended(5) for pipe in pipes)
        equals("rp's descriptors", rp.fd_count, idle)
        with serving(box, sending(BULK), SERVER), local_proxy(box, tmp):
            downloads(box, "127.0.0.1")


def numbers_of_pipes_that_do_not_agree(tmp: Path) -> None:
    """`rp 4` and `lp 3`: rp's line says what to mend; lp does not claim a working session."""
    with namespace("box") as box, remote_proxy(box, tmp, pipes=4) as rp:
        with local_proxy(box, tmp, pipes=3, ready=None):
            rp.expect(r"\b3\b.*\b4\b|\b4\b.*\b3\b", 14)


@pytest.mark.slow
@pytest.mark.usefixtures("box")
def test_what_ends_by_its_time_alone(tmp_path: Path) -> None:
    """All at once, each in a network of its own: none has more to do than to wait."""
    cases: dict[str, Callable[[Path], None]] = {
        "a network that goes silent, idle": partial(network_that_goes_silent, busy=False),
        "a network that goes silent, busy": partial(network_that_goes_silent, busy=True),
        "a closed window whose peer is gone": closed_window_whose_peer_is_gone,
        "half a group": half_a_group_of_pipes_is_closed_after_ten_seconds,
        "numbers that do not agree": numbers_of_pipes_that_do_not_agree,
    }
    for how in ("down", "output", "input"):
        short = partial(closed_window_and_a_short_silence, how=how)
        cases[f"a closed window and a short silence, {how}"] = short
    jobs = {}
    for name, case in cases.items():
        tmp = tmp_path / name
        tmp.mkdir()
        jobs[name] = partial(case, tmp)
    at_once(jobs)


def test_lp_before_rp(box: Namespace, tmp_path: Path) -> None:
    """lp says once that rp is not there, keeps trying, and works as soon as it is."""
    unreachable = r"^lp: .*127\.0\.0\.1:6000"
    with serving(box, sending(BULK), SERVER):
        with local_proxy(box, tmp_path, ready=unreachable) as lp:
            with remote_proxy(box, tmp_path):
                lp.expect(LP_READY, 15)
                downloads(box, "127.0.0.1")


def test_applications_are_refused_clearly_while_rp_is_away(box: Namespace, tmp_path: Path) -> None:
    ports = ("--forward", "7000:127.0.0.1:8000")
    with local_proxy(box, tmp_path, *ports, ready=r"^lp: .*127\.0\.0\.1:6000") as lp:
        idle = lp.fd_count()
        for _ in range(20):
            assert ending_of(box, 7000).how == "reset"
        equals("lp's descriptors", lp.fd_count, idle)
        assert len(lp.log.splitlines()) < 12, f"lp says too much:\n{lp.log}"


def test_redial_after_rp_restarts(box: Namespace, tmp_path: Path) -> None:
    with serving(box, sending(BULK), SERVER), local_proxy(box, tmp_path, ready=None) as lp:
        for turn in range(3):
            with remote_proxy(box, tmp_path, name=f"rp{turn}") as rp:
                lp.expect(LP_READY, 20, count=turn + 1)
                downloads(box, "127.0.0.1")
                if turn == 1:
                    rp.kill()
            with socks_greet(box) as sock:
                sock.sendall(socks_request("127.0.0.1", 8000))
                assert socks_reply(sock) == 3


def test_rp_that_stops_resets_applications(box: Namespace, tmp_path: Path) -> None:
    with serving(box, echo, SERVER), local_proxy(box, tmp_path, ready=None) as lp:
        with remote_proxy(box, tmp_path) as rp:
            lp.expect(LP_READY)
            with socks(box, "127.0.0.1", 8000) as sock:
                sock.sendall(b"x")
                read_exactly(sock, 1)
                assert rp.stop() == 0
                assert read_to_end(sock).how == "reset"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_both_end_cleanly_in_mid_transfer(
    box: Namespace, tmp_path: Path, number: signal.Signals
) -> None:
    """Statistics are flushed: each connection has its record, each session its end."""
    paths = {side: tmp_path / f"{side}.jsonl" for side in ("rp", "lp")}
    with (
        serving(box, echo, SERVER),
        pair(
            box,
            tmp_path,
            rp=["--stats", str(paths["rp"])],
            lp=["--stats", str(paths["lp"])],
        ) as proxies,
    ):
        with socks(box, "127.0.0.1", 8000) as sock:
            sock.sendall(b"x" * 100_000)
            read_exactly(sock, 50_000)
            assert proxies.lp.stop(number) == 0
            assert read_to_end(sock).how == "reset"
        until("rp's record", lambda: records.of(paths["rp"], "conn"))
        assert proxies.rp.stop(number) == 0
    for path in paths.values():
        assert [r["event"] for r in records.of(path, "session")] == ["begin", "end"]
        assert len(records.of(path, "conn")) == 1


def test_ipv6_pipes(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, sending(BULK), SERVER),
        remote_proxy(box, tmp_path, "--listen", "[::1]:6600", "--permit", "127.0.0.0/8"),
        local_proxy(box, tmp_path, to="[::1]:6600"),
    ):
        downloads(box, "127.0.0.1")
