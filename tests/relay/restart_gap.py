# SPDX-License-Identifier: MIT
"""How long nothing works while rp is replaced under lp.

    build/venv/bin/python -m tests.relay.restart_gap

In a namespace of its own (root), on loopback: a new connection through lp is tried every 5 ms from
the signal on, until one brings its bytes back. `--rounds N` (20) of each kind:

plain       SIGTERM, wait for the end, start again
activated   the same, but the listening sockets stay open meanwhile, as systemd holds them
"""

import argparse
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.relay.ends import echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import LP_READY, RP_READY

ACTIVATE = Path(__file__).parent / "activate.py"
NAMES = ("pipes", "extended")
PATIENCE_S = 60
PAUSE_S = 0.005
LASTED_S = 1.2  # so long a session must have been there for lp to redial soon


@dataclass(frozen=True)
class Gap:
    """From the signal to rp's end, and to the first connection that works again."""

    end_s: float
    works_s: float


def works(ns: Namespace, port: int) -> bool:
    with suppress(OSError, AssertionError, EOFError), socks(ns, "127.0.0.1", port) as sock:
        sock.settimeout(5)
        sock.sendall(b"x")
        return read_exactly(sock, 1) == b"x"
    return False


@contextmanager
def held(ns: Namespace) -> Iterator[list[socket.socket]]:
    """rp's listening sockets, which stay open whatever becomes of rp."""
    with ns.entered(), ExitStack() as stack:
        found = []
        for port in (6000, 6010):
            sock = stack.enter_context(socket.create_server(("127.0.0.1", port), backlog=64))
            found.append(sock)
        yield found


def restarted(
    ns: Namespace, rp: Program, start: Callable[[], Program], port: int
) -> tuple[Program, Gap]:
    began = time.monotonic()
    rp.send_signal(signal.SIGTERM)
    rp.process.wait(10)
    ended = time.monotonic()
    again = start()
    while not works(ns, port):
        assert time.monotonic() < began + PATIENCE_S, "nothing works any more"
        time.sleep(PAUSE_S)
    return again, Gap(ended - began, time.monotonic() - began)


def gaps(ns: Namespace, tmp: Path, kind: str, rounds: int, *, asan: bool = False) -> list[Gap]:
    found = []
    with ExitStack() as stack:
        sockets = stack.enter_context(held(ns)) if kind == "activated" else []
        names = [f"{name}=#{sock.fileno()}" for name, sock in zip(NAMES, sockets, strict=False)]
        command = [sys.executable, ACTIVATE, *names, "--"] if names else []
        command += [binary("rp", asan=asan), "--listen", "127.0.0.1", "4"]
        server = stack.enter_context(serving(ns, echo))

        def start() -> Program:
            passed = [sock.fileno() for sock in sockets]
            return Program(ns, command, tmp / "rp.log", name="rp", pass_fds=passed)

        rp = start()
        try:
            rp.expect(RP_READY)
            lp = [binary("lp", asan=asan), "127.0.0.1", "4"]
            with program(ns, lp, tmp / "lp.log", name="lp", ready=LP_READY):
                for _ in range(rounds):
                    time.sleep(LASTED_S)
                    rp, gap = restarted(ns, rp, start, server.port)
                    found.append(gap)
        finally:
            rp.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for kind in ("plain", "activated"):
        ns = Namespace("restart")
        try:
            with tempfile.TemporaryDirectory() as tmp:
                found = gaps(ns, Path(tmp), kind, rounds)
        finally:
            ns.close()
        ends = [gap.end_s * 1e3 for gap in found]
        works_ms = sorted(gap.works_s * 1e3 for gap in found)
        print(
            f"{kind:9}  {rounds} restarts: works again after {statistics.median(works_ms):.0f} ms "
            f"(median; {works_ms[0]:.0f} to {works_ms[-1]:.0f}), "
            f"of which rp's end {statistics.median(ends):.0f} ms"
        )


if __name__ == "__main__":
    main()
