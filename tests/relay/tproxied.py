# SPDX-License-Identifier: MIT
"""What tests of lp --tproxy and tm3ctl --udp share.

near (lp, tm3ctl, programs) --- 10.77.0.0/24, 2001:db8:77::/64 --- far (rp, servers at addresses of
its own)
"""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.netns import Namespace
from tests.relay.programs import ROOT, Program, finish
from tests.relay.proxies import local_proxy, remote_proxy

TM3CTL = ROOT / "kmod" / "tm3ctl"
NEAR, RP = "10.77.0.1", "10.77.0.2"
SERVERS = {"IPv4": "10.8.0.1", "IPv6": "2001:db8:8::1"}
OTHER_SERVER = "10.8.0.2"
MAY = ("--allow", f"{NEAR}/32", "--permit", "10.8.0.0/16", "--permit", "2001:db8:8::/64")
WAYS_IN = ("--tproxy", "6003", "--tproxy", "[::1]:6003")
Two = tuple[Namespace, Namespace]


ATTEMPT = """
table inet attempt {
	chain prerouting {
		type filter hook prerouting priority mangle; policy accept;
		meta nfproto ipv4 meta l4proto udp tproxy ip to 127.0.0.1:6003
	}
}
"""


def needed(ns: Namespace) -> None:
    """Skips where the kernel has no tproxy."""
    tried = subprocess.run(
        ns.command(["nft", "-c", "-f", "-"]), input=ATTEMPT, capture_output=True, text=True
    )
    if "No such file" in tried.stderr:
        pytest.skip(f"this kernel has no nft_tproxy: {tried.stderr.splitlines()[0]}")
    assert tried.returncode == 0, tried.stderr


def prepare(two: Two) -> None:
    """Addresses and routes; skips where the kernel has no tproxy."""
    near, far = two
    needed(near)
    for address in (*SERVERS.values(), OTHER_SERVER):
        far.ip("address", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
    near.ip("address", "add", "2001:db8:77::1/64", "dev", "wire-l", "nodad")
    far.ip("address", "add", "2001:db8:77::2/64", "dev", "wire-r", "nodad")
    near.ip("route", "add", "default", "via", RP)
    near.ip("-6", "route", "add", "default", "via", "2001:db8:77::2")


def tm3ctl(ns: Namespace, *args: str, status: int = 0) -> str:
    code, out, err = finish([TM3CTL, *args], ns, 20)
    assert code == status, f"tm3ctl {args} ended with {code}: {out}{err}"
    assert (err == "") == (status == 0), err
    return out + err


@contextmanager
def relayed(lane: Two, tmp_path: Path, *lp: str) -> Iterator[Program]:
    near, far = lane
    with (
        remote_proxy(far, tmp_path, *MAY),
        local_proxy(near, tmp_path, *WAYS_IN, *lp, to=RP) as local,
    ):
        local.expect(rf"4 pipes to {RP}:6010 are up")
        yield local


def program_to(ns: Namespace, address: str, port: int) -> socket.socket:
    """A program's connected socket, which hears nobody but who it is connected to."""
    sock = ns.open_socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(10)
    sock.connect((address, port))
    return sock


def ask(sock: socket.socket, payload: bytes) -> bytes:
    sock.send(payload)
    return sock.recv(65536)


def figures(lp: Program, way_in: str = r"127\.0\.0\.1:6003") -> list[int]:
    """Flows, sockets for answers, and what was dropped, as lp says on SIGUSR1."""
    pattern = rf"UDP redirected to {way_in}: "
    before = len(lp.lines(pattern))
    lp.send_signal(signal.SIGUSR1)
    line = lp.expect(pattern, count=before + 1)
    return [int(number) for number in re.findall(r"\d+", re.split(pattern, line)[1])]


def left_of(ns: Namespace) -> str:
    """All that tm3ctl could have left behind."""
    tables = [ns.ip(family, "route", "show", "table", "all") for family in ("-4", "-6")]
    marked = [line for table in tables for line in table.splitlines() if "7463" in line]
    rules = ns.ip("-4", "rule") + ns.ip("-6", "rule")
    marked += [line for line in rules.splitlines() if "7463" in line]
    return ns.run("nft", "list", "ruleset") + "".join(marked)
