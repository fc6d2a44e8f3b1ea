# SPDX-License-Identifier: MIT
"""Transparent UDP: unmodified programs' datagrams go through lp by nftables' tproxy.

near (lp, tm3ctl, programs) --- 10.77.0.0/24, 2001:db8:77::/64 --- far (rp, servers at addresses of
its own) and, with lp on a router, laptop --- 10.3.0.0/24 --- near
"""

import ctypes
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.relay.datagrams import answering, associated
from tests.relay.ends import socks_greet
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.programs import ROOT, binary, finish
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.tproxied import (
    MAY,
    NEAR,
    OTHER_SERVER,
    RP,
    SERVERS,
    WAYS_IN,
    Two,
    ask,
    figures,
    program_to,
    relayed,
    tm3ctl,
)
from tests.relay.waiting import equals, until

GUIDE = ROOT / "docs" / "redirect.md"
FLOWS_MAX = 1024  # of a session, as mux/settings/limits.h has it
LARGEST = 4104 - 8 - 7  # a message, less its header and the head of a DATAGRAM
# Without the exceptions that tm3ctl makes: lp's answers are brought to lp, too.
CARELESS = """
table inet careless {
	chain output {
		type route hook output priority mangle; policy accept;
		ip daddr 10.0.0.0/8 meta l4proto udp meta mark set 0x746d33
	}
	chain prerouting {
		type filter hook prerouting priority mangle; policy accept;
		meta mark 0x746d33 meta l4proto udp tproxy ip to 127.0.0.1:6003 accept
	}
}
"""


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Sockets that this thread makes meanwhile are that user's."""
    libc = ctypes.CDLL(None)
    libc.setfsuid(uid)
    try:
        yield
    finally:
        libc.setfsuid(0)


@pytest.mark.parametrize("family", SERVERS)
def test_answers_come_from_where_was_sent_to(lane: Two, tmp_path: Path, family: str) -> None:
    near, far = lane
    address = SERVERS[family]
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        said = tm3ctl(near, "--udp", RP, "wire-l", "all")
        assert "nobody" not in said and "not those to port 53" in said
        idle = lp.fd_count()
        with program_to(near, address, server.port) as sock:
            for size in (0, 1, 1200, 4000):
                assert ask(sock, bytes(size)) == bytes(size)
            sock.connect((address, server.port))
            sock.send(b"again")
            assert sock.recvfrom(100)[1][:2] == (address, server.port)
        assert lp.fd_count() == idle + 1
        # rp stands on far: the program's own address was not seen there.
        assert {host for host, _ in server.clients} == {address}


@pytest.mark.parametrize("family", SERVERS)
def test_size(lane: Two, tmp_path: Path, family: str) -> None:
    """What fits into a message comes whole; the program is told of its interface's MTU."""
    near, far = lane
    address = SERVERS[family]
    level, discover, mtu = (41, 23, 24) if family == "IPv6" else (0, 10, 14)
    near.ip("link", "set", "wire-l", "mtu", "1400")
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        with program_to(near, address, server.port) as sock:
            assert ask(sock, bytes(LARGEST)) == bytes(LARGEST)
            sock.send(bytes(LARGEST + 1))
            assert ask(sock, b"next") == b"next"
            assert sock.getsockopt(level, mtu) == 1400
            sock.setsockopt(level, discover, 2)  # IP_PMTUDISC_DO: no fragments
            with pytest.raises(OSError, match="Message too long"):
                sock.send(bytes(1400))
        lp.send_signal(signal.SIGUSR1)
        lp.expect("datagrams: 2 sent, 2 received; dropped: .* 1 large")


def test_many_programs_and_servers_share_sockets(lane: Two, tmp_path: Path) -> None:
    near, far = lane
    with ExitStack() as stack:
        servers = [
            stack.enter_context(answering(far, address=(host, 0)))
            for host in (SERVERS["IPv4"], SERVERS["IPv4"], OTHER_SERVER)
        ]
        lp = stack.enter_context(relayed(lane, tmp_path))
        idle = lp.fd_count()
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        socks = [
            (stack.enter_context(program_to(near, server.sock.getsockname()[0], server.port)), n)
            for n, server in enumerate(servers)
            for _ in range(20)
        ]
        for turn in range(3):
            for sock, n in socks:
                sock.send(b"%d %d" % (turn, n))
            for sock, n in socks:
                assert sock.recv(100) == b"%d %d" % (turn, n)
        assert figures(lp) == [60, 3, 0, 0, 0]
        assert lp.fd_count() == idle + 3


