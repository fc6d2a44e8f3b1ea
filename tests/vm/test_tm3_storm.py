# SPDX-License-Identifier: MIT
"""tm3.ko in storms: all that comes and goes does so at once, as fast as it can.

After each the kernel has nothing to say (the fixture `log` sees to that), nobody hung, and lp, rp,
connection tracking and the namespaces are back to where they were. What of the kernel's memory is
lost meanwhile, or used after it is freed, the debug kernel tells: make test-vm-debug.
"""

import contextlib
import fcntl
import mmap
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import conntrack
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.proxies import remote_proxy
from tests.relay.waiting import equals, until
from tests.vm.module import (
    PROC,
    Log,
    configure,
    counters,
    in_guest,
    insmod,
    load,
    loaded,
    rmmod,
    setting,
    write,
)
from tests.vm.road import DEVICE, RP, Road, established, fetch, words
from tests.vm.storm import namespaces, storm, tracked, visits

pytestmark = [in_guest, pytest.mark.timeout(600)]

ROUNDS = 12
ASK = b"HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n"
SEED = 20261122
# lp takes notice of an end by its own timers as well; a machine that emulates takes longer.
SETTLES_S = 60.0


def undone(way: Road) -> None:
    """Nothing is redirected any more, and a connection takes the direct way."""
    equals("what is still translated", lambda: tracked(way.near, 6003), [], SETTLES_S)
    equals("connections at lp", lambda: established(way.near, 6003), 0, SETTLES_S)
    assert fetch(way.near) == way.page


def test_in_and_out_under_a_storm(way: Road) -> None:
    """Connections are made and closed in every manner while the module goes and comes."""
    visit = visits(way.near, (RP, 80))
    with way.proxies() as both:
        with storm(one=visit, two=visit, three=visit, four=visit) as them:
            for _ in range(ROUNDS):
                load(way.near, **words())
                them.more(5)
                assert counters(way.near).get("redirected", 0) > 0
                rmmod()
                them.more(1)
        undone(way)
        both.settled(SETTLES_S)
    assert not loaded()


def test_namespaces_come_and_go_meanwhile(way: Road) -> None:
    """Configured while the module may be there or not, with connections, gone with all of it."""
    before = namespaces()
    visit = visits(way.near, (RP, 80))

    def live() -> None:
        with namespace("brief-near") as near, namespace("brief-far") as far:
            veth(near, "10.77.0.1/24", far, f"{RP}/24")
            with near.open_socket() as lp:
                lp.bind(("127.0.0.1", 6003))
                lp.listen()
                # No file, no module any more behind an open one: it is just going.
                with contextlib.suppress(FileNotFoundError, OSError):
                    configure(near, **words("1-65535"))
                for _ in range(5):
                    with contextlib.suppress(ConnectionError):
                        near.connect((RP, 80), 60).close()

    with way.proxies() as both:
        with storm(visit=visit, first=live, second=live) as them:
            for _ in range(ROUNDS):
                load(way.near, **words())
                them.more(1)
                rmmod()
        undone(way)
        both.settled(SETTLES_S)
    until("the namespaces to be gone", lambda: namespaces() <= before, SETTLES_S)


