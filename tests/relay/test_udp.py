# SPDX-License-Identifier: MIT
"""UDP through lp and rp: SOCKS5 UDP ASSOCIATE and --forward udp:, each with real sockets."""

import random
import select
import signal
import socket
import struct
import threading
from pathlib import Path

import pytest

from tests.relay import records
from tests.relay.datagrams import (
    LP,
    UDP_ASSOCIATE,
    answering,
    associated,
    grant,
    header,
    name_server,
)
from tests.relay.ends import read_exactly, read_to_end, serving, socks, socks_greet, socks_request
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, extended_pair, local_proxy, pair, remote_proxy
from tests.relay.test_extended import rp_that_knows
from tests.relay.waiting import equals, until

NO_SUCH_COMMAND = 7
UNREACHABLE_NETWORK = 3
# A message has 4,104 bytes: 8 are its header, 7 the head of a DATAGRAM, 4 an IPv4 address.
LARGEST = 4104 - 8 - 7
LARGEST_TO_IPV4 = LARGEST - 4


def udp(ns: Namespace) -> socket.socket:
    sock = ns.open_socket(kind=socket.SOCK_DGRAM)
    sock.settimeout(10)
    return sock


def counted(stats: Path, name: str) -> int:
    """From the record at a session's end."""
    return int(records.of(stats, "counters")[-1][name])


def last_conn(stats: Path, protocol: str = "udp") -> records.Record:
    found = [r for r in records.of(stats, "conn") if r["protocol"] == protocol]
    return found[-1] if found else {}


# --- SOCKS5 -----------------------------------------------------------------


def test_answers_come_back(box: Namespace, tmp_path: Path) -> None:
    stats = tmp_path / "rp.jsonl"
    with answering(box) as one, answering(box) as two:
        with extended_pair(box, tmp_path, rp=records.soon(stats)), associated(box) as client:
            for number in range(200):
                server = (one, two)[number % 2]
                client.send(b"%d" % number, "127.0.0.1", server.port)
                assert client.receive() == (("127.0.0.1", server.port), b"%d" % number)
            assert client.ask(b"", "127.0.0.1", one.port) == b""
        # Both servers see one socket of rp's, as they would see a program's own.
        assert len({*one.clients, *two.clients}) == 1
    assert last_conn(stats)["dst"] == "any"
    assert last_conn(stats)["end"] == "peer-fin"
    assert counted(stats, "datagrams_received") == counted(stats, "datagrams_sent") == 201
    assert counted(stats, "datagrams_stray") == 0


def test_first_datagrams_of_many_associations(box: Namespace, tmp_path: Path) -> None:
    """None of them overtakes the OPEN of its flow, whatever pipes there are."""
    with answering(box) as server, extended_pair(box, tmp_path, pipes=8):
        for number in range(50):
            with associated(box) as client:
                assert client.ask(b"%d" % number, "127.0.0.1", server.port) == b"%d" % number


def test_names_and_ipv6(box: Namespace, tmp_path: Path) -> None:
    hosts = ("127.0.0.1 four.example", "::1 six.example")
    with (
        answering(box) as four,
        answering(box, address=("::1", 0)) as six,
        rp_that_knows(box, tmp_path, *hosts),
        local_proxy(box, tmp_path),
        associated(box) as client,
    ):
        for host, seen, server in (
            ("four.example", "127.0.0.1", four),
            ("six.example", "::1", six),
            ("::1", "::1", six),
            ("::ffff:127.0.0.1", "127.0.0.1", four),
        ):
            client.send(host.encode(), host, server.port)
            assert client.receive() == ((seen, server.port), host.encode())
        client.send(b"lost", "no-such-name.invalid", four.port)
        assert client.ask(b"on it goes", "four.example", four.port) == b"on it goes"


def test_a_name_that_was_looked_up_is_known(box: Namespace, tmp_path: Path) -> None:
    """Sixty packets a second to a name are not sixty questions."""
    with (
        answering(box) as server,
        rp_that_knows(box, tmp_path, "127.0.0.1 known.example"),
        local_proxy(box, tmp_path),
        associated(box) as client,
    ):
        assert client.ask(b"x", "known.example", server.port) == b"x"
        (tmp_path / "hosts").write_text("127.0.0.9 known.example new.example\n")
        for _ in range(100):
            assert client.ask(b"x", "known.example", server.port) == b"x"
        client.send(b"nobody is there", "new.example", server.port)
        assert client.hears_nothing()