def test_flows_are_bounded(lane: Two, tmp_path: Path) -> None:
    """Who has been silent longest makes room, and may begin again."""
    near, far = lane
    address = SERVERS["IPv4"]
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        for number in [*range(FLOWS_MAX + 20), 0]:
            with near.open_socket(kind=socket.SOCK_DGRAM) as sock:
                sock.settimeout(10)
                sock.bind((NEAR, 20_000 + number))
                sock.connect((address, server.port))
                assert ask(sock, b"%d" % number) == b"%d" % number
        assert figures(lp) == [FLOWS_MAX, 1, 0, 0, 0]
        # All ways in share them: the one with most makes room.
        with (
            answering(far, address=(SERVERS["IPv6"], 0)) as other,
            program_to(near, SERVERS["IPv6"], other.port) as sock,
            associated(near) as client,
        ):
            assert ask(sock, b"x") == b"x"
            assert client.ask(b"y", address, server.port) == b"y"
        assert figures(lp, r"\[::1\]:6003") == [1, 1, 0, 0, 0]


def test_an_idle_flow_gives_its_socket_back(lane: Two, tmp_path: Path) -> None:
    """rp ends it, after 10 s where all went to port 53; the next datagram begins another."""
    near, far = lane
    address = SERVERS["IPv4"]
    with answering(far, address=(address, 53)), relayed(lane, tmp_path) as lp:
        idle = lp.fd_count()
        said = tm3ctl(near, "--udp", RP, "wire-l", "53")
        assert "lp's own questions" in said
        with program_to(near, address, 53) as sock:
            assert ask(sock, b"name?") == b"name?"
            assert lp.fd_count() == idle + 1
            equals("lp's open descriptors", lp.fd_count, idle, 30)
            assert ask(sock, b"another?") == b"another?"
            assert lp.fd_count() == idle + 1


def test_what_is_left_alone(lane: Two, tmp_path: Path) -> None:
    """rp's address, DNS, other ports, what others marked, lp's user, and who chose the device."""
    near, far = lane
    direct = {NEAR}
    address = SERVERS["IPv4"]
    with (
        answering(far, address=(RP, 0)) as at_rp,
        answering(far, address=(address, 53)) as dns,
        answering(far, address=(address, 4000)) as other,
        answering(far, address=(address, 5000)) as marked,
        answering(far, address=(address, 5001)) as of_user,
        answering(far, address=(address, 5002)) as by_device,
        relayed(lane, tmp_path),
    ):
        tm3ctl(near, "--udp", "--lp-user", "nobody", RP, "wire-l", "1-3999", "4001-65535")
        for server in (at_rp, dns, other):
            with program_to(near, server.sock.getsockname()[0], server.port) as sock:
                assert ask(sock, b"x") == b"x"
        with program_to(near, address, marked.port) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)
            assert ask(sock, b"x") == b"x"
        with near.open_socket(kind=socket.SOCK_DGRAM) as sock:
            sock.settimeout(10)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"wire-l")
            sock.connect((address, by_device.port))
            assert ask(sock, b"x") == b"x"
        with as_user(65534), program_to(near, address, of_user.port) as sock:
            assert ask(sock, b"x") == b"x"
        for server in (at_rp, dns, other, marked, of_user, by_device):
            assert {host for host, _ in server.clients} == direct, server.port
        with program_to(near, address, of_user.port) as sock:
            assert ask(sock, b"x") == b"x"
        assert of_user.clients[-1][0] == address


def test_programs_of_this_machine_answer_as_they_were_asked(lane: Two, tmp_path: Path) -> None:
    """Who is asked directly answers directly; what it asks itself goes by lp."""
    near, far = lane
    address = SERVERS["IPv4"]
    own = {OTHER_SERVER: NEAR, SERVERS["IPv6"]: "2001:db8:77::1"}
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        for client, host in own.items():
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with (
                answering(near, address=(host, 0)) as here,
                far.open_socket(family, socket.SOCK_DGRAM) as sock,
            ):
                sock.settimeout(10)
                sock.bind((client, 0))
                sock.connect((host, here.port))
                assert ask(sock, b"x") == b"x"
                assert ask(sock, b"y") == b"y"
        with near.open_socket(kind=socket.SOCK_DGRAM) as sock:
            sock.settimeout(10)
            sock.bind((NEAR, here.port))
            sock.connect((address, server.port))
            assert ask(sock, b"z") == b"z"
        assert {host for host, _ in server.clients} == {address}
        assert figures(lp) == [1, 1, 0, 0, 0]


