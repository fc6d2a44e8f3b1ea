# SPDX-License-Identifier: MIT
"""rp and lp in a namespace of their own, and the users that a fault may disturb.

What a user does raises what its user sees. To be refused, or cut off with a reset, is Refused; to
hang is a TimeoutError; all else that is not as it should be is a lie, and an AssertionError.
"""

import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.relay import payload, tproxied
from tests.relay.associations import associations
from tests.relay.control import Client, name_of
from tests.relay.datagrams import LP, answering, associated, header
from tests.relay.ends import (
    answers,
    echo,
    read_exactly,
    read_to_end,
    serving,
    socks,
    socks_greet,
    socks_reply,
    socks_request,
    unix,
)
from tests.relay.faults import faulty
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.pipes import pipes_in
from tests.relay.programs import Program
from tests.relay.test_activation import ACTIVATE
from tests.relay.two_paths import ALLOW, BOTH_PATHS, FAR, NEAR, kill, pipes_from
from tests.relay.waiting import until

NAMES = ("rp", "lp")
ECHO, DATAGRAMS, NOBODY = 8000, 8001, 9
FORWARDED, FORWARDED_DATAGRAMS, LENT = 7000, 7001, 7002
# getaddrinfo() knows this name of 127.0.0.1 on any machine, and no other address of it.
BY_NAME = b"\0\0\0\3\x05127.1" + struct.pack("!H", DATAGRAMS)
DENIED = "192.0.2.1"
METRICS = {"rp": 9600, "lp": 9601}
READY = {"rp": r"^rp: listening on ", "lp": r"^lp: \d+ pipes? to \S+ (over \S+ )?(are|is) up"}
# Whatever fails at one end, the other end sends what it may.
ACCUSES = r": pipe \d+ brought "
BLOCK = payload.seeded(60_000, seed=15)
GREETING_ENDED = re.compile(r"^(lp answered|the connection ended after)")
ANSWER_S = 10
QUIET_S = 1.0
SPINS_S = 0.5

User = Callable[[], None]


class Refused(Exception):
    """A user got nothing, and was told."""


@dataclass(frozen=True)
class Setup:
    """How both are started."""

    rp: tuple[str, ...]
    lp: tuple[str, ...]
    keys: bool = False
    extended: bool = True
    doors: bool = False  # all other ways in, and options from files
    moves: bool = False  # lp's host gets other addresses
    sctp: bool = False  # pipes are associations


DATAGRAMS_TOO = ("--forward", f"udp:{FORWARDED_DATAGRAMS}:127.0.0.1:{DATAGRAMS}")
LATE = ("--socks-reply", "late")
# A session whose end lp could not say any more is kept for so long; then nothing may be left of it.
RESUME = ("--resume", "5")
# Neither does without the extension, as with a key: the baseline grants before it knows.
EXTENSION = Setup(
    ("--listen", "127.0.0.1", "--extended", "127.0.0.1:6010", *RESUME),
    (*LATE, *DATAGRAMS_TOO, "--extend", "always"),
)
KEYS = Setup(RESUME, (*LATE, *DATAGRAMS_TOO), keys=True)
WORKERS = Setup(("--listen", "127.0.0.1", "--workers", "2", *RESUME), (*LATE, *DATAGRAMS_TOO))
BASELINE = Setup((), ("--extend", "never"), extended=False)
OVER_SCTP = ("--pipe", "sctp")
SCTP = Setup((*EXTENSION.rp, *OVER_SCTP), (*EXTENSION.lp, *OVER_SCTP), sctp=True)
# Datagrams to this address, rp's excepted, are brought to lp by nftables.
REDIRECTED, TPROXY = "10.8.0.1", 6004
STEERED = f"""
table inet steered {{
	chain output {{
		type route hook output priority mangle
		meta skuid != "nobody" ip daddr {REDIRECTED} udp dport {DATAGRAMS} meta mark set 7463
	}}
	chain prerouting {{
		type filter hook prerouting priority mangle
		meta mark 7463 meta nfproto ipv4 meta l4proto udp tproxy ip to 127.0.0.1:{TPROXY}
	}}
}}
"""
DOORS = Setup(
    (*ALLOW, *RESUME, "--user", "nobody", "--permit-listen", str(LENT)),
    (
        *(*LATE, *DATAGRAMS_TOO, *BOTH_PATHS, "--tproxy", str(TPROXY)),
        *("--remote-forward", f"{LENT}:127.0.0.1:{ECHO}"),
    ),
    doors=True,
)


