# SPDX-License-Identifier: MIT
"""How a run is broken off: by the user, or by its time limit. Both unwind what was begun."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

HANG_UPS = (signal.SIGTERM, signal.SIGHUP)
SIGNALS = (signal.SIGINT, *HANG_UPS)


class Stopped(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or a terminal that is gone."""


class Late(BaseException):
    """A run's time is up. No Exception, so that no workload takes it for a failure of its own."""


@contextmanager
def stoppable(
    signals: Sequence[signal.Signals] = SIGNALS,
) -> Iterator[threading.Event]:
    """The first signal raises Stopped in the main thread, more of them do not stop the tidying.

    The event tells that it came, also where somebody swallowed it."""
    asked = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            print("tm3lab: tidying up", file=sys.stderr, flush=True)
            return
        asked.set()
        raise Stopped(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises Late in the main thread when the block takes longer."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise Late(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