def test_connections_are_forgotten_over_and_over(way: Road) -> None:
    """While the module goes and comes: nobody waits for ever, and lp is left with nothing."""
    way.near.run("sysctl", "-qw", "net.ipv4.tcp_keepalive_time=3")
    visit = visits(way.near, (RP, 80))
    with way.proxies() as both:
        with storm(one=visit, two=visit, three=visit, four=visit) as them:
            for _ in range(ROUNDS // 3):  # each time they wait for the module's next look
                load(way.near, **words())
                for _ in range(3):
                    them.more(1)
                    conntrack.flush(way.near)
                rmmod()
                them.more(1)
        undone(way)
        both.settled(SETTLES_S)


def test_lp_killed_over_and_over(way: Road) -> None:
    """Under connections; rp is the same all the while, and holds in the end what it held before."""
    load(way.near, **words())
    visit = visits(way.near, (RP, 80))
    with remote_proxy(way.far, way.tmp, asan=False) as rp:
        idle = rp.fd_count()
        with storm(one=visit, two=visit, three=visit) as them:
            for number in range(ROUNDS):
                with way.lp(name=f"lp-{number}") as lp:
                    before = counters(way.near).get("redirected", 0)
                    until(
                        "connections to be redirected",
                        lambda before=before: counters(way.near).get("redirected", 0) > before + 4,
                        SETTLES_S,
                    )
                    lp.kill()
                them.more(1)
        equals("rp's open descriptors", rp.fd_count, idle, SETTLES_S)
        with way.lp(name="lp-last") as lp:
            calm = lp.fd_count()
            assert fetch(way.near) == way.page
            equals("lp's open descriptors", lp.fd_count, calm, SETTLES_S)
        equals("rp's open descriptors", rp.fd_count, idle, SETTLES_S)
    rmmod()
    undone(way)


def test_lp_hears_of_an_end_that_was_lost_on_the_way(way: Road) -> None:
    """A program has ended, its last segment is yet to be sent again, and the module goes."""
    lossy = "table ip lossy { chain i { type filter hook input priority 0;"
    with way.proxies() as both, way.far.open_socket() as server:
        server.bind((RP, 81))
        server.listen()
        server.settimeout(60)
        load(way.near, **words("81"))
        with way.near.connect((RP, 81), 60):
            taken, _ = server.accept()
            way.near.nft(lossy + " tcp dport 6003 tcp flags & fin == fin drop; }; }")
        with taken:
            assert established(way.near, 6003) == 1
            rmmod()
            way.near.run("nft", "delete", "table", "ip", "lossy")
            equals("connections at lp", lambda: established(way.near, 6003), 0, 20)
            both.settled(SETTLES_S)


# --- garbage --------------------------------------------------------------------------------------

PIECES = (
    *(b"remoteProxyIP=", b"fwdInterface=", b"portList=", b"localPort=", b"colour=", b"=", b"off"),
    *(b" ", b"\n", b"\t", b"\0", b",", b"-", b"%s%n%x", b"\xff\xfe", b"\x1b[2J", b"0x50", b"all"),
    *(RP.encode(), DEVICE.encode(), b"wire-r", b"lo", b"127.0.0.1", b"80", b"65535", b"65536"),
    *(b"1-65535", b"1-65535:2/4", b"-1", b"6003", b"9" * 40, b"x" * 200, b"80," * 300),
)


def garbage(dice: random.Random) -> bytes:
    """Half of it nearly right: pieces of what is meant, in any order; half any bytes at all."""
    if dice.random() < 0.5:
        return dice.randbytes(dice.choice((0, 1, 2, 7, 64, 1000, 4095, 4096, 4097, 70000)))
    if dice.random() < 0.3:
        text = bytearray(b" ".join(f"{k}={v}".encode() for k, v in words().items()))
        for _ in range(dice.randrange(3)):
            text[dice.randrange(len(text))] = dice.randrange(256)
        return bytes(text)
    return b"".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 12)))


@contextmanager
def opened(ns: Namespace, flags: int = os.O_RDWR) -> Iterator[int]:
    with ns.entered():
        handle = os.open(PROC, flags)
    try:
        yield handle
    finally:
        os.close(handle)