def test_ends_with_its_connection(box: Namespace, tmp_path: Path) -> None:
    with answering(box) as server, extended_pair(box, tmp_path) as proxies:
        with associated(box) as client:
            assert client.ask(b"x", "127.0.0.1", server.port) == b"x"
            assert proxies.rp.fd_count() == proxies.rp_fds + 1
            port = client.lp[1]
            client.control.sendall(b"what is said here means nothing")
            assert client.ask(b"y", "127.0.0.1", server.port) == b"y"
        proxies.settled()
        with udp(box) as late:
            late.connect(("127.0.0.1", port))
            late.send(header("127.0.0.1", server.port) + b"late")
            with pytest.raises(ConnectionRefusedError):
                late.recv(100)
        assert server.heard[-1] == b"y"


def test_garbage_and_fragments_are_dropped(box: Namespace, tmp_path: Path) -> None:
    rng = random.Random(7)
    with answering(box) as server, extended_pair(box, tmp_path) as proxies, associated(box) as it:
        whole = header("127.0.0.1", server.port)
        wrong = [whole[:length] for length in range(len(whole))]
        wrong += [header("127.0.0.1", server.port, fragment) + b"f" for fragment in (1, 127, 255)]
        wrong += [b"\0\1" + whole[2:], b"\0\0\0\2" + whole[4:], header("127.0.0.1", 0)]
        wrong += [b"\0\0\0\3\0\0\x35", b"\0\0\0\3\3a\0b\0\x35", b"\0\0\0\3\xff" + b"x" * 200]
        wrong += [b"\xff" + rng.randbytes(rng.randrange(100)) for _ in range(100)]
        for data in wrong:
            it.sock.sendto(data, it.lp)
        assert it.ask(b"sound", "127.0.0.1", server.port) == b"sound"
        assert server.heard == [b"sound"]
        proxies.lp.send_signal(signal.SIGUSR1)
        proxies.lp.expect("SOCKS5 datagrams dropped: 0 of others than the client, 3 fragments")


def test_only_its_client_is_heard(box: Namespace, tmp_path: Path) -> None:
    box.ip("address", "add", "10.9.0.1/32", "dev", "lo")
    with answering(box) as server, extended_pair(box, tmp_path), udp(box) as other:
        data = header("127.0.0.1", server.port) + b"other"
        with associated(box) as client:
            assert client.ask(b"x", "127.0.0.1", server.port) == b"x"
            other.sendto(data, client.lp)  # another port of its host
            with udp(box) as elsewhere:
                elsewhere.bind(("10.9.0.1", 0))
                elsewhere.sendto(data, client.lp)
            assert client.ask(b"y", "127.0.0.1", server.port) == b"y"
        with associated(box, said=("0.0.0.0", other.getsockname()[1])) as named:
            named.send(b"not from the port that was named", "127.0.0.1", server.port)
            other.sendto(data, named.lp)
            assert other.recv(100) == data
        assert server.heard == [b"x", b"y", b"other"]


def test_client_over_ipv6(box: Namespace, tmp_path: Path) -> None:
    with (
        answering(box) as server,
        extended_pair(box, tmp_path, lp=["--socks", "[::1]:1080"]),
        associated(box, ("::1", 1080), ("::", 0)) as client,
    ):
        assert client.ask(b"x", "127.0.0.1", server.port) == b"x"


