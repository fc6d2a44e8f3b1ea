# SPDX-License-Identifier: MIT
"""What bpf/README.md says of `tm3ctl --bpf`: whose connections go to lp, and what lp is told."""

import json
import random
import signal
import socket
import threading
from dataclasses import replace

import pytest

from tests.bpf.road import A6, CLIENT, PORTS, RP, A, B, Road, said_of
from tests.relay import conntrack
from tests.relay.waiting import equals

MANY = 640  # and a quarter more of IPv6: rp has 1,024 connects of a session under way at most
AGAIN = 60


def test_a_command_goes_through_lp_and_nobody_else(way: Road) -> None:
    with way.proxies() as both:
        told = way.client("ask", A, "8000")
        assert told["server"].startswith(f"{A} 8000 ")
        assert told["peer"] == [A, 8000]
        assert told["own"][0] == "127.0.0.1"
        other = way.unredirected("ask", A, "8001")
        assert other["server"] == f"{A} 8001 from 10.77.0.1"
        both.settled()
    assert way.relayed() == [f"{A}:8000"]


def test_ipv6_too(way: Road) -> None:
    with way.proxies() as both:
        told = way.client("ask", A6, "8003")
        assert told["server"].startswith(f"{A6} 8003 ") and told["peer"] == [A6, 8003]
        wrapped = way.client("ask6", f"::ffff:{A}", "8004")
        assert wrapped["server"].startswith(f"{A} 8004 ")
        assert wrapped["peer"] == [f"::ffff:{A}", 8004]
        both.settled()
    assert way.relayed() == [f"[{A6}]:8003", f"{A}:8004"]


def test_what_it_starts_is_redirected_with_it(way: Road) -> None:
    """Also what outlives it: the programs stay until the last one ends."""
    with way.proxies() as both:
        later = f"(sleep 1; {' '.join(map(str, CLIENT))} ask {A} 8000) & exit 3"
        done = way.bpf("--", "sh", "-c", later)
        assert done.returncode == 3
        assert json.loads(done.stdout)["peer"] == [A, 8000]
        both.settled()
    assert way.relayed() == [f"{A}:8000"]