def test_while_lp_is_away(lane: Two) -> None:
    """Nothing slips by to the server. IPv6 is refused at once; IPv4 the kernel cannot refuse."""
    near, far = lane
    said = tm3ctl(near, "--udp", RP, "wire-l", "all")
    assert "nobody takes datagrams on 127.0.0.1:6003" in said
    assert "nobody takes datagrams on [::1]:6003" in said
    with answering(far, address=(SERVERS["IPv6"], 0)) as server:
        with program_to(near, SERVERS["IPv6"], server.port) as sock:
            with pytest.raises(ConnectionRefusedError):
                ask(sock, b"x")
    with answering(far, address=(SERVERS["IPv4"], 0)) as server:
        with program_to(near, SERVERS["IPv4"], server.port) as sock:
            sock.send(b"x")
            refused = r"counter packets [1-9]\d* bytes \d+ reject"
            until("the datagram", lambda: re.search(refused, tm3ctl(near, "status")))
            tm3ctl(near, "off")
            assert ask(sock, b"y") == b"y"
        assert server.heard == [b"y"]


def test_without_pipes_datagrams_are_dropped(lane: Two, tmp_path: Path) -> None:
    near, far = lane
    address = SERVERS["IPv4"]
    with (
        answering(far, address=(address, 0)) as server,
        local_proxy(near, tmp_path, *WAYS_IN, to=RP, ready="redirected datagrams on") as lp,
    ):
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        with program_to(near, address, server.port) as sock:
            sock.send(b"x")
            lp.expect(rf"from {NEAR}:\d+ to {address}:\d+ are dropped: there are no pipes")
            with remote_proxy(far, tmp_path, *MAY):
                lp.expect(rf"4 pipes to {RP}:6010 are up")
                assert ask(sock, b"y") == b"y"
        assert server.heard == [b"y"]
        assert figures(lp)[2] == 1


def test_a_port_that_a_program_has_at_all_addresses(lane: Two, tmp_path: Path) -> None:
    """The kernel lets nobody else bind to it: answers from there are dropped, and lp says so."""
    near, far = lane
    address = SERVERS["IPv4"]
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        with program_to(near, address, server.port) as sock:
            with answering(near, address=("0.0.0.0", server.port)):
                sock.send(b"one")
                lp.expect(rf"answers from {address}:\d+ are dropped, .*: Address already in use")
            assert ask(sock, b"two") == b"two"
        assert figures(lp) == [1, 1, 0, 0, 1]


def test_sockets_for_answers_leave_descriptors_to_others(lane: Two, tmp_path: Path) -> None:
    near, far = lane
    most, servers = 48, 32
    with ExitStack() as stack:
        lp = stack.enter_context(relayed(lane, tmp_path))
        near.run("prlimit", "--pid", str(lp.pid), f"--nofile={most}:{most}")
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        for n in range(servers):
            server = stack.enter_context(answering(far, address=(SERVERS["IPv4"], 0)))
            sock = stack.enter_context(program_to(near, SERVERS["IPv4"], server.port))
            if n < most // 4:
                assert ask(sock, b"x") == b"x"
            else:
                sock.send(b"x")
        lp.expect(r"answers from .* are dropped, .*: --tproxy has its part of the descriptors")
        equals("flows, sockets and drops", lambda: figures(lp), [32, 12, 0, 0, 20])
        with socks_greet(near):
            pass


def test_nothing_goes_round_in_circles(lane: Two, tmp_path: Path) -> None:
    """What was sent to lp's port itself, and answers of lp's that bad rules bring back."""
    near, far = lane
    address = SERVERS["IPv4"]
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path) as lp:
        with program_to(near, "127.0.0.1", 6003) as sock:
            sock.send(b"to lp")
            lp.expect(r"to 127\.0\.0\.1:6003 are dropped: they were not redirected")
        tm3ctl(near, "--udp", RP, "wire-l", "all")  # for its route
        near.run("nft", "delete", "table", "inet", "tm3ctl_udp")
        near.nft(CARELESS)
        # The kernel itself keeps what is for a program's connected socket.
        with near.open_socket(kind=socket.SOCK_DGRAM) as sock:
            sock.sendto(b"question", (address, server.port))
            equals("strays", lambda: figures(lp)[3], 2)
        assert figures(lp)[0] == 1
        assert server.heard == [b"question"]


# --- rights -------------------------------------------------------------------------------------


def test_without_rights_lp_says_so(box: Namespace) -> None:
    argv = ["setpriv", "--inh-caps=-all", "--bounding-set=-net_raw,-net_admin"]
    code, out, err = finish([*argv, binary("lp"), "--tproxy", "6003", "127.0.0.1", "4"], box, 10)
    why = "takes CAP_NET_RAW or CAP_NET_ADMIN, which this process has not: start it as root"
    assert (code, out, err) == (2, "", f"lp: --tproxy {why}\n")