def test_size(box: Namespace, tmp_path: Path) -> None:
    """What does not fit into a message is dropped, either way; the next one is not."""
    stats, rp_stats = tmp_path / "lp.jsonl", tmp_path / "rp.jsonl"
    rng = random.Random(3)
    with answering(box, lambda data: rng.randbytes(int(data.split()[0]))) as server:
        with (
            extended_pair(box, tmp_path, lp=records.soon(stats), rp=records.soon(rp_stats)) as both,
            associated(box) as client,
        ):
            for size in (0, 1, 1472, 1473, LARGEST_TO_IPV4):
                assert len(client.ask(b"%d" % size, "127.0.0.1", server.port)) == size
            for size in (LARGEST_TO_IPV4 + 1, LARGEST, 4097, 65507):
                client.send(b"%d" % size, "127.0.0.1", server.port)
                assert client.ask(b"7", "127.0.0.1", server.port) is not None
            client.send(b"8 ".ljust(LARGEST_TO_IPV4), "127.0.0.1", server.port)
            assert len(client.receive()[1]) == 8
            client.send(b"8 ".ljust(LARGEST_TO_IPV4 + 1), "127.0.0.1", server.port)
            client.send(b"8 ".ljust(65000), "127.0.0.1", server.port)
            assert len(client.ask(b"9", "127.0.0.1", server.port)) == 9
            for proxy in (both.rp, both.lp):
                assert len(proxy.lines("a datagram was dropped, because no message")) == 1
    assert counted(stats, "datagrams_large") == 2
    assert counted(rp_stats, "datagrams_large") == 4


def test_a_burst_keeps_its_order(box: Namespace, tmp_path: Path) -> None:
    """One pipe, since nothing puts datagrams of several pipes in order."""
    burst = [b"%03d" % number + b"x" * (number % 3) * 500 for number in range(50)]
    with (
        answering(box) as server,
        extended_pair(box, tmp_path, pipes=1),
        associated(box) as client,
    ):
        assert client.ask(b"is there", "127.0.0.1", server.port) == b"is there"
        for _ in range(20):
            for payload in burst:
                client.send(payload, "127.0.0.1", server.port)
            assert [client.receive()[1] for _ in burst] == burst
        assert server.heard == [b"is there", *burst * 20]


def test_one_that_cannot_be_sent_takes_no_other_with_it(box: Namespace, tmp_path: Path) -> None:
    """rp's socket refuses what goes to a network that is not there; the rest of the burst goes."""
    stats = tmp_path / "rp.jsonl"
    burst = [b"%03d" % number for number in range(40)]
    with answering(box) as server:
        with (
            extended_pair(box, tmp_path, rp=records.soon(stats), pipes=1),
            associated(box) as client,
        ):
            assert client.ask(b"is there", "127.0.0.1", server.port) == b"is there"
            for number, payload in enumerate(burst):
                if number % 10 == 5:
                    client.send(b"nobody", "203.0.113.1", 9)
                client.send(payload, "127.0.0.1", server.port)
            assert [client.receive()[1] for _ in burst] == burst
        assert server.heard == [b"is there", *burst]
    assert counted(stats, "datagrams_unsent") == 4
    assert counted(stats, "datagrams_received") == 1 + len(burst) + 4
    assert counted(stats, "datagrams_sent") == 1 + len(burst)


def test_flow_begins_again_in_the_next_session(box: Namespace, tmp_path: Path) -> None:
    with answering(box) as server, local_proxy(box, tmp_path, ready="SOCKS5 on") as lp:
        with remote_proxy(box, tmp_path, *LISTEN, name="first"):
            lp.expect("4 pipes to 127.0.0.1:6010 are up")
            control = socks_greet(box)
            control.sendall(socks_request("0.0.0.0", 0, command=UDP_ASSOCIATE))
            code, at = grant(control)
            assert code == 0
            sock = udp(box)
            sock.sendto(header("127.0.0.1", server.port) + b"one", at)
            assert sock.recv(100).endswith(b"one")
        with remote_proxy(box, tmp_path, *LISTEN, name="second"):
            lp.expect("4 pipes to 127.0.0.1:6010 are up", count=2)
            sock.sendto(header("127.0.0.1", server.port) + b"two", at)
            assert sock.recv(100).endswith(b"two")
        sock.close()
        control.close()


def refused(ns: Namespace) -> int:
    with socks_greet(ns) as control:
        control.sendall(socks_request("0.0.0.0", 0, command=UDP_ASSOCIATE))
        code, _ = grant(control)
        assert read_to_end(control, 5).how in ("eof", "reset")
    return code


