# SPDX-License-Identifier: MIT
"""As serial.py has it, with slow start: what requests one after another take by new connections.

A connection has ten segments' window at first, twice as much each round trip, and keeps what it
has for its next range. There is no loss.
"""

from collections.abc import Sequence

from experiments.workloads.mhttp import serial
from experiments.workloads.mhttp.serial import Served
from experiments.workloads.rates import MSS

INITIAL = 10 * MSS


class Begun:
    """A connection that was just made."""

    def __init__(self, path: Served) -> None:
        self.path, self.window = path, float(INITIAL)

    @property
    def rtt_s(self) -> float:
        return self.path.rtt_s

    def takes_s(self, size: float) -> float:
        """A request, and so many bytes: round trips while the window is less than the path."""
        took = self.path.rtt_s
        while size > self.window and self.window / self.path.rate < self.path.rtt_s:
            took += self.path.rtt_s
            size -= self.window
            self.window *= 2
        return took + size / self.path.rate


def plain(path: Served, length: int) -> float:
    """By one request, from connect() on."""
    return path.rtt_s + Begun(path).takes_s(length)


def together(paths: Sequence[Served], length: int) -> float:
    """By one request whose bytes come over all paths at once, as over one with the rates and the
    windows of all and the longest round trip: a transport of several paths that wastes nothing."""
    both = Begun(Served(sum(it.rate for it in paths), max(it.rtt_s for it in paths)))
    both.window *= len(paths)
    return both.rtt_s + both.takes_s(length)


def seconds(paths: Sequence[Served], chunk_bytes: int, length: int) -> float:
    return serial.seconds([Begun(it) for it in paths], chunk_bytes, length)
