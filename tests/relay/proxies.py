# SPDX-License-Identifier: MIT
"""rp and lp, started as a user would, and what must hold when they are done."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.waiting import equals

RP_READY = r"^rp: listening on "
# Who may come is said, so rp speaks the extension too; without, it is the course's.
LISTEN = ("--listen", "127.0.0.1")
EXTENDED = r"^lp: \d+ pipes? to \S+:6010 (are|is) up"
# Of two namespaces the far one has both rp and the servers, whose address is rp's own then.
SERVERS_BESIDE_RP = ("--permit", "10.77.0.2/32")
LP_READY = r"^lp: \d+ pipes? to \S+ (are|is) up"


@contextmanager
def remote_proxy(
    ns: Namespace,
    tmp: Path,
    *args: str,
    pipes: int = 4,
    asan: bool = True,
    name: str = "rp",
    status: int | None = 0,
) -> Iterator[Program]:
    argv = [binary("rp", asan=asan), *SERVERS_BESIDE_RP, *args, str(pipes)]
    with program(ns, argv, tmp / f"{name}.log", name=name, ready=RP_READY, status=status) as rp:
        yield rp


@contextmanager
def local_proxy(
    ns: Namespace,
    tmp: Path,
    *args: str,
    to: str = "127.0.0.1",
    pipes: int = 4,
    asan: bool = True,
    name: str = "lp",
    ready: str | None = LP_READY,
    status: int | None = 0,
) -> Iterator[Program]:
    argv = [binary("lp", asan=asan), *args, to, str(pipes)]
    with program(ns, argv, tmp / f"{name}.log", name=name, ready=ready, status=status) as lp:
        yield lp


@dataclass(frozen=True)
class Pair:
    """One rp and one lp with all pipes up and no connection yet."""

    rp: Program
    lp: Program
    rp_fds: int
    lp_fds: int

    def settled(self, seconds: float = 12.0) -> None:
        """Waits until both hold as many descriptors as before the first connection."""
        equals("rp's open descriptors", self.rp.fd_count, self.rp_fds, seconds)
        equals("lp's open descriptors", self.lp.fd_count, self.lp_fds, seconds)


@contextmanager
def pair(
    ns: Namespace,
    tmp: Path,
    *,
    pipes: int = 4,
    rp: Sequence[str] = (),
    lp: Sequence[str] = (),
    both: Sequence[str] = (),
    asan: bool = True,
    lp_ns: Namespace | None = None,
    to: str = "127.0.0.1",
    lent: int = 0,
) -> Iterator[Pair]:
    """rp and lp; at the end nothing has leaked and both end with 0 on SIGTERM.

    They speak the baseline unless `rp` says who may come: see `extended_pair`. rp listens on
    `lent` ports for lp.
    """
    with ExitStack() as stack:
        remote = stack.enter_context(remote_proxy(ns, tmp, *both, *rp, pipes=pipes, asan=asan))
        idle = remote.fd_count()
        local = stack.enter_context(
            local_proxy(lp_ns or ns, tmp, *both, *lp, pipes=pipes, asan=asan, to=to)
        )
        equals("rp's descriptors with all pipes up", remote.fd_count, idle + pipes + lent)
        both_up = Pair(remote, local, idle + pipes + lent, local.fd_count())
        yield both_up
        if remote.running() and local.running():
            both_up.settled()


@contextmanager
def extended_pair(
    ns: Namespace,
    tmp: Path,
    *,
    pipes: int = 4,
    rp: Sequence[str] = (),
    lp: Sequence[str] = (),
    both: Sequence[str] = (),
    asan: bool = True,
    lent: int = 0,
) -> Iterator[Pair]:
    """The same as users have them, over the extension."""
    rp = [*LISTEN, *rp]
    with pair(ns, tmp, pipes=pipes, rp=rp, lp=lp, both=both, asan=asan, lent=lent) as proxies:
        assert proxies.lp.lines(EXTENDED), proxies.lp.log
        yield proxies


def hang_up(proxy: Program, said: str, count: int = 1) -> None:
    proxy.send_signal(signal.SIGHUP)
    proxy.expect(rf"^{proxy.name}: SIGHUP: {said}$", count=count)