@pytest.mark.parametrize(
    ("rp", "why"),
    [
        ((), "baseline, which carries TCP alone"),
        ((*LISTEN, "--udp", "off"), "this rp does not carry UDP"),
    ],
)
def test_refused_where_rp_does_not(
    box: Namespace, tmp_path: Path, rp: tuple[str, ...], why: str
) -> None:
    with pair(box, tmp_path, rp=rp) as proxies:
        assert refused(box) == NO_SUCH_COMMAND
        proxies.lp.expect(f"refused a SOCKS5 UDP ASSOCIATE: .*{why}")
        assert refused(box) == NO_SUCH_COMMAND
        assert len(proxies.lp.lines("UDP ASSOCIATE")) == 1, "a line for each is a flood"


def test_refused_without_rp(box: Namespace, tmp_path: Path) -> None:
    with local_proxy(box, tmp_path, ready="SOCKS5 on"):
        assert refused(box) == UNREACHABLE_NETWORK


# --- the rules --------------------------------------------------------------


def test_each_address_is_held_against_the_rules(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    near, far = two
    for address in ("10.5.0.1/32", "10.6.0.1/32", "10.7.0.1/32"):
        far.ip("address", "add", address, "dev", "lo")
    stats = tmp_path / "rp.jsonl"
    rules = ["--permit", "10.5.0.0/16", "--permit", "10.7.0.1"]
    options = ["--extended", "0.0.0.0", *rules, *records.soon(stats)]
    with answering(far, address=("0.0.0.0", 0)) as server:
        with (
            pair(far, tmp_path, rp=options, lp_ns=near, to="10.77.0.2") as proxies,
            associated(near) as client,
        ):
            for host in ("10.6.0.1", "127.0.0.1", "169.254.169.254", "224.0.0.1", "::1"):
                client.send(b"denied", host, server.port)
            assert client.ask(b"x", "10.5.0.1", server.port) == b"x"
            proxies.rp.expect(r"datagrams for 10\.6\.0\.1:\d+ denied: ")
            assert server.heard == [b"x"]
            # Who may be reached is heard, also uncalled; who may not is not.
            rp_port = server.clients[0][1]
            with udp(far) as stranger, udp(far) as friend:
                stranger.bind(("10.6.0.1", 0))
                friend.bind(("10.7.0.1", 0))
                stranger.sendto(b"stranger", ("10.5.0.1", rp_port))
                friend.sendto(b"friend", ("10.5.0.1", rp_port))
                assert client.receive() == (("10.7.0.1", friend.getsockname()[1]), b"friend")
        assert counted(stats, "datagrams_denied") == 6


def test_a_name_is_no_way_around_the_rules(box: Namespace, tmp_path: Path) -> None:
    box.ip("address", "add", "10.5.0.1/32", "dev", "lo")
    hosts = ("10.5.0.1 both.example", "127.0.0.1 both.example", "10.5.0.1 denied.example")
    with (
        answering(box, address=("0.0.0.0", 0)) as server,
        rp_that_knows(box, tmp_path, *hosts, rp=("--deny", "10.5.0.1")),
        local_proxy(box, tmp_path),
        associated(box) as client,
    ):
        client.send(b"denied", "denied.example", server.port)
        client.send(b"x", "both.example", server.port)
        assert client.receive() == (("127.0.0.1", server.port), b"x")
        assert server.heard == [b"x"]


def test_rp_is_no_destination(box: Namespace, tmp_path: Path) -> None:
    with answering(box) as server, extended_pair(box, tmp_path) as proxies, associated(box) as it:
        it.send(b"x", "127.0.0.1", 6000)
        assert it.ask(b"y", "127.0.0.1", server.port) == b"y"
        proxies.rp.expect("127.0.0.1:6000 denied: it is where rp itself listens")


# --- --forward udp: ---------------------------------------------------------


def test_forward(box: Namespace, tmp_path: Path) -> None:
    """Each client has a flow, and hears its own answers alone."""
    with (
        answering(box) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", f"udp:7000:127.0.0.1:{server.port}"]
        ) as proxies,
    ):
        proxies.lp.expect(rf"forwarding UDP at 127\.0\.0\.1:7000 to 127\.0\.0\.1:{server.port}")
        clients = [udp(box) for _ in range(20)]
        for client in clients:
            client.connect(("127.0.0.1", 7000))
        for number in range(3):
            for index, client in enumerate(clients):
                client.send(b"%d of %d" % (number, index))
            for index, client in enumerate(clients):
                assert client.recv(100) == b"%d of %d" % (number, index)
        assert len(set(server.clients)) == 20
        for client in clients:
            client.close()
        proxies.lp.stop()  # the flows of clients that are gone end with it


