# SPDX-License-Identifier: MIT
"""Who may open pipes, where connections may go, and what an application sees otherwise."""

import errno
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.relay import records, wire
from tests.relay.ends import (
    echo,
    read_exactly,
    read_to_end,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
)
from tests.relay.netns import Namespace
from tests.relay.programs import binary, program
from tests.relay.proxies import local_proxy, pair, remote_proxy
from tests.relay.waiting import until
from tests.relay.wire import BY_RST, Message, Pipe, raw_lp

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 8000
SOON_S = 5.0  # half as long as a server may take to answer


@contextmanager
def across(
    two: tuple[Namespace, Namespace], tmp_path: Path, *rp_options: str
) -> Iterator[tuple[Namespace, Path]]:
    """lp near, rp and an echo server on all addresses far; near and rp's statistics."""
    near, far = two
    stats = tmp_path / "rp.jsonl"
    with (
        serving(far, echo, ("0.0.0.0", PORT)),
        pair(far, tmp_path, rp=[*records.soon(stats), *rp_options], lp_ns=near, to=FAR),
    ):
        yield near, stats


def reaches(ns: Namespace, host: str) -> None:
    with socks(ns, host, PORT) as sock:
        sock.sendall(b"hello")
        assert read_exactly(sock, 5) == b"hello"


def is_denied(ns: Namespace, host: str, stats: Path) -> None:
    with socks(ns, host, PORT) as sock:
        assert read_to_end(sock, SOON_S).how == "reset", "it has nothing to wait for"
    dst = f"[{host}]:{PORT}" if ":" in host else f"{host}:{PORT}"
    last = until(
        f"the record of {host}",
        lambda: [r for r in records.of(stats, "conn") if r["dst"] == dst],
    )[-1]
    assert last["end"] == "denied"
    assert last["connected"] is None


