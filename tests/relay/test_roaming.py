# SPDX-License-Identifier: MIT
"""lp's host gets another address or route, rp another address, while connections are open."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.relay import miles, payload
from tests.relay.ends import answers, echo, read_to_end, serving, socks
from tests.relay.kinds import mptcp
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.pipes import pipes_of_mptcp
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.waiting import until

RP = "10.77.0.2"
LASTED_S = 1.1  # lp's LASTED_MS: after a session that was lost before, lp waits
GONE = r"10\.\d+\.0\.\d+, where it leaves from, is this host's no more"
ELSEWHERE = "goes another way now"


@dataclass(frozen=True)
class Both:
    lp: Program
    rp: Program
    port: int


@contextmanager
def over(near: Namespace, far: Namespace, tmp: Path, *lp: str, pipe: str = "tcp") -> Iterator[Both]:
    with (
        serving(far, echo, (RP, 8000)) as server,
        remote_proxy(far, tmp, "--allow", "10.0.0.0/8", "--pipe", pipe) as remote,
        local_proxy(near, tmp, "--pipe", pipe, *lp, to=RP) as local,
    ):
        yield Both(local, remote, server.port)


def readdress(near: Namespace, device: str, old: str, new: str) -> None:
    near.ip("address", "del", old, "dev", device)
    near.ip("address", "add", new, "dev", device)


@contextmanager
def behind_one_address(two: tuple[Namespace, Namespace]) -> Iterator[tuple[Namespace, Namespace]]:
    """home --- near, which translates addresses --- far."""
    near, far = two
    with namespace("home") as home:
        veth(home, "10.78.0.1/24", near, "10.78.0.2/24", name="home")
        near.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        near.nft(
            "table ip t {\nchain out {\n"
            "type nat hook postrouting priority 100\noifname wire-l masquerade\n}\n}\n"
        )
        home.ip("route", "add", "default", "via", "10.78.0.2")
        yield home, far


def moves_home(home: Namespace, old: int, new: int) -> None:
    readdress(home, "home-l", f"10.78.0.{old}/24", f"10.78.0.{new}/24")
    home.ip("route", "add", "default", "via", "10.78.0.2")


@pytest.fixture
def translated(two: tuple[Namespace, Namespace]) -> Iterator[tuple[Namespace, Namespace]]:
    with behind_one_address(two) as ends:
        yield ends


def test_another_address_begins_a_new_session(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """rp resumes a session from its own address alone: applications are reset, not left waiting."""
    near, far = two
    with over(near, far, tmp_path) as both, socks(near, RP, both.port) as sock:
        answers(sock)
        readdress(near, "wire-l", "10.77.0.1/24", "10.77.0.3/24")
        assert read_to_end(sock, 10).how == "reset"
        both.lp.expect(GONE)
        both.lp.expect("rp knows it no more, or not from this address")
        both.rp.expect("session 2: the first of 4 pipes from 10.77.0.3")
        both.lp.expect("4 pipes to 10.77.0.2:6010 are up", count=2)
        with socks(near, RP, both.port) as other:
            answers(other)


def test_who_connects_while_another_session_begins_waits_for_it(tmp_path: Path) -> None:
    """It takes two round trips, of 0.2 s each."""
    allow = ("--allow", "10.0.0.0/8", "--permit", f"{miles.RP}/32")
    with (
        miles.miles(tmp_path, delay_ms=100.0) as at,
        serving(at.far, echo, (miles.RP, miles.PORT)),
        remote_proxy(at.far, tmp_path, *allow),
        local_proxy(at.near, tmp_path, to=miles.RP) as lp,
        socks(at.near, miles.RP, miles.PORT) as sock,
    ):
        answers(sock)
        lasted = time.monotonic() + LASTED_S
        until("the session to have lasted", lambda: time.monotonic() > lasted, 2 * LASTED_S)
        readdress(at.near, "wifi", "10.1.0.1/24", "10.1.0.3/24")
        miles.leads_to_rp(at.near, "wifi")
        assert read_to_end(sock, 10).how == "reset"
        with socks(at.near, miles.RP, miles.PORT) as other:
            answers(other)
        lp.expect("another session begins, applications wait meanwhile")


@pytest.mark.parametrize("pipe", ["tcp", pytest.param("mptcp", marks=mptcp)])
def test_behind_one_address_the_session_goes_on(
    translated: tuple[Namespace, Namespace], tmp_path: Path, pipe: str
) -> None:
    home, far = translated
    for end in translated:
        end.run("sysctl", "-q", f"net.mptcp.enabled={int(pipe == 'mptcp')}")
    data = payload.seeded(300_000)
    with over(home, far, tmp_path, pipe=pipe) as both, socks(home, RP, both.port) as sock:
        answers(sock)
        assert pipes_of_mptcp(home) == (4 if pipe == "mptcp" else 0)
        for old, new in ((1, 3), (3, 4)):
            moves_home(home, old, new)
            for at in range(0, len(data), 100_000):
                answers(sock, data[at : at + 100_000])
        assert len(both.lp.lines(GONE)) == 8
        both.lp.expect("4 pipes to 10.77.0.2:6010 are up", count=3)
        assert not both.rp.lines("session 2")


def test_another_gateway(translated: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """The address stays, the way does not; a route that says what the old one said is none."""
    home, far = translated
    with over(home, far, tmp_path) as both, socks(home, RP, both.port) as sock:
        answers(sock)
        home.ip("route", "del", "default")
        home.ip("route", "add", "default", "via", "10.78.0.2")
        answers(sock)
        assert not both.lp.lines(r"pipes? (is|are) left")
        home.ip("address", "add", "10.79.0.1/24", "dev", "home-l")
        home.ip("neigh", "add", "10.79.0.2", "lladdr", gateway_mac(home), "dev", "home-l")
        home.ip("route", "replace", "default", "via", "10.79.0.2", "src", "10.78.0.1")
        both.lp.expect(ELSEWHERE, count=4)
        answers(sock)
        both.lp.expect("4 pipes to 10.77.0.2:6010 are up", count=2)
        assert not both.rp.lines("session 2")


def gateway_mac(home: Namespace) -> str:
    """That of 10.78.0.2, which was talked to just now."""
    return home.ip("neigh", "show", "10.78.0.2").split("lladdr ")[1].split()[0]


def test_the_baseline_says_so(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    near, far = two
    with over(near, far, tmp_path, "--extend", "never") as both:
        readdress(near, "wire-l", "10.77.0.1/24", "10.77.0.3/24")
        both.lp.expect(r"10\.77\.0\.1, where its pipes leave from, is this host's no more")
        readdress(near, "wire-l", "10.77.0.3/24", "10.77.0.1/24")


@contextmanager
def lp_that_knows(ns: Namespace, tmp: Path, table: Path, name: str) -> Iterator[Program]:
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    argv = ["unshare", "--mount", "--", "sh", "-c", script, table, binary("lp"), name, "4"]
    ready = "lp: 4 pipes to .* are up"
    with program(ns, argv, tmp / "lp.log", name="lp", ready=ready) as running:
        yield running


def test_the_name_is_looked_up_anew(two: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """Where rp was it cannot be reached; its name leads to where it can."""
    near, far = two
    far.ip("address", "add", "10.77.0.4/24", "dev", "wire-r")
    table = tmp_path / "hosts"
    table.write_text(f"{RP} rp.example\n")
    with ExitStack() as stack:
        server = stack.enter_context(serving(far, echo, (RP, 8000)))
        rp = stack.enter_context(remote_proxy(far, tmp_path, "--allow", "10.0.0.0/8"))
        lp = stack.enter_context(lp_that_knows(near, tmp_path, table, "rp.example"))
        sock = stack.enter_context(socks(near, RP, server.port))
        answers(sock)
        table.write_text(f"{RP} rp.example\n10.77.0.4 rp.example\n")
        near.nft(
            "table ip t {\nchain out {\ntype filter hook output priority 0\n"
            f"ip daddr {RP} tcp flags syn reject with icmp type host-unreachable\n}}\n}}\n"
        )
        near.run("ss", "-K", "dst", RP)
        answers(sock)
        lp.expect("4 pipes to 10.77.0.4:6010 are up")
        assert not rp.lines("session 2")
