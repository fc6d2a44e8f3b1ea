# SPDX-License-Identifier: MIT
"""The bursts of one flow: data in one direction, without a pause and without data the other way."""

from experiments.trace.capture import SECOND

GAP_NS = SECOND  # without any packet of the flow for so long, a burst is over
UP, DOWN = 0, 1


class Bursts:
    """From the first to the last packet with data; one alone lasts no time."""

    __slots__ = ("_began", "_bytes", "_ended", "_last", "_way", "bytes", "count", "duration_ns")

    def __init__(self) -> None:
        self.count = [0, 0]  # each by direction
        self.bytes = [0, 0]
        self.duration_ns = [0, 0]
        self._way = -1  # of the one that goes on; none
        self._began = self._ended = self._last = self._bytes = 0

    def take(self, time_ns: int, way: int, payload: int) -> None:
        """A packet of the flow, with data or without."""
        if self._way >= 0 and (time_ns - self._last >= GAP_NS or (payload and self._way != way)):
            self.end()
        self._last = time_ns
        if not payload:
            return
        if self._way < 0:
            self._way, self._began = way, time_ns
        self._ended = time_ns
        self._bytes += payload

    def end(self) -> None:
        """The one that goes on, if one does, is over."""
        if self._way < 0:
            return
        self.count[self._way] += 1
        self.bytes[self._way] += self._bytes
        self.duration_ns[self._way] += self._ended - self._began
        self._way, self._bytes = -1, 0
