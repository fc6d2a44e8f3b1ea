# SPDX-License-Identifier: MIT
"""How work is broken off by a signal. No handler here raises where something is torn down."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or a terminal that is gone."""


class Stop:
    """Whether a signal came. Who waits for other things waits for its descriptor, too."""

    def __init__(self, reader: int) -> None:
        self.asked = False
        self._reader = reader

    def fileno(self) -> int:
        """Can be read from as soon as one came."""
        return self._reader

    def check(self, where: str) -> None:
        if self.asked:
            raise Stopped(where)


@contextmanager
def stoppable(signals: Sequence[signal.Signals] = SIGNALS) -> Iterator[Stop]:
    """Signals are noted while the block runs; it is the block's business to look."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    stop = Stop(reader)

    def note(_number: int, _frame: FrameType | None) -> None:
        if stop.asked:
            os.write(2, b"tm3lab: tidying up\n")
        else:
            stop.asked = True
            os.write(writer, b"!")

    with _handled(signals, note):
        try:
            yield stop
        finally:
            os.close(reader)
            os.close(writer)


@contextmanager
def interruptible(signals: Sequence[signal.Signals] = SIGNALS) -> Iterator[None]:
    """The first signal raises Stopped in the main thread, more of them do nothing.

    For where nothing of this machine is torn down."""
    asked = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise Stopped(signal.Signals(number).name)

    with _handled(signals, stop):
        yield


@contextmanager
def _handled(signals: Sequence[signal.Signals], handler: object) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def held_back(signals: Sequence[signal.Signals] = SIGNALS) -> Iterator[None]:
    """Signals that come while the block runs come after it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