def test_two_rights_are_enough(lane: Two, tmp_path: Path) -> None:
    """As an own user's, of a service: one for the address of answers, one for port 53."""
    near, far = lane
    address = SERVERS["IPv4"]
    # The tree may be closed to others.
    lp = tmp_path / "lp"
    lp.write_bytes(binary("lp").read_bytes())
    with answering(far, address=(address, 53)), remote_proxy(far, tmp_path, *MAY):
        for rights, works in (("+net_raw,+net_bind_service", True), ("+net_raw", False)):
            with started(near, lp, rights) as (process, log):
                says(log, "are up")
                tm3ctl(near, "--udp", RP, "wire-l", "53")
                with program_to(near, address, 53) as sock:
                    if works:
                        assert ask(sock, b"x") == b"x"
                    else:
                        sock.send(b"x")
                        says(log, "a port below 1024 takes CAP_NET_BIND_SERVICE")
            assert process.returncode == 0


def says(log: Path, words: str) -> None:
    until(f"'{words}' in the log", lambda: words in log.read_text())


def as_nobody(rights: str) -> list[str]:
    caps = [f"--inh-caps={rights}", f"--ambient-caps={rights}"]
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *caps]


@contextmanager
def started(ns: Namespace, lp: Path, rights: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    log = lp.with_name(f"lp-{rights.count('+')}.log")
    # Opened as root: its own folder may be closed to this user.
    with lp.open("rb") as file, log.open("wb") as out:
        os.fchmod(file.fileno(), 0o755)
        process = subprocess.Popen(
            ns.command([*as_nobody(rights), f"/proc/self/fd/{file.fileno()}", *WAYS_IN, RP, "4"]),
            stdout=out,
            stderr=out,
            pass_fds=[file.fileno()],
        )
    try:
        yield process, log
    finally:
        process.terminate()
        process.wait(timeout=20)


# --- behind a router ----------------------------------------------------------------------------


def block(title: str, kind: str) -> str:
    """Rules or commands that docs/redirect.md has under a heading."""
    found = re.search(
        rf"^## {title}$.*?^```{kind}$\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/redirect.md has no {kind} under {title}"
    return found[1]


@contextmanager
def laptop_behind(lane: Two) -> Iterator[Namespace]:
    near, _ = lane
    title = "Datagrams of machines behind a router"
    with namespace("laptop") as laptop:
        veth(laptop, "10.3.0.2/24", near, "10.3.0.1/24", name="lan")
        laptop.ip("route", "add", "default", "via", "10.3.0.1")
        near.nft(block(title, "nft").replace('"lan0"', '"lan-r"'))
        near.run("sh", "-e", "-c", block(title, "sh"))
        yield laptop


def test_a_forged_datagram_keeps_nobody_from_a_server(lane: Two, tmp_path: Path) -> None:
    """A neighbour pretends to be the server, and sends to the program before it has begun."""
    _, far = lane
    server, victim = (SERVERS["IPv4"], 443), ("10.3.0.9", 5000)
    far.ip("route", "add", "10.3.0.0/24", "via", NEAR)  # or rp ends the forger's flow at once
    with (
        laptop_behind(lane) as laptop,
        answering(far, address=server),
        relayed(lane, tmp_path) as lp,
    ):
        laptop.ip("address", "add", f"{server[0]}/32", "dev", "lo")
        laptop.ip("route", "add", victim[0], "via", "10.3.0.1")
        with laptop.open_socket(kind=socket.SOCK_DGRAM) as forger:
            forger.bind(server)
            forger.sendto(b"forged", victim)
            equals("flows", lambda: figures(lp)[0], 1)
        laptop.ip("address", "del", f"{server[0]}/32", "dev", "lo")
        laptop.ip("route", "del", victim[0])
        laptop.ip("address", "add", f"{victim[0]}/24", "dev", "lan-l")
        with laptop.open_socket(kind=socket.SOCK_DGRAM) as sock:
            sock.settimeout(10)
            sock.bind(victim)
            sock.connect(server)
            assert ask(sock, b"question") == b"question"
        assert figures(lp)[0] == 2


def test_machines_behind_a_router(lane: Two, tmp_path: Path) -> None:
    near, far = lane
    address = SERVERS["IPv4"]
    with (
        laptop_behind(lane) as laptop,
        answering(far, address=(address, 443)) as server,
        relayed(lane, tmp_path),
    ):
        with program_to(laptop, address, 443) as sock:
            assert ask(sock, b"one") == b"one"
            # The router's own programs there, as well: lp's answers go out the same way.
            tm3ctl(near, "--udp", RP, "lan-r", "all")
            assert ask(sock, b"two") == b"two"
        assert {host for host, _ in server.clients} == {address}
        # Asked from elsewhere, a machine there answers directly.
        near.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        far.ip("route", "add", "10.3.0.0/24", "via", NEAR)
        with (
            answering(laptop, address=("10.3.0.2", 443)),
            far.open_socket(kind=socket.SOCK_DGRAM) as sock,
        ):
            sock.settimeout(10)
            sock.bind((OTHER_SERVER, 0))
            sock.connect(("10.3.0.2", 443))
            assert ask(sock, b"three") == b"three"