# rp's address, and two of which lp's host has one at a time: all on loopback.
RP_ELSEWHERE, HOME, AWAY = "10.66.0.1", "10.66.0.2", "10.66.0.3"
OVER_MPTCP = ("--pipe", "mptcp")
MOVES = Setup(
    ("--permit", "127.0.0.1", *OVER_MPTCP, *RESUME),
    (*LATE, *DATAGRAMS_TOO, *OVER_MPTCP),
    keys=True,
    moves=True,
)


@contextmanager
def greeting() -> Iterator[None]:
    """Until a connection is granted, its end is an answer; afterwards only a reset is."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError as error:
        raise Refused(str(error)) from None
    except AssertionError as error:
        if GREETING_ENDED.match(str(error)):
            raise Refused(str(error)) from None
        raise


@contextmanager
def using() -> Iterator[None]:
    try:
        yield
    except ConnectionError as error:
        raise Refused(str(error)) from None


def busy_s(program: Program) -> float:
    """How long its threads have run, or waited for a core: a loop that never sleeps does always.

    Processor time alone would be little on a busy machine, whoever spins.
    """
    tasks = Path(f"/proc/{program.pid}/task").glob("*/schedstat")
    return sum(int(ns) for task in tasks for ns in task.read_text().split()[:2]) / 1e9


@dataclass
class Scene:
    ns: Namespace
    tmp: Path
    setup: Setup
    proxies: dict[str, Program] = field(default_factory=dict)

    def start(self, name: str, fault: str | None = None) -> bool:
        """Whether it is up; else it has ended."""
        env = {"FAULT_REPORT": str(self.report(name))}
        if fault:
            env["FAULT"] = fault
        argv = [*self._handed(name), faulty(name), *self._arguments(name)]
        proxy = Program(self.ns, argv, self.tmp / f"{name}.log", name=name, env=env)
        self.proxies[name] = proxy
        until(
            f"{name} to be up or to end",
            lambda: proxy.lines(READY[name]) or not proxy.running(),
            20,
        )
        return proxy.running()

    def _arguments(self, name: str) -> list[str]:
        own = {"rp": (*self.setup.rp, "--deny", DENIED), "lp": self.setup.lp}[name]
        if self.setup.keys:
            own = (*own, "--key-file", str(self.tmp / "keys"))
        if name == "lp":
            own = (*own, "--forward", f"{FORWARDED}:127.0.0.1:{ECHO}")
        if name == "lp" and self.setup.doors:
            own = (*own, "--control", str(self.tmp / "control"))
        options = [
            *("--stats", str(self.tmp / f"{name}.jsonl"), "--stats-interval", "0.1"),
            *("--metrics", str(self._metrics(name)), "--verbose", *own),
        ]
        if self.setup.doors:
            options = self._from_file(name, options)
        to = RP_ELSEWHERE if self.setup.moves else "127.0.0.1"
        return [*options, *{"rp": ["2"], "lp": [to, "2"]}[name]]

    def _from_file(self, name: str, options: list[str]) -> list[str]:
        file = self.tmp / f"{name}.conf"
        file.write_text(re.sub(r" ?--", "\n", " ".join(options)) + "\n")
        return ["--config", str(file)]

    def _handed(self, name: str) -> list[str | Path]:
        """As systemd starts it: its socket was there before."""
        if name == "lp" or not self.setup.doors:
            return []
        return [sys.executable, ACTIVATE, "extended=127.0.0.1:6010", "--"]

    def _metrics(self, name: str) -> int | Path:
        return self.tmp / "nobody" / f"{name}.sock" if self.setup.doors else METRICS[name]

    def report(self, name: str) -> Path:
        return self.tmp / f"{name}.report"

    def logs(self) -> str:
        return "".join(f"--- {name} ---\n{it.log[-4000:]}" for name, it in self.proxies.items())

    def held(self) -> dict[str, int]:
        return {name: it.fd_count() for name, it in self.proxies.items()}

    # --- users ---

    def users(self) -> list[User]:
        of_all = [self.echoed, self.by_name, self.refused, self.denied, self.forwarded]
        of_extended = [self.associates, self.forwarded_datagrams]
        of_doors = [self.outlives_paths, self.lent, self.redirected_datagrams, self.commands]
        return [
            *of_all,
            *(of_extended if self.setup.extended else []),
            *(of_doors if self.setup.doors else []),
            *self._outlives(),
            *(self.watches_rp, self.watches_lp),
        ]

    def _outlives(self) -> list[User]:
        if self.setup.moves:
            return [self.outlives_moves]
        if self.setup.extended and self.setup.sctp:
            return [self.outlives_associations]
        return [self.outlives_pipes] if self.setup.extended and not self.setup.doors else []

    def echoed(self) -> None:
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock, using():
            sock.sendall(BLOCK)
            assert read_exactly(sock, len(BLOCK)) == BLOCK, "other bytes came back"

    def outlives_pipes(self) -> None:
        """The network resets pipes, twice: whoever uses one does not see that."""
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock, using(), pipes_in(self.ns) as pipes:
            for _ in range(2):
                sock.sendall(BLOCK)
                pipes.kill_one()
                assert read_exactly(sock, len(BLOCK)) == BLOCK, "other bytes came back"

    def outlives_associations(self) -> None:
        """The same over SCTP: lp's end of a pipe is aborted, and then rp's by what lp's says."""
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock, using(), associations(self.ns, "127.0.0.1", "lo") as pipes:
            for _ in range(2):
                sock.sendall(BLOCK)
                pipes.kill_one()
                assert read_exactly(sock, len(BLOCK)) == BLOCK, "other bytes came back"

    def outlives_paths(self) -> None:
        """The same of all pipes of each path."""
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock, using():
            for path in (NEAR, FAR):
                sock.sendall(BLOCK)
                kill(self.ns, path)
                assert read_exactly(sock, len(BLOCK)) == BLOCK, "other bytes came back"

    def outlives_moves(self) -> None:
        """lp's host moves, twice, and all pipes are dialled anew."""
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock, using():
            for _ in range(2):
                sock.sendall(BLOCK)
                here = moved(self.ns)
                assert read_exactly(sock, len(BLOCK)) == BLOCK, "other bytes came back"
                until("pipes from there", lambda here=here: pipes_from(self.ns, here) == 2)

    def lent(self) -> None:
        """rp listens there for lp, which connects to the server."""
        self._answered_at(LENT)

    def commands(self) -> None:
        """A path is put out of use and back while a connection is hinted at."""
        with greeting():
            sock = socks(self.ns, "127.0.0.1", ECHO)
        with sock:
            with greeting():
                client = Client(self.tmp / "control")
            with closing(client), using():
                hint = f"hint {name_of(sock)} size=1M urgency=3"
                for line in ("list", "path far off", hint, "path far use"):
                    said = client.says(line)
                    if said[-1:] != ["ok"]:
                        raise Refused(f"{line}: {said}")
                answers(sock)

    def by_name(self) -> None:
        with greeting():
            sock = socks(self.ns, "localhost", ECHO)
        with sock, using():
            answers(sock)

    def refused(self) -> None:
        """Nobody listens there."""
        self._turned_away("127.0.0.1")

    def denied(self) -> None:
        """rp does not let anybody go there."""
        self._turned_away(DENIED)

    def _turned_away(self, host: str) -> None:
        """Who asks is told. The baseline grants first."""
        with greeting():
            sock = socks_greet(self.ns)
        with sock:
            with greeting():
                sock.sendall(socks_request(host, NOBODY))
                granted = socks_reply(sock) == 0
            assert not (granted and self.setup.extended), "a destination that refuses was granted"
            ending = read_to_end(sock, ANSWER_S)
            assert ending.how in ("eof", "reset") and not ending.size, ending

    def forwarded(self) -> None:
        self._answered_at(FORWARDED)

    def _answered_at(self, port: int) -> None:
        with greeting():
            sock = self.ns.connect(("127.0.0.1", port))
        with sock, using():
            answers(sock)

    def associates(self) -> None:
        with ExitStack() as stack:
            with greeting():
                client = stack.enter_context(associated(self.ns, LP))
            for head in (header("127.0.0.1", DATAGRAMS), BY_NAME):
                said = head + b"datagram"
                _asks(
                    lambda said=said: client.sock.sendto(said, client.lp),
                    client.sock,
                    client.control,
                )

    def redirected_datagrams(self) -> None:
        """The answer comes from whom they were sent to, or the socket would not hear it."""
        with self.ns.open_socket(kind=socket.SOCK_DGRAM) as sock, using():
            sock.connect((REDIRECTED, DATAGRAMS))
            _asks(lambda: sock.send(b"datagram"), sock)

    def forwarded_datagrams(self) -> None:
        with self.ns.open_socket(kind=socket.SOCK_DGRAM) as sock, using():
            sock.connect(("127.0.0.1", FORWARDED_DATAGRAMS))
            _asks(lambda: sock.send(b"datagram"), sock)

    def watches_rp(self) -> None:
        self._watches("rp")

    def watches_lp(self) -> None:
        self._watches("lp")

    def _watches(self, name: str) -> None:
        at = self._metrics(name)
        with greeting():
            sock = unix(at) if isinstance(at, Path) else self.ns.connect(("127.0.0.1", at))
        with sock:
            with greeting():
                sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                head = read_exactly(sock, 12)
            if not head.endswith(b"200"):
                raise Refused(repr(head))
            rest = read_to_end(sock, ANSWER_S)
            assert rest.how == "eof" and rest.size > 1000, rest

    # --- what an operator does, and what must hold ---

    def asked_to_report(self) -> None:
        """A table and the files anew: either may fail, and both go on."""
        for proxy in self.proxies.values():
            proxy.send_signal(signal.SIGUSR1)
            proxy.send_signal(signal.SIGHUP)
            proxy.expect("SIGHUP: ")

    def is_quiet(self) -> None:
        """Nobody asks anything of either, and soon both sleep for most of a second."""

        def busy() -> dict[str, float]:
            before = {name: busy_s(it) for name, it in self.proxies.items()}
            time.sleep(QUIET_S)
            return {name: busy_s(it) - before[name] for name, it in self.proxies.items()}

        until("both to have nothing to do", lambda: max(busy().values()) < SPINS_S)

    def end(self) -> None:
        for name, proxy in reversed(self.proxies.items()):
            assert proxy.running(), f"{name} ended with {proxy.process.returncode}"
            code = proxy.stop()
            proxy.assert_sane()
            assert code == 0, f"{name} ended with {code}"
            accusation = proxy.lines(ACCUSES)
            assert not accusation, f"{name} accuses the other of {accusation}"


