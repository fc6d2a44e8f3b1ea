# SPDX-License-Identifier: MIT
"""Programs are told how large a packet may be behind rp.

near (lp, tm3ctl, programs) --- far (rp) --- 1500 --- router --- 1400 --- end (servers)
"""

import errno
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import records
from tests.relay.datagrams import answering, associated
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.programs import Program, binary
from tests.relay.programs import program as started
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.tproxied import MAY, RP, WAYS_IN, Two, ask, program_to, tm3ctl
from tests.relay.waiting import equals, until

ENDS = {"IPv4": "10.8.0.9", "IPv6": "2001:db8:8::9"}
NARROW = 1400
HEADS = {"IPv4": 28, "IPv6": 48}
FULL = {family: 1500 - heads for family, heads in HEADS.items()}
FITS = {family: NARROW - heads for family, heads in HEADS.items()}
# level, IP_MTU_DISCOVER, IP_MTU; of Linux
OPTIONS = {"IPv4": (socket.IPPROTO_IP, 10, 14), "IPv6": (socket.IPPROTO_IPV6, 23, 24)}
DONT, WANT, DO, PROBE = range(4)


@contextmanager
def narrow_path(far: Namespace) -> Iterator[Namespace]:
    """Servers' namespace behind a router whose link to it is narrower."""
    with namespace("router") as router, namespace("end") as end:
        for ns in (far, router, end):  # or a new link carries nothing for up to 2 s
            ns.run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
        veth(far, "10.81.0.1/24", router, "10.81.0.2/24", name="wide")
        veth(router, "10.82.0.1/24", end, "10.82.0.2/24", name="thin")
        for ns, device, address in (
            (far, "wide-l", "2001:db8:81::1/64"),
            (router, "wide-r", "2001:db8:81::2/64"),
            (router, "thin-l", "2001:db8:82::1/64"),
            (end, "thin-r", "2001:db8:82::2/64"),
        ):
            ns.ip("address", "add", address, "dev", device, "nodad")
        for ns, device in ((router, "thin-l"), (end, "thin-r")):
            ns.ip("link", "set", device, "mtu", str(NARROW))
        router.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        for family, flag, first, second in (
            ("IPv4", "-4", "10.81.0.2", "10.82.0.2"),
            ("IPv6", "-6", "2001:db8:81::2", "2001:db8:82::2"),
        ):
            end.ip("address", "add", ENDS[family], "dev", "lo")
            far.ip(flag, "route", "add", ENDS[family], "via", first)
            router.ip(flag, "route", "add", ENDS[family], "via", second)
        end.ip("route", "add", "default", "via", "10.82.0.1")
        end.ip("-6", "route", "add", "default", "via", "2001:db8:82::1")
        yield end


@contextmanager
def redirected(lane: Two, tmp_path: Path, *lp: str, rp: tuple[str, ...] = ()) -> Iterator[Program]:
    near, far = lane
    with (
        remote_proxy(far, tmp_path, *MAY, *rp),
        local_proxy(near, tmp_path, *WAYS_IN, *lp, to=RP) as local,
    ):
        local.expect(rf"4 pipes to {RP}:6010 are up")
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        yield local


def program(ns: Namespace, family: str, port: int, discover: int) -> socket.socket:
    sock = program_to(ns, ENDS[family], port)
    level, option, _ = OPTIONS[family]
    sock.setsockopt(level, option, discover)
    return sock


def knows(sock: socket.socket, family: str) -> int:
    level, _, option = OPTIONS[family]
    return sock.getsockopt(level, option)


def counted(stats: Path, name: str) -> int:
    return int(records.of(stats, "counters")[-1][name])


def told(lp: Program) -> tuple[int, int]:
    """How often lp told programs, and how often it could not."""
    pattern = r"^programs told how large a packet .*: (\d+) times?; (\d+) times? that failed"
    end = r"^  of the extension: "  # printed behind it
    before = len(lp.lines(end))
    lp.send_signal(signal.SIGUSR1)
    lp.expect(end, count=before + 1)
    lines = lp.lines(pattern)
    found = re.search(pattern, lines[-1]) if lines else None
    return (int(found[1]), int(found[2])) if found else (0, 0)


def insist(sock: socket.socket, payload: bytes) -> None:
    """As a program that knows nothing of it, and sends what was lost again."""
    sock.settimeout(0.2)

    def answered() -> bool:
        try:
            return ask(sock, payload) == payload
        except TimeoutError:
            return False
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            return False

    until("an answer", answered)
    sock.settimeout(10)


