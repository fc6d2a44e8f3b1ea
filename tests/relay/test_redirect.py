# SPDX-License-Identifier: MIT
"""Transparent redirection with nftables: unmodified programs go through lp.

    client (lp here) --- 10.1.0.0/24 --- rp's host --- 10.2.0.0/24 --- server

and, with lp on a router, for a machine behind it:

    laptop --- 10.3.0.0/24 --- client (lp, a router here) --- ...
"""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest

from tests.relay import conntrack, payload, records
from tests.relay.ends import echo, ending_of, read_exactly, read_to_end, serving, socks
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.programs import ROOT, finish
from tests.relay.proxies import Pair, pair
from tests.relay.servers import nginx
from tests.relay.waiting import equals, until

RP, SERVER = "10.1.0.2", "10.2.0.2"
GUIDE = ROOT / "docs" / "redirect.md"


def from_guide(title: str) -> str:
    """The nftables rules that docs/redirect.md prints under a heading."""
    found = re.search(
        rf"^## {title}$.*?^```nft$\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/redirect.md has no rules under {title}"
    return found[1]


@dataclass(frozen=True)
class Road:
    client: Namespace
    rp: Namespace
    server: Namespace
    wanted: str


@pytest.fixture
def road(box: Namespace, tmp_path: Path) -> Iterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    wanted = payload.write(root / "page", 2_500_000)
    with ExitStack() as stack:
        rp = stack.enter_context(namespace("rp"))
        server = stack.enter_context(namespace("server"))
        veth(box, "10.1.0.1/24", rp, f"{RP}/24", name="last")
        veth(rp, "10.2.0.1/24", server, f"{SERVER}/24", name="wide")
        rp.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        box.ip("route", "add", "default", "via", RP)
        server.ip("route", "add", "default", "via", "10.2.0.1")
        stack.enter_context(nginx(server, tmp_path, root, port=80, address=SERVER))
        yield Road(box, rp, server, wanted)


@contextmanager
def relayed(road: Road, tmp_path: Path, *lp: str) -> Iterator[tuple[Pair, Path]]:
    stats = tmp_path / "lp.jsonl"
    with pair(
        road.rp, tmp_path, lp=["--stats", str(stats), *lp], lp_ns=road.client, to=RP
    ) as proxies:
        yield proxies, stats


def fetch(ns: Namespace, tmp_path: Path, wanted: str) -> None:
    got = tmp_path / "got"
    argv = ["curl", "-sS", "--fail", "--max-time", "30", "-o", got, f"http://{SERVER}/page"]
    code, _, err = finish(argv, ns, 40)
    assert code == 0, err
    assert payload.file_digest(got) == wanted
    got.unlink()


def test_programs_of_this_machine(road: Road, tmp_path: Path) -> None:
    with relayed(road, tmp_path) as (_, stats):
        fetch(road.client, tmp_path, road.wanted)
        assert records.of(stats, "conn") == [], "nothing is redirected yet"
        road.client.nft(from_guide("Programs of this machine"))
        fetch(road.client, tmp_path, road.wanted)
        fetch(road.client, tmp_path, road.wanted)
        road.client.nft("delete table ip tm3")
        fetch(road.client, tmp_path, road.wanted)
    conns = records.of(stats, "conn")
    assert [c["dst"] for c in conns] == [f"{SERVER}:80"] * 2
    assert all(c["rx_bytes"] > 2_500_000 for c in conns)


def test_pipes_are_exempt_when_everything_is_redirected(road: Road, tmp_path: Path) -> None:
    """Every TCP connection but lp's own: the rules must not turn the pipes back to lp."""
    rules = from_guide("Every TCP connection")
    road.client.nft(rules)
    with relayed(road, tmp_path) as (_, stats):
        fetch(road.client, tmp_path, road.wanted)
    assert [c["dst"] for c in records.of(stats, "conn")] == [f"{SERVER}:80"]


def test_machines_behind_a_router(road: Road, tmp_path: Path) -> None:
    with namespace("laptop") as laptop:
        veth(laptop, "10.3.0.2/24", road.client, "10.3.0.1/24", name="lan")
        laptop.ip("route", "add", "default", "via", "10.3.0.1")
        with relayed(road, tmp_path, "--redirect", "10.3.0.1:6003") as (_, stats):
            road.client.nft(from_guide("Machines behind a router").replace('"lan0"', '"lan-r"'))
            fetch(laptop, tmp_path, road.wanted)
        assert [c["dst"] for c in records.of(stats, "conn")] == [f"{SERVER}:80"]


def test_a_connection_that_nobody_redirected_is_refused(road: Road, tmp_path: Path) -> None:
    """Somebody who connects to lp's port directly would make lp connect to itself."""
    with relayed(road, tmp_path) as (proxies, stats):
        argv = ["curl", "-sS", "--max-time", "5", "http://127.0.0.1:6003/"]
        code, _, err = finish(argv, road.client, 10)
        # The reset may come while curl connects, before it has sent, or after.
        assert code in (7, 52, 55, 56), f"curl ended with {code}: {err}"
        proxies.settled()
    assert records.of(stats, "conn") == []


def test_while_rp_is_away_redirected_programs_are_reset(road: Road, tmp_path: Path) -> None:
    road.client.nft(from_guide("Programs of this machine"))
    with relayed(road, tmp_path) as (proxies, _):
        fetch(road.client, tmp_path, road.wanted)
        proxies.rp.kill()
        proxies.lp.expect(r"lost|ended|gone|unreachable|refused|redial|again")
        argv = ["curl", "-sS", "--max-time", "10", f"http://{SERVER}/page"]
        code, _, err = finish(argv, road.client, 15)
        assert code in (7, 52, 55, 56), f"curl ended with {code}: {err}"


def test_the_baseline_cannot_carry_ipv6(box: Namespace, tmp_path: Path) -> None:
    """lp finds out where a redirected connection wanted to go, and says why it cannot."""
    box.ip("address", "add", "2001:db8::7/128", "dev", "lo", "nodad")
    options = ["--redirect", "6003", "--redirect", "[::1]:6003"]
    with pair(box, tmp_path, lp=options) as proxies:
        proxies.lp.expect(r"redirected connections on \[::1\]:6003")
        box.nft(from_guide("IPv6"))
        assert ending_of(box, 80, host="2001:db8::7").how == "reset"
        proxies.lp.expect("wants an IPv6 address, and rp was reached by the baseline")
        assert ending_of(box, 6003, host="::1").how == "reset"
        proxies.lp.expect("wants lp itself")


# --- the kernel forgets what it redirected -------------------------------------------------------

# Of a connection nothing but its first packet is redirected, as by `tm3ctl --with nftables`.
FIRST_PACKETS = """
table ip tm3 {
	chain output {
		type nat hook output priority -100; policy accept;
		tcp flags & (syn | ack) == syn tcp dport 443 redirect to :6003
	}
}
"""


@dataclass(frozen=True)
class Talk:
    """A redirected connection on which both ends have spoken."""

    program: socket.socket
    server: socket.socket

    def works(self) -> None:
        self.program.sendall(b"word")
        assert read_exactly(self.program, 4) == b"word"


@contextmanager
def talking(road: Road) -> Iterator[Talk]:
    servers: Queue[socket.socket] = Queue()

    def answer(sock: socket.socket) -> int:
        servers.put(sock)
        return echo(sock)

    with (
        serving(road.server, answer, (SERVER, 443)),
        road.client.connect((SERVER, 443)) as program,
    ):
        talk = Talk(program, servers.get(timeout=10))
        talk.works()
        yield talk


def ends_of_lp(ns: Namespace, port: int = 6003) -> list[str]:
    """Its ends of connections at that port, with their timers."""
    return ns.run("ss", "-Htno", "state", "established", f"sport = :{port}").splitlines()


def asked_after_s(ns: Namespace, port: int) -> int:
    """When the kernel will ask the only peer of lp at that port whether it is still there."""

    def timer() -> re.Match[str] | None:
        (line,) = ends_of_lp(ns, port)
        return re.search(r"timer:\(keepalive,(\d+)min(?:(\d+)sec)?,0\)", line)

    minutes, seconds = until("a timer of keepalive", timer).groups(default="0")
    return 60 * int(minutes) + int(seconds)


def forget(road: Road) -> None:
    """Once all is acknowledged: a late acknowledgement of the program's would speak first."""
    equals("bytes that lp waits for", lambda: ends_of_lp(road.client)[0].split()[1], "0")
    conntrack.flush(road.client)


def test_lp_asks_redirected_programs_early_whether_they_are_there(
    road: Road, tmp_path: Path
) -> None:
    road.client.nft(from_guide("Programs of this machine"))
    with relayed(road, tmp_path), talking(road):
        assert asked_after_s(road.client, 6003) <= 300
        with socks(road.client, SERVER, 443):
            assert asked_after_s(road.client, 1080) > 7000


def test_a_program_that_speaks_first_is_redirected_again(road: Road, tmp_path: Path) -> None:
    road.client.nft(from_guide("Programs of this machine"))
    with relayed(road, tmp_path) as (proxies, stats), talking(road) as talk:
        forget(road)
        talk.works()
        talk.program.close()
        proxies.settled()
    assert [conn["dst"] for conn in records.of(stats, "conn")] == [f"{SERVER}:443"]


def test_a_forgotten_connection_ends_at_lp_when_the_server_speaks(
    road: Road, tmp_path: Path
) -> None:
    """What lp sends reaches the program's machine untranslated, which resets it."""
    road.client.nft(from_guide("Programs of this machine"))
    with relayed(road, tmp_path) as (proxies, _), talking(road) as talk:
        forget(road)
        talk.server.sendall(b"news")
        equals("lp's ends", lambda: ends_of_lp(road.client), [])
        proxies.settled()
        talk.program.sendall(b"word")
        assert read_to_end(talk.program).how == "reset"


def test_a_forgotten_connection_ends_at_lp_when_nobody_speaks(road: Road, tmp_path: Path) -> None:
    """The program was reset by the server, which knows nothing of it; lp finds out by asking."""
    road.client.nft(FIRST_PACKETS)
    road.client.run("sysctl", "-q", "-w", "net.ipv4.tcp_keepalive_time=1")
    with relayed(road, tmp_path) as (proxies, _), talking(road) as talk:
        forget(road)
        talk.program.sendall(b"word")
        assert read_to_end(talk.program).how == "reset"
        equals("lp's ends", lambda: ends_of_lp(road.client), [])
        proxies.settled()
