# SPDX-License-Identifier: MIT
"""Somebody who does nothing wrong, beside those who do: does all that is theirs work?

What it takes is printed beside what it took before, and not asserted: attackers are played by the
same process, on a machine that does other things too.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from base.pressure import OwnTime
from tests.relay import payload
from tests.relay.ends import (
    Ending,
    Server,
    echo,
    read_exactly,
    read_to_end,
    sending,
    serving,
    socks,
)
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import local_proxy

BULK = payload.seeded(8_000_000, seed=18)
WHOLE = Ending("eof", len(BULK), payload.digest(BULK))
CONNECTS = 40
MET_S = 60.0

Attack = Callable[[threading.Event], None]


@dataclass(frozen=True)
class Figures:
    p99_ms: float  # of a connect, a byte there and back
    mbps: float  # of the bulk


@dataclass(frozen=True)
class Friend:
    ns: Namespace
    lp: Program
    mirror: Server
    source: Server

    def bulk(self) -> float:
        began = time.monotonic()
        with socks(self.ns, "127.0.0.1", self.source.port) as sock:
            assert read_to_end(sock) == WHOLE
        return len(BULK) * 8 / 1e6 / (time.monotonic() - began)

    def connect(self) -> float:
        began = time.monotonic()
        with socks(self.ns, "127.0.0.1", self.mirror.port) as sock:
            sock.sendall(b"?")
            assert read_exactly(sock, 1) == b"?"
        return (time.monotonic() - began) * 1000

    def figures(self) -> Figures:
        """Fails unless all of it works."""
        took = sorted(self.connect() for _ in range(CONNECTS))
        return Figures(took[-1 - CONNECTS // 100], self.bulk())

    def beside(self, name: str, *attacks: Attack, met: Callable[[], object] = lambda: True) -> None:
        """All that is the friend's works while the attacks go on, until they have `met` something:
        of rp's time they have a share alone."""
        quiet = self.figures()
        over = threading.Event()
        wrong: list[BaseException] = []

        def run(attack: Attack) -> None:
            try:
                attack(over)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=run, args=(attack,)) for attack in attacks]
        for thread in threads:
            thread.start()
        try:
            beside = self.figures()
            clock = OwnTime()
            while not (wrong or met()):
                assert clock.passed_s() < MET_S, f"{name} came to no limit"
                self.figures()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        if wrong:
            raise wrong[0]
        print(
            f"{name}: connect p99 {quiet.p99_ms:.1f} ms quiet, {beside.p99_ms:.1f} beside; "
            f"bulk {quiet.mbps:.0f} Mbit/s quiet, {beside.mbps:.0f} beside"
        )


@contextmanager
def friend(ns: Namespace, tmp: Path, *args: str, pipes: int = 4) -> Iterator[Friend]:
    """Over an lp of its own; the servers are its, too."""
    with (
        serving(ns, echo) as mirror,
        serving(ns, sending(BULK)) as source,
        local_proxy(ns, tmp, *args, pipes=pipes, asan=False) as lp,
    ):
        yield Friend(ns, lp, mirror, source)