@pytest.mark.parametrize(
    ("at", "address"),
    [("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "127.0.0.2"), ("[::]", "::1"), ("[::]", "2001:db8::1")],
)
def test_answers_come_from_where_one_sent_to(
    box: Namespace, tmp_path: Path, at: str, address: str
) -> None:
    """A client that is connected, as a resolver's is, hears nothing from another address. One pipe,
    since nothing puts datagrams of several pipes in order."""
    box.ip("address", "add", "2001:db8::1/128", "dev", "lo", "nodad")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        answering(box) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", f"udp:{at}:7000:127.0.0.1:{server.port}"], pipes=1
        ) as proxies,
        box.open_socket(family, socket.SOCK_DGRAM) as client,
    ):
        client.settimeout(10)
        client.bind(("::1" if ":" in address else "127.0.0.1", 0))
        client.connect((address, 7000))
        for size in (1, 1200, 1200, 1200, 5):
            client.send(bytes(size))
        for size in (1, 1200, 1200, 1200, 5):
            assert client.recv(2000) == bytes(size)
        proxies.lp.stop()


def test_forward_to_a_name_with_a_program(box: Namespace, tmp_path: Path) -> None:
    """The system's own resolver asks a name server behind rp."""
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:10 attempts:1\n")
    with (
        answering(box, name_server("192.0.2.99"), ("127.0.0.2", 53)),
        rp_that_knows(box, tmp_path, "127.0.0.2 dns.example"),
        local_proxy(box, tmp_path, "--forward", "udp:53:dns.example:53"),
    ):
        script = (
            'mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && '
            "exec getent -s hosts:dns hosts www.example"
        )
        said = box.run("unshare", "--mount", "--", "sh", "-c", script, str(resolv))
        assert said.split()[0] == "192.0.2.99", said


def test_forward_to_nobody(box: Namespace, tmp_path: Path) -> None:
    """An ICMP error ends the flow; when somebody is there a new one works."""
    stats = tmp_path / "rp.jsonl"
    with udp(box) as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    with (
        extended_pair(
            box, tmp_path, rp=records.soon(stats), lp=["--forward", f"udp:7000:127.0.0.1:{port}"]
        ) as proxies,
        udp(box) as client,
    ):
        client.connect(("127.0.0.1", 7000))
        client.send(b"x")
        until("the flow's end", lambda: last_conn(stats).get("end") == "refused")
        with answering(box, address=("127.0.0.1", port)):
            client.send(b"y")
            assert client.recv(100) == b"y"
            client.send(b"")
            assert client.recv(100) == b""
        proxies.lp.stop()


@pytest.mark.parametrize(
    ("host", "end"),
    [("10.5.0.1", "denied"), ("no-such-name.invalid", "no-name"), ("10.9.1.1", "unreachable")],
)
def test_forward_that_cannot_be(box: Namespace, tmp_path: Path, host: str, end: str) -> None:
    stats = tmp_path / "rp.jsonl"
    with (
        extended_pair(
            box,
            tmp_path,
            rp=["--deny", "10.5.0.1", *records.soon(stats)],
            lp=["--forward", f"udp:7000:{host}:53"],
        ),
        udp(box) as client,
    ):
        client.sendto(b"x", ("127.0.0.1", 7000))
        until(
            f"the end of a flow that is {end}",
            lambda: last_conn(stats).get("end") == end,
            20,
        )
        assert last_conn(stats)["connected"] is None