def test_loopback_is_not_for_peers_from_outside(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    with across(two, tmp_path) as (near, stats):
        reaches(near, FAR)
        is_denied(near, "127.0.0.1", stats)
        is_denied(near, "127.9.9.9", stats)


def test_loopback_can_be_permitted(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    with across(two, tmp_path, "--permit", "127.0.0.1/32") as (near, stats):
        reaches(near, "127.0.0.1")
        is_denied(near, "127.0.0.2", stats)


def test_addresses_of_its_own_host_are_as_loopback(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """Those that come later, too, and those that go are as any other."""
    near, far = two
    far.ip("address", "add", "10.5.0.1/32", "dev", "lo")
    with serving(near, echo, ("0.0.0.0", PORT)), across(two, tmp_path) as (_, stats):
        reaches(near, NEAR)
        is_denied(near, "10.5.0.1", stats)
        far.ip("address", "add", "10.5.0.2/32", "dev", "lo")
        is_denied(near, "10.5.0.2", stats)
        far.ip("address", "delete", "10.5.0.1/32", "dev", "lo")
        near.ip("address", "add", "10.5.0.1/32", "dev", "lo")
        far.ip("route", "add", "10.5.0.1/32", "via", NEAR)
        reaches(near, "10.5.0.1")


def test_addresses_that_a_route_brings_to_its_own_host_are_as_loopback(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """No device has them: those of a load balancer, and what a subnet's routers have in common."""
    near, far = two
    far.ip("route", "add", "local", "198.51.100.0/24", "dev", "lo")
    far.ip("-6", "route", "add", "local", "2001:db8:5::/64", "dev", "lo")
    far.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
    far.ip("address", "add", "2001:db8:6::1/64", "dev", "wire-r", "nodad")
    with across(two, tmp_path, "--allow", f"{NEAR}/32") as (_, stats):
        is_denied(near, "198.51.100.7", stats)
        is_denied(near, "2001:db8:5::7", stats)
        is_denied(near, "2001:db8:6::", stats)
        far.ip("route", "add", "local", "203.0.113.9/32", "dev", "lo")
        is_denied(near, "203.0.113.9", stats)
        reaches(near, FAR)


def test_who_comes_from_an_address_that_a_route_brings_is_on_the_host(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    _, far = two
    far.ip("route", "add", "local", "198.51.100.0/24", "dev", "lo")
    with serving(far, echo, ("0.0.0.0", PORT)), pair(far, tmp_path, to="198.51.100.1"):
        reaches(far, "198.51.100.7")
        reaches(far, "127.0.0.1")


def test_addresses_of_its_own_host_can_be_permitted(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    two[1].ip("address", "add", "10.5.0.1/32", "dev", "lo")
    with across(two, tmp_path, "--permit", "10.5.0.0/16") as (near, _):
        reaches(near, "10.5.0.1")


def test_who_comes_from_its_own_host_reaches_it(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """By whichever of its addresses the pipes come."""
    _, far = two
    far.ip("address", "add", "10.5.0.1/32", "dev", "lo")
    with serving(far, echo, ("0.0.0.0", PORT)), pair(far, tmp_path, to=FAR):
        reaches(far, "10.5.0.1")
        reaches(far, "127.0.0.1")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", FAR, "198.51.100.7"])
def test_rp_is_no_destination_of_its_own(
    two: tuple[Namespace, Namespace], tmp_path: Path, host: str
) -> None:
    """Its pipes would lead to itself: nobody may, whoever asks and whatever is permitted."""
    _, far = two
    far.ip("route", "add", "local", "198.51.100.0/24", "dev", "lo")
    with (
        remote_proxy(far, tmp_path, "--permit", "0.0.0.0/0", pipes=1) as rp,
        raw_lp(far, 1) as (pipe,),
    ):
        pipe.send(wire.syn(1, host, 6000))
        assert pipe.receive() == Message("fin", 1, 0, bytes([BY_RST]))
        rp.expect(rf"connection 1 to {host}:6000 denied: it is where rp itself listens")
        assert len(rp.lines("session [0-9]+: 1 pipe from")) == 1


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "169.254.1.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.9.9.9",
     "255.255.255.255", "100.100.100.200"],
)  # fmt: skip
def test_never_to_be_reached(two: tuple[Namespace, Namespace], tmp_path: Path, host: str) -> None:
    """Link-local, metadata and group addresses are denied even with everything permitted."""
    with across(two, tmp_path) as (near, stats):
        is_denied(near, host, stats)


def test_a_permit_does_not_open_what_is_always_denied(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    with across(two, tmp_path, "--permit", "0.0.0.0/0") as (near, stats):
        is_denied(near, "169.254.169.254", stats)
        reaches(near, FAR)


def test_deny_and_permit_by_longest_prefix(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    for address in ("10.5.0.1/32", "10.5.1.1/32", "10.5.1.2/32", "10.6.0.1/32"):
        two[1].ip("address", "add", address, "dev", "lo")
    rules = ("--deny", "10.5.0.0/16", "--permit", "10.5.1.0/24", "--deny", "10.5.1.2/32",
             "--permit", "10.6.0.1")  # fmt: skip
    with across(two, tmp_path, *rules) as (near, stats):
        is_denied(near, "10.5.0.1", stats)
        reaches(near, "10.5.1.1")
        is_denied(near, "10.5.1.2", stats)
        reaches(near, "10.6.0.1")


def test_permit_wins_a_tie(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    with across(two, tmp_path, "--permit", f"{FAR}/32", "--deny", f"{FAR}/32") as (near, _):
        reaches(near, FAR)


def test_deny_everything_but(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    two[1].ip("address", "add", "10.5.0.1/32", "dev", "lo")
    with across(two, tmp_path, "--deny", "0.0.0.0/0", "--permit", f"{FAR}/32") as (near, stats):
        reaches(near, FAR)
        is_denied(near, "10.5.0.1", stats)


def test_allow_admits_only_those(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    near, far = two
    near.ip("address", "add", "10.77.0.9/24", "dev", "wire-l")
    with (
        serving(far, echo, ("0.0.0.0", PORT)),
        remote_proxy(far, tmp_path, "--allow", f"{NEAR}/32", "--allow", "127.0.0.0/8") as rp,
    ):
        assert not rp.lines("warning"), "with --allow there is nothing to warn of"
        idle = rp.fd_count()
        stranger = near.open_socket()
        stranger.bind(("10.77.0.9", 0))
        stranger.settimeout(5)
        with stranger, suppress(ConnectionResetError):  # it may come before connect() returns
            stranger.connect((FAR, 6000))
            assert Pipe(stranger).ended(5)
        assert "10.77.0.9" in rp.expect(r"10\.77\.0\.9")
        assert rp.fd_count() == idle
        with local_proxy(near, tmp_path, to=FAR):
            reaches(near, FAR)


def test_a_bare_rp_warns_once_that_everybody_may_come(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path) as rp:
        assert len(rp.lines(r"(?i)warning|--allow")) == 1, rp.log


def test_listen_chooses_addresses(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    near, far = two
    with (
        serving(far, echo, ("0.0.0.0", PORT)),
        remote_proxy(far, tmp_path, "--listen", f"{FAR}:6001", "--listen", "127.0.0.1:6002"),
    ):
        with pytest.raises(ConnectionRefusedError):
            near.connect((FAR, 6000))
        with pytest.raises(ConnectionRefusedError):
            near.connect((FAR, 6002))
        with local_proxy(near, tmp_path, to=f"{FAR}:6001"):
            reaches(near, FAR)


# --- destinations that cannot be reached --------------------------------------


def test_refused_is_a_reset_at_once(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    with pair(box, tmp_path, rp=records.soon(stats)):
        with socks(box, "127.0.0.1", 9) as sock:
            assert read_to_end(sock, SOON_S).how == "reset"
    assert [r["end"] for r in records.of(stats, "conn")] == ["refused"]


def test_early_data_for_a_refused_destination(box: Namespace, tmp_path: Path) -> None:
    """What was sent before the answer is lost, and the sender is told by a reset."""
    with pair(box, tmp_path):
        for _ in range(20):
            with socks(box, "127.0.0.1", 9) as sock:
                try:
                    sock.sendall(b"x" * 300_000)
                    how = read_to_end(sock, 5).how
                except OSError as error:
                    how = "reset" if error.errno in (errno.EPIPE, errno.ECONNRESET) else str(error)
                assert how == "reset"


def test_unreachable_is_a_reset_at_once(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    box.ip("route", "add", "unreachable", "10.8.0.0/16")
    with pair(box, tmp_path, rp=records.soon(stats)):
        for host in ("10.8.1.1", "10.9.1.1"):  # a route that says no, and none at all
            with socks(box, host, PORT) as sock:
                assert read_to_end(sock, SOON_S).how == "reset"
    assert [r["end"] for r in records.of(stats, "conn")] == ["unreachable"] * 2


def test_silence_is_a_reset_after_the_connect_timeout(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    box.ip("address", "add", "10.8.0.1/32", "dev", "lo")
    box.nft(
        "table inet t {\nchain in {\n"
        "type filter hook input priority 0\nip daddr 10.8.0.1 drop\n}\n}\n"
    )
    options = ["--stats", str(stats), "--connect-timeout", "1.5"]
    with serving(box, echo) as server, pair(box, tmp_path, rp=options):
        started = time.monotonic()
        with socks(box, "10.8.0.1", PORT) as waiting:
            with socks(box, "127.0.0.1", server.port) as other:
                other.sendall(b"x")
                assert read_exactly(other, 1) == b"x"
            over, _, _ = select.select([waiting], [], [], 0)
            assert not over, "a connect that waits held up another connection"
            assert read_to_end(waiting, SOON_S).how == "reset"
            assert time.monotonic() - started > 1.4
    assert "timeout" in [r["end"] for r in records.of(stats, "conn")]


def test_a_name_that_takes_long_holds_up_nobody(box: Namespace, tmp_path: Path) -> None:
    """lp looks a name up without stopping: with a silent name server others go on."""
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    silent = box.open_socket(kind=socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    mounted = ["unshare", "--mount", "--", "sh", "-c",
               'mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"',
               resolv, binary("lp"), "127.0.0.1", "4"]  # fmt: skip
    with (
        silent,
        serving(box, echo) as server,
        remote_proxy(box, tmp_path),
        program(box, mounted, tmp_path / "lp.log", name="lp", ready="are up"),
        socks_greet(box) as waiting,
    ):
        waiting.sendall(socks_request("slow.example", 80))
        silent.settimeout(5)
        assert b"slow" in silent.recv(512)
        for _ in range(20):
            with socks(box, "127.0.0.1", server.port) as sock:
                sock.sendall(b"x")
                assert read_exactly(sock, 1) == b"x"
        waiting.settimeout(30)
        assert socks_reply(waiting) == 4
