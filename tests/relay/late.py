# SPDX-License-Identifier: MIT
"""How long the machine let nobody run, measured beside what a test measures."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK_S = 0.005
PROCESSES = 5  # a test, a server, rp, lp, an emulator: what is late to each comes late to an answer


class Lateness(threading.Thread):
    """Sleeps by ticks: how long the machine let nobody run, at worst."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.worst = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        before = time.monotonic()
        while not self.over.wait(TICK_S):
            now = time.monotonic()
            self.worst = max(self.worst, now - before - TICK_S)
            before = now

    def allowed(self, seconds: float) -> float:
        """What may take so long on a machine that is never late."""
        return seconds + PROCESSES * self.worst


@contextmanager
def lateness() -> Iterator[Lateness]:
    late = Lateness()
    late.start()
    try:
        yield late
    finally:
        late.over.set()
        late.join()
