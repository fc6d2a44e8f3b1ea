# SPDX-License-Identifier: MIT
"""How fast bytes come over a connection, measured every 20 ms."""

from collections import deque

TICK_S = 0.020
NEW = 0.8  # the weight of the latest measurement, as published
BUSY_TICKS = 25  # half a second


class Meter:
    """Two estimates in bytes a second, 0 before anything came.

    `thr` is the published one: all time counts, so it is next to nothing a round trip after the
    last byte. `rate` is the mean of the last half second in which something was asked for: a
    connection that is left idle keeps it.
    """

    def __init__(self) -> None:
        self.thr = 0.0
        self._since_tick = 0
        self._busy: deque[int] = deque(maxlen=BUSY_TICKS)

    @property
    def rate(self) -> float:
        return sum(self._busy) / (len(self._busy) * TICK_S) if self._busy else 0.0

    def came(self, size: int) -> None:
        self._since_tick += size

    def tick(self, busy: bool) -> None:
        """Another 20 ms are over; `busy`: something was asked for in them."""
        self.thr = NEW * self._since_tick / TICK_S + (1 - NEW) * self.thr
        if busy or self._since_tick:
            self._busy.append(self._since_tick)
        self._since_tick = 0