def _asks(ask: User, sock: socket.socket, control: socket.socket | None = None) -> None:
    """A datagram may be lost; while nobody says that this is over, a later one gets there."""
    until_s = time.monotonic() + ANSWER_S
    while time.monotonic() < until_s:
        ask()
        ready = select.select([it for it in (sock, control) if it], [], [], 0.3)[0]
        if sock in ready:
            assert sock.recv(100).endswith(b"datagram")
            return
        if control in ready:
            raise Refused("the association ended")
    raise TimeoutError("no datagram came back")


@cache
def key() -> bytes:
    return subprocess.run(
        [faulty("lp"), "--make-key", "it"], capture_output=True, check=True
    ).stdout


def moved(ns: Namespace) -> str:
    """lp's host has another address, and not the one before; which."""
    before = ns.ip("-o", "address", "show", "dev", "lo")
    old, new = (HOME, AWAY) if f" {HOME}/" in before else (AWAY, HOME)
    ns.ip("address", "add", new, "dev", "lo")
    leads_from(ns, new)
    ns.ip("address", "del", f"{old}/32", "dev", "lo")
    return new


def leads_from(ns: Namespace, address: str) -> None:
    """Whoever connects to rp does so from there."""
    where = ("dev", "lo", "table", "local", "src", address)
    ns.ip("route", "replace", "local", RP_ELSEWHERE, *where)