def test_many_at_once_arrive_where_they_wanted(way: Road) -> None:
    """Of both families, to addresses of which no two are the same."""
    dice = random.Random(1)
    hosts = dice.sample(range(1, 65535), MANY)
    wanted = [(f"10.78.{i >> 8}.{i & 255}", dice.choice(PORTS)) for i in hosts]
    wanted += [(f"2001:db8:78::{i:x}", dice.choice(PORTS)) for i in range(1, MANY // 4)]
    assert len({host for host, _ in wanted}) == len(wanted)
    with way.proxies():
        asked = "\n".join(f"{host} {port}" for host, port in wanted)
        told = way.client("many", stdin=asked)
        assert sorted(tuple(it["asked"]) for it in told) == sorted(wanted)
        for it in told:
            assert it.get("server", "").startswith(said_of(it["asked"]) + " "), it
            assert it["peer"] == it["asked"]


def test_a_source_port_that_is_used_again(way: Road) -> None:
    """At once, for other servers: nothing is remembered by ports."""
    servers = [(A if i % 2 else B, PORTS[i % len(PORTS)]) for i in range(AGAIN)]
    words = [str(word) for pair in servers for word in pair]
    with way.proxies():
        told = way.client("same", "4444", *words)
    for (host, port), it in zip(servers, told, strict=True):
        assert it.get("server", "").startswith(f"{host} {port} "), it
        assert it["own"][1] == 4444


def test_only_the_ports_that_are_named(way: Road) -> None:
    with way.proxies() as both:
        for port in (8000, 8002, 8004):
            told = way.client("ask", A, str(port), options=["8000", "8003-8010"])
            assert told["server"].startswith(f"{A} {port} ")
        both.settled()
    assert way.relayed() == [f"{A}:8000", f"{A}:8004"]


def test_addresses_that_are_left_alone(way: Road) -> None:
    """Those of --except, loopback, and this machine's own."""
    options = ["--except", "10.78.200.0/24", "--except", A6]
    listener = way.near.open_socket()
    with listener, way.proxies() as both:
        listener.bind(("", 8000))
        listener.listen()
        assert way.client("ask", B, "8000", options=options)["server"].endswith(" from 10.77.0.1")
        assert "2001:db8:77::1" in way.client("ask", A6, "8000", options=options)["server"]
        for own in ("127.0.0.1", "10.77.0.1"):
            argv = [*CLIENT, "ask", own, "8000"]
            done = way.bpf("--", "sh", "-c", 'timeout 5 "$@" & wait', "sh", *argv)
            assert done.returncode == 0
            sock, peer = listener.accept()
            sock.close()
            assert peer[0] == own
        both.settled()
    assert way.relayed() == []


def test_a_socket_bound_to_a_device_is_let_through(way: Road) -> None:
    with way.proxies() as both:
        argv = ["curl", "-sS", "-m", "5", "--http0.9", "--interface", "if!wire-l"]
        done = way.bpf("--", *argv, f"http://{A}:8000/")
        assert done.stdout.startswith(f"{A} 8000 from 10.77.0.1"), done.stderr
        both.settled()
    assert way.relayed() == []


@pytest.mark.parametrize(
    ("source", "to"), [("10.77.0.1", A), ("2001:db8:77::1", A6)], ids=["IPv4", "IPv6"]
)
def test_a_socket_bound_to_an_address_is_redirected(way: Road, source: str, to: str) -> None:
    with way.proxies() as both:
        host = f"[{to}]" if ":" in to else to
        argv = ["curl", "-sS", "-m", "5", "--http0.9", "--interface", f"host!{source}"]
        done = way.bpf("--", *argv, f"http://{host}:8000/")
        assert done.stdout.startswith(f"{to} 8000 "), done.stderr
        both.settled()
    assert way.relayed() == [f"{host}:8000"]


def test_mptcp_and_fast_open(way: Road) -> None:
    """Sockets that write options of their own into the SYN: of IPv4 there is room for both."""
    script = (
        "import socket, sys\n"
        "mptcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n"
        f"mptcp.connect(('{A}', 8000))\n"
        "print(mptcp.recv(99).decode(), end='')\n"
        "fast = socket.socket()\n"
        f"fast.sendto(b'x', socket.MSG_FASTOPEN, ('{A}', 8001))\n"
        "print(fast.recv(99).decode(), end='')\n"
    )
    with way.proxies() as both:
        done = way.bpf("--", "timeout", "20", "python3", "-c", script)
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert first.startswith(f"{A} 8000 ") and second.startswith(f"{A} 8001 ")
        both.settled()
    assert sorted(way.relayed()) == [f"{A}:8000", f"{A}:8001"]


@pytest.mark.parametrize(
    ("protocol", "connects"),
    [
        (socket.IPPROTO_MPTCP, f"connect(('{A6}', 8000))"),
        (socket.IPPROTO_TCP, f"sendto(b'x', socket.MSG_FASTOPEN, ('{A6}', 8000))"),
    ],
    ids=["MPTCP", "fast-open"],
)
def test_what_leaves_no_room_in_a_syn_of_ipv6_is_reset(
    way: Road, protocol: int, connects: str
) -> None:
    script = (
        "import socket\n"
        f"sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, {int(protocol)})\n"
        f"sock.{connects}\n"
        "sock.recv(99)\n"
    )
    with way.proxies() as both:
        done = way.bpf("--", "timeout", "20", "python3", "-c", script)
        assert "ConnectionResetError" in done.stderr
        both.lp.expect("was not redirected here")


def test_with_syn_cookies_for_all_connections_are_reset(way: Road) -> None:
    """The kernel then forgets each SYN at once."""
    way.near.run("sysctl", "-q", "-w", "net.ipv4.tcp_syncookies=2")
    with way.proxies() as both:
        assert way.client("ask", A, "8000") == {"error": "ECONNRESET"}
        both.lp.expect("was not redirected here")


def test_an_lp_that_is_slow_to_accept(way: Road) -> None:
    """More come than its queue holds, and no SYN cookies: SYNs that are sent again say it again."""
    way.near.run("sysctl", "-q", "-w", "net.core.somaxconn=64", "net.ipv4.tcp_syncookies=0")
    wanted = [(f"10.78.9.{i}", 8000 + i % len(PORTS)) for i in range(1, 201)]
    asked = "\n".join(f"{host} {port}" for host, port in wanted)
    with way.proxies() as both:
        both.lp.send_signal(signal.SIGSTOP)
        again = threading.Timer(1.5, both.lp.send_signal, [signal.SIGCONT])
        again.start()
        told = way.client("many", stdin=asked)
        again.join()
    assert sorted(tuple(it["asked"]) for it in told) == sorted(wanted)
    for it in told:
        assert it.get("server", "").startswith(said_of(it["asked"]) + " "), it


def test_nothing_is_tracked_and_so_nothing_forgotten(way: Road) -> None:
    """The kernel's table of connections plays no part: emptied, connections go on."""
    script = (
        "import socket\n"
        f"s = socket.create_connection(('{A}', 9000), 10)\n"
        "s.sendall(b'one')\n"
        "print(s.recv(3).decode(), flush=True)\n"
        "input()\n"
        "s.sendall(b'two')\n"
        "print(s.recv(3).decode(), flush=True)\n"
    )
    # Rules for which the kernel tracks connections.
    way.near.nft("table ip x { chain c { type filter hook output priority 0; ct state new; }; }")
    with way.proxies() as both, way.far.open_socket() as listener:
        listener.bind((A, 9000))
        listener.listen()
        with way.started("--", "python3", "-c", script) as program:
            sock, _ = listener.accept()
            with sock:
                assert sock.recv(3) == b"one"
                sock.sendall(b"1st")
                assert program.hears() == "1st\n"
                conntrack.flush(way.near)
                assert program.process.stdin
                print(file=program.process.stdin, flush=True)
                assert sock.recv(3) == b"two"
                sock.sendall(b"2nd")
                assert program.hears() == "2nd\n"
        both.settled()
    assert way.relayed() == [f"{A}:9000"]


def test_without_lp_it_is_refused_at_once(way: Road) -> None:
    done = way.bpf("--", *CLIENT, "ask", A, "8000")
    assert json.loads(done.stdout) == {"error": "ECONNREFUSED"}
    assert "nobody listens on 127.0.0.1:6003: until lp does, connections are refused" in done.stderr


def test_an_lp_of_ipv4_alone_is_named(way: Road) -> None:
    with way.proxies("--redirect", "6003"):
        done = way.bpf("--", *CLIENT, "ask", A6, "8000")
        assert json.loads(done.stdout) == {"error": "ECONNREFUSED"}
        assert "lp takes no IPv6" in done.stderr


def test_lp_may_come_back_meanwhile(way: Road) -> None:
    """Another lp, in whatever cgroup: nothing has to be told of it."""
    with way.started("--", *CLIENT, "obey") as program:
        assert program.hears() == "ready\n"
        for life in ("first", "second"):
            (way.tmp / life).mkdir()
            with replace(way, tmp=way.tmp / life).proxies():
                assert program.ask(A, 8000)["server"].startswith(f"{A} 8000 ")
            assert program.ask(A, 8000) == {"error": "ECONNREFUSED"}


def test_another_network_namespace_is_left_alone(way: Road) -> None:
    """A cgroup may reach into several; lp is in one."""
    with way.proxies() as both:
        done = way.bpf("--", "nsenter", f"--net={way.far.path}", *CLIENT, "ask", A, "8000")
        assert json.loads(done.stdout)["server"].startswith(f"{A} 8000 from ")
        both.settled()
    assert way.relayed() == []


def test_udp_goes_its_own_way(way: Road) -> None:
    with way.far.open_socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, way.proxies():
        sock.bind((A, 8000))
        sock.settimeout(10)
        script = f"import socket; s = socket.socket(type=2); s.connect(('{A}', 8000)); s.send(b'x')"
        assert way.bpf("--", "python3", "-c", script).returncode == 0
        assert sock.recvfrom(9)[1][0] == "10.77.0.1"


def test_the_host_of_rp_is_no_exception(way: Road) -> None:
    """Nobody but lp dials pipes: other servers beside rp are reached through them."""
    with way.proxies() as both:
        assert way.client("ask", RP, "8000")["server"].startswith(f"{RP} 8000 ")
        both.settled()
    assert way.relayed() == [f"{RP}:8000"]


def test_a_connection_that_only_claims_to_be_redirected_is_not(way: Road) -> None:
    with way.proxies() as both:
        with (
            pytest.raises(ConnectionResetError),
            way.near.connect(("127.0.0.1", 6003)) as sock,
        ):
            sock.recv(1)
        both.lp.expect("was not redirected here")
        equals("connections", way.relayed, [])