@pytest.mark.parametrize("family", ENDS)
def test_program_that_forbids_fragments_is_told(lane: Two, tmp_path: Path, family: str) -> None:
    near, far = lane
    full, fits = bytes(FULL[family]), bytes(FITS[family])
    stats = tmp_path / "lp.stats"
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS[family], 0)) as server,
        redirected(lane, tmp_path, "--stats", str(stats)),
        program(near, family, server.port, DO) as sock,
    ):
        assert ask(sock, fits) == fits
        assert knows(sock, family) == 1500
        sock.send(full)
        equals("the path's MTU", lambda: knows(sock, family), NARROW)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EMSGSIZE
        with pytest.raises(OSError, match="Message too long"):
            sock.send(bytes(len(fits) + 1))
        assert ask(sock, fits) == fits
        # The kernel knows it of this destination: another program need not find it out.
        with program(near, family, server.port, DO) as other:
            assert knows(other, family) == NARROW
            with pytest.raises(OSError, match="Message too long"):
                other.send(full)
            assert ask(other, fits) == fits
        assert full not in server.heard
    assert counted(stats, "too_big") == 1


@pytest.mark.parametrize("family", ENDS)
def test_program_that_lets_the_kernel_decide(lane: Two, tmp_path: Path, family: str) -> None:
    """One datagram is lost; then its kernel knows the MTU, and fragments what is larger."""
    near, far = lane
    full = bytes(FULL[family])
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS[family], 0)) as server,
        redirected(lane, tmp_path) as lp,
        program(near, family, server.port, WANT) as sock,
    ):
        insist(sock, full)
        assert knows(sock, family) == NARROW
        for _ in range(20):
            assert ask(sock, full) == full
        assert told(lp) == (1, 0)


def test_program_that_probes(lane: Two, tmp_path: Path) -> None:
    """It takes no notice of ICMP, as QUIC does: what is too large has to be lost, each time."""
    near, far = lane
    full, fits = bytes(FULL["IPv4"]), bytes(FITS["IPv4"])
    stats = tmp_path / "rp.stats"
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS["IPv4"], 0)) as server,
        redirected(lane, tmp_path, rp=("--stats", str(stats))) as lp,
        program(near, "IPv4", server.port, PROBE) as sock,
    ):
        for count in range(1, 5):
            sock.send(full)
            # They are told 100 ms apart, and this one is about the last.
            equals("how often it was told", lambda: told(lp)[0], count)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EMSGSIZE
            assert ask(sock, fits) == fits
            time.sleep(0.1)
        assert full not in server.heard
    # The first one left rp, and the router dropped it.
    assert counted(stats, "datagrams_narrow") == 3
    assert counted(stats, "datagrams_unsent") == 0
    assert counted(stats, "too_big") == 4


def test_program_that_allows_fragments(lane: Two, tmp_path: Path) -> None:
    """Its packets have no Don't Fragment, and rp may fragment them once it knows the path."""
    near, far = lane
    full = bytes(FULL["IPv4"])
    stats = tmp_path / "rp.stats"
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS["IPv4"], 0)) as server,
        redirected(lane, tmp_path, rp=("--stats", str(stats))),
        program(near, "IPv4", server.port, DONT) as sock,
    ):
        insist(sock, full)
        for _ in range(20):
            assert ask(sock, full) == full
    assert counted(stats, "datagrams_narrow") == 0


def test_socks_has_fragments(lane: Two, tmp_path: Path) -> None:
    """Nobody can tell its client, so nothing is dropped on account of it."""
    near, far = lane
    stats = tmp_path / "rp.stats"
    full = bytes(FULL["IPv4"])
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS["IPv4"], 0)) as server,
        remote_proxy(far, tmp_path, *MAY, "--stats", str(stats)),
        local_proxy(near, tmp_path, to=RP) as lp,
    ):
        lp.expect("are up")
        with associated(near) as client:

            def answered() -> bool:
                client.send(full, ENDS["IPv4"], server.port)
                return not client.hears_nothing(0.2)

            until("an answer", answered)
            for _ in range(20):
                assert client.ask(full, ENDS["IPv4"], server.port) == full
    assert counted(stats, "datagrams_narrow") == 0


def test_without_the_right_nothing_is_dropped(lane: Two, tmp_path: Path) -> None:
    """An lp that has no raw socket cannot tell anybody, so rp fragments as it always did."""
    near, far = lane
    full = bytes(FULL["IPv4"])
    with (
        narrow_path(far) as end,
        answering(end, address=(ENDS["IPv4"], 0)) as server,
        remote_proxy(far, tmp_path, *MAY),
        started(
            near,
            [
                *("setpriv", "--inh-caps=-all", "--bounding-set=-net_raw"),
                *(binary("lp"), *WAYS_IN, RP, "4"),
            ],
            tmp_path / "lp.log",
            name="lp",
            ready="redirected datagrams on",
        ) as lp,
    ):
        lp.expect(r"programs are not told .*: Operation not permitted")
        lp.expect(r"pipes to .* are up")
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        with program(near, "IPv4", server.port, DO) as sock:
            insist(sock, full)
            for _ in range(20):
                assert ask(sock, full) == full
            assert knows(sock, "IPv4") == 1500