def test_garbage_for_its_file_while_connections_are_made(way: Road) -> None:
    """Each write is refused or understood; what holds is always something that can be written."""
    dices = {name: random.Random(f"{SEED} {name}") for name in ("one", "two")}
    # And how many of these lines were not said, in the name of a function of it.
    way.log.expected += [r"^tm3: ", r"^tm3_\w+: \d+ callbacks suppressed"]
    load(way.near, **words())

    def scribble(name: str) -> None:
        with opened(way.near, os.O_WRONLY) as handle, contextlib.suppress(OSError):
            os.write(handle, garbage(dices[name]))

    def read() -> None:
        lines = setting(way.near)
        assert lines == "off" or lines.startswith("remoteProxyIP="), lines
        counters(way.near)

    works = {name: lambda name=name: scribble(name) for name in dices}
    with way.proxies() as both:
        with storm(**works, read=read, visit=visits(way.near, (RP, 80))) as them:
            them.more(40)
        write(way.near, "off")
        held = words("80,8000-8010")
        configure(way.near, **held)
        assert setting(way.near).endswith("portList=80,8000-8010 localPort=6003")
        assert fetch(way.near) == way.page
        rmmod()
        undone(way)
        both.settled(SETTLES_S)


def test_its_file_in_every_wrong_way(two: tuple[Namespace, Namespace], log: Log) -> None:
    """What a program may do with a file at all: each is done or refused, and nothing changes."""
    near, _ = two
    log.expected.append(r"^tm3: ")
    load(near, **words())
    before = setting(near)
    good = " ".join(f"{name}={value}" for name, value in words("81").items()).encode()
    with opened(near) as handle:
        for place in (0, 1, 5, 4096, 1 << 40):
            with contextlib.suppress(OSError):
                os.lseek(handle, place, os.SEEK_SET)
            for size in (0, 1, 3, 70000):
                with contextlib.suppress(OSError):
                    os.pread(handle, size, place)
        for request in (0, 0x5401, 0x541B, 0x80045430):
            with contextlib.suppress(OSError):
                fcntl.ioctl(handle, request, bytes(64))
        for refused in (
            lambda: mmap.mmap(handle, 4096, mmap.MAP_SHARED),
            lambda: os.write(handle, b""),
            lambda: os.write(handle, good + b"\0"),
            lambda: os.write(handle, bytes(4096)),
            lambda: os.writev(handle, [good[:9], good[9:]]),
        ):
            with contextlib.suppress(OSError, ValueError):  # Python itself refuses to map it
                refused()
            assert setting(near) == before
        # A second line in the same file is taken or not, but as a whole.
        with contextlib.suppress(OSError):
            os.write(handle, good)
        assert setting(near) in (before, before.replace("portList=80", "portList=81"))
    rmmod()


def test_garbage_for_insmod(two: tuple[Namespace, Namespace], log: Log) -> None:
    """Refused, it leaves nothing; taken, it can be taken out."""
    near, _ = two
    log.expected.append(r"^tm3: ")
    dice = random.Random(SEED)
    taken = 0
    for _ in range(60):
        given = dict(words())
        for name in dice.sample((*given, "localPort", "colour"), dice.randrange(1, 4)):
            # The words of a command line: what is no text cannot be given.
            text = b"".join(dice.choice(PIECES) for _ in range(dice.randrange(4)))
            given[name] = text.replace(b"\0", b"").decode(errors="replace").strip() or "80"
        insmod(near, **given)
        if loaded():
            taken += 1
            rmmod()
    load(near, **words())
    rmmod()
    assert 0 < taken < 60


def test_sockets_of_every_state_when_it_goes(way: Road) -> None:
    """Asked for, open, half closed by either side, reset, and waiting out their time."""
    with way.proxies() as both:
        load(way.near, **words())
        socks = []
        for number in range(30):
            sock = way.near.open_socket()
            sock.setblocking(False)
            sock.connect_ex((RP, 80))
            socks.append(sock)
            if number % 3 == 0:
                continue
            sock.settimeout(60)
            with contextlib.suppress(OSError):
                sock.sendall(ASK)
                if number % 3 == 1:
                    sock.shutdown(socket.SHUT_WR)
                else:
                    sock.recv(1)
        for number, sock in enumerate(socks):
            if number % 5 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if number % 2 == 0:
                sock.close()
        rmmod()
        for sock in socks:
            sock.close()
        undone(way)
        both.settled(SETTLES_S)
    assert not Path("/sys/module/tm3").exists()