def prepare_moves(ns: Namespace) -> None:
    ns.run("sysctl", "-q", "net.mptcp.enabled=1")
    for address in (RP_ELSEWHERE, HOME):
        ns.ip("address", "add", address, "dev", "lo")
    leads_from(ns, HOME)


@contextmanager
def beyond(ns: Namespace) -> Iterator[None]:
    """A server that only rp's datagrams reach; all others' are brought to lp."""
    tproxied.needed(ns)
    with namespace("beyond") as far:
        veth(ns, "10.77.0.1/24", far, "10.77.0.2/24")
        far.ip("address", "add", REDIRECTED, "dev", "lo")
        ns.ip("route", "add", REDIRECTED, "via", "10.77.0.2")
        ns.ip("rule", "add", "fwmark", "7463", "lookup", "7463")
        ns.ip("route", "add", "local", "default", "dev", "lo", "table", "7463")
        ns.nft(STEERED)
        with answering(far, address=(REDIRECTED, DATAGRAMS)):
            yield


@contextmanager
def scene(tmp: Path, setup: Setup) -> Iterator[Scene]:
    """Servers that wait for rp, and no proxy yet; what is started ends with the block."""
    tmp.mkdir()
    if setup.keys:
        (tmp / "keys").touch(0o600)
        (tmp / "keys").write_bytes(key())
    with (
        namespace("faults") as ns,
        serving(ns, echo, ("127.0.0.1", ECHO)),
        answering(ns, address=("127.0.0.1", DATAGRAMS)),
        ExitStack() as stack,
    ):
        if setup.doors:
            (tmp / "nobody").mkdir()
            shutil.chown(tmp / "nobody", "nobody")
            stack.enter_context(beyond(ns))
        if setup.moves:
            prepare_moves(ns)
        it = Scene(ns, tmp, setup)
        try:
            yield it
        finally:
            for proxy in it.proxies.values():
                if proxy.running():
                    proxy.kill()