def test_forward_hears_its_server_alone(box: Namespace, tmp_path: Path) -> None:
    with (
        answering(box) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", f"udp:7000:127.0.0.1:{server.port}"]
        ) as proxies,
        udp(box) as client,
        udp(box) as stranger,
    ):
        client.connect(("127.0.0.1", 7000))
        client.send(b"x")
        assert client.recv(100) == b"x"
        stranger.sendto(b"stranger", server.clients[0])
        client.send(b"y")
        assert client.recv(100) == b"y"
        proxies.lp.stop()


def test_more_clients_than_may_be(box: Namespace, tmp_path: Path) -> None:
    """Who was silent longest makes room, and is taken back when it sends again."""
    most = 512
    with (
        answering(box) as server,
        extended_pair(
            box, tmp_path, lp=["--forward", f"udp:7000:127.0.0.1:{server.port}"]
        ) as proxies,
    ):
        clients = [udp(box) for _ in range(most + 1)]
        for index, client in enumerate([*clients, clients[0]]):
            client.connect(("127.0.0.1", 7000))
            client.send(b"%d" % index)
            assert client.recv(100) == b"%d" % index
        equals("rp's descriptors", proxies.rp.fd_count, proxies.rp_fds + most)
        assert len(set(server.clients)) == most + 2
        for client in clients:
            client.close()
        proxies.lp.stop()


def test_port_in_use(box: Namespace, tmp_path: Path) -> None:
    with udp(box) as taken:
        taken.bind(("127.0.0.1", 7000))
        options = ("--forward", "udp:7000:127.0.0.1:9")
        with local_proxy(box, tmp_path, *options, ready="cannot take datagrams", status=2):
            pass


# --- beside others ----------------------------------------------------------


def test_beside_bulk(box: Namespace, tmp_path: Path) -> None:
    """A bulk fills all pipes both ways; every question is answered meanwhile."""
    stop = threading.Event()

    def flood(sock: socket.socket) -> int:
        block = b"\0" * 65536
        sock.setblocking(False)
        moved = 0
        while not stop.is_set():
            can_read, can_write, _ = select.select([sock], [sock], [], 0.5)
            if can_read:
                data = sock.recv(65536)
                if not data:
                    break
                moved += len(data)
            if can_write:
                moved += sock.send(block)
        return moved

    with serving(box, flood) as bulk, answering(box) as server, extended_pair(box, tmp_path):
        with socks(box, "127.0.0.1", bulk.port) as sock, associated(box) as client:
            thread = threading.Thread(target=flood, args=(sock,))
            thread.start()
            try:
                for number in range(100):
                    payload = struct.pack("!I", number) + bytes(200)
                    assert client.ask(payload, "127.0.0.1", server.port) == payload
            finally:
                stop.set()
                thread.join()
            # Both ends stop before one of them closes, which resets what it has not read.
            assert isinstance(bulk.results.get(timeout=20), int)


def test_floods_are_bounded(box: Namespace, tmp_path: Path) -> None:
    """More than the pipes take: some of it is lost and counted, and nothing grows."""
    stats = tmp_path / "lp.jsonl"
    with (
        answering(box, lambda _: None) as server,
        answering(box) as mirror,
        extended_pair(box, tmp_path, lp=records.soon(stats), asan=False) as proxies,
        associated(box) as client,
    ):
        assert client.ask(b"x", "127.0.0.1", mirror.port) == b"x"
        before = proxies.lp.rss_kib(), proxies.rp.rss_kib()
        for _ in range(20_000):
            client.send(bytes(1200), "127.0.0.1", server.port)
        until(
            "an answer",
            lambda: not (client.send(b"y", "127.0.0.1", mirror.port) or client.hears_nothing(0.2)),
        )
        after = proxies.lp.rss_kib(), proxies.rp.rss_kib()
        assert max(after[0] - before[0], after[1] - before[1]) < 8192


def test_control_of_another_kind_is_not_an_association(box: Namespace, tmp_path: Path) -> None:
    """BIND is refused as before, also by an lp that carries UDP."""
    with extended_pair(box, tmp_path), socks_greet(box, LP) as control:
        control.sendall(socks_request("127.0.0.1", 80, command=2))
        assert read_exactly(control, 2) == bytes([5, NO_SUCH_COMMAND])
