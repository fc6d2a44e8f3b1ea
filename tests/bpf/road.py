# SPDX-License-Identifier: MIT
"""The road of these tests, and the servers at its end.

near (lp, tm3ctl --bpf, programs) --- 10.77.0.0/24, 2001:db8:77::/64 --- far (rp, servers)

Behind far are 10.78.0.0/16 and 2001:db8:78::/64: every address of them is a server's, which says
which one a connection came to.
"""

import json
import os
import selectors
import shlex
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tests.relay import records
from tests.relay.netns import Namespace
from tests.relay.programs import BUILD, ROOT, binary, program
from tests.relay.proxies import LP_READY, Pair, pair, remote_proxy

TM3CTL = ROOT / "kmod" / "tm3ctl"
TM3BPF = BUILD / "tm3bpf"
CLIENT = ("python3", ROOT / "tests" / "bpf" / "client.py")
RP, RP6 = "10.77.0.2", "2001:db8:77::2"
BEHIND, BEHIND6 = "10.78.0.0/16", "2001:db8:78::/64"
A, B, A6 = "10.78.0.1", "10.78.200.7", "2001:db8:78::1"
PORTS = range(8000, 8016)
# The guest has none with sanitizers.
ASAN = os.environ.get("TM3_GUEST") != "1"
LP_BOTH = ("--redirect", "6003", "--redirect", "[::1]:6003")

# The extension, for IPv6; and servers on rp's own host.
RP_WORDS = ("--allow", "10.77.0.0/24", "--permit", BEHIND, "--permit", BEHIND6)

Said = subprocess.CompletedProcess[str]


def said_of(here: tuple[str, int]) -> str:
    return f"{here[0]} {here[1]}"


def join(cgroup: Path) -> list[str]:
    """A command line behind this is run in that cgroup."""
    return ["sh", "-c", f'echo 0 >{shlex.quote(str(cgroup))}/cgroup.procs && exec "$@"', "sh"]


def listening(far: Namespace, family: int, port: int) -> socket.socket:
    """At every address of that family."""
    sock = far.open_socket(family)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(("", port))
    sock.listen(4096)
    return sock


def tell(listeners: list[socket.socket], stop: socket.socket) -> None:
    """Each that connects is told which address it reached, and which one it has."""
    ready = selectors.DefaultSelector()
    for waiting in (*listeners, stop):
        ready.register(waiting, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is stop:
                return
            assert isinstance(key.fileobj, socket.socket)
            sock, peer = key.fileobj.accept()
            with sock:
                sock.sendall(f"{said_of(sock.getsockname())} from {peer[0]}\n".encode())


@contextmanager
def servers(far: Namespace) -> Iterator[None]:
    """On all PORTS of all addresses, of both families."""
    families = (socket.AF_INET, socket.AF_INET6)
    listeners = [listening(far, family, port) for family in families for port in PORTS]
    stop, stopped = socket.socketpair()
    thread = Thread(target=tell, args=(listeners, stopped))
    thread.start()
    try:
        yield
    finally:
        stop.close()
        thread.join()
        for sock in (*listeners, stopped):
            sock.close()


@dataclass(frozen=True)
class Talker:
    """A program to which one says a line, and which answers with one."""

    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def hears(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def complains(self) -> str:
        assert self.process.stderr
        return self.process.stderr.readline()

    def ask(self, *words: object) -> Any:
        """Of client.py that obeys: a connection, and what it was told."""
        assert self.process.stdin
        print(*words, file=self.process.stdin, flush=True)
        return json.loads(self.hears())


@dataclass(frozen=True)
class Road:
    near: Namespace
    far: Namespace
    tmp: Path

    def tm3ctl(self, *words: str | Path, stdin: str = "", seconds: float = 60.0) -> Said:
        return subprocess.run(
            self.near.command([TM3CTL, *words]),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=self.environ(),
        )

    @staticmethod
    def environ() -> dict[str, str]:
        return {**os.environ, "TM3_BPF": str(TM3BPF)}

    def bpf(self, *words: str | Path, stdin: str = "") -> Said:
        return self.tm3ctl("--bpf", *words, stdin=stdin)

    def client(self, *words: str | Path, options: Sequence[str] = (), stdin: str = "") -> Any:
        """What a redirected client says."""
        done = self.bpf(*options, "--", *CLIENT, *words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def unredirected(self, *words: str | Path) -> Any:
        return json.loads(self.near.run(*CLIENT, *words))

    @contextmanager
    def begun(self, argv: Sequence[str | Path]) -> Iterator[Talker]:
        """A program that goes on; killed if it still runs at the end of the block."""
        with subprocess.Popen(
            self.near.command(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ(),
        ) as process:
            try:
                yield Talker(process)
            finally:
                if process.poll() is None:
                    process.kill()

    def started(self, *words: str | Path) -> AbstractContextManager[Talker]:
        return self.begun([TM3CTL, "--bpf", *words])

    @property
    def stats(self) -> Path:
        return self.tmp / "lp.jsonl"

    def relayed(self) -> list[str]:
        """Where the connections went whose end lp has seen."""
        return [record["dst"] for record in records.of(self.stats, "conn")]

    @contextmanager
    def proxies(self, *lp: str) -> Iterator[Pair]:
        args = ["--stats", str(self.stats), *(lp or LP_BOTH)]
        with pair(
            self.far, self.tmp, rp=RP_WORDS, lp=args, lp_ns=self.near, to=RP, asan=ASAN
        ) as both:
            yield both

    @contextmanager
    def proxies_with_lp_in(self, cgroup: Path) -> Iterator[None]:
        argv = [*join(cgroup), binary("lp", asan=ASAN), *LP_BOTH, RP, "4"]
        with (
            remote_proxy(self.far, self.tmp, *RP_WORDS, asan=ASAN),
            program(self.near, argv, self.tmp / "lp.log", name="lp", ready=LP_READY),
        ):
            yield


@contextmanager
def built(two: tuple[Namespace, Namespace], tmp: Path) -> Iterator[Road]:
    near, far = two
    near.ip("address", "add", "2001:db8:77::1/64", "dev", "wire-l", "nodad")
    far.ip("address", "add", f"{RP6}/64", "dev", "wire-r", "nodad")
    far.ip("route", "add", "local", BEHIND, "dev", "lo")
    far.ip("-6", "route", "add", "local", BEHIND6, "dev", "lo")
    near.ip("route", "add", BEHIND, "via", RP)
    near.ip("-6", "route", "add", BEHIND6, "via", RP6)
    with servers(far):
        yield Road(near, far, tmp)
