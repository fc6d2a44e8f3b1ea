# SPDX-License-Identifier: MIT
"""How much of a processor a program allows itself.

An attacker has a machine of its own; here it shares one with the friend, whom it must not slow down
by that alone. Priorities do not help where everything is started at the least one already, and a
control group is not there on every machine. So the program counts what it uses.
"""

import threading
import time
from collections.abc import Callable

AHEAD_S = 0.005  # of processor time: what it did not use before, it may use at once

Clock = Callable[[], float]


class Allowance:
    """`processors`: a share of one, or more than one; of all threads of this process together."""

    def __init__(
        self, processors: float, now: Clock = time.monotonic, used: Clock = time.process_time
    ) -> None:
        self.processors = processors
        self._now, self._used = now, used
        self._at, self._used_s = now(), used()
        self._first_s = self._used_s
        self._left_s = 0.0
        self._lock = threading.Lock()

    def owed_s(self) -> float:
        """How long to wait until what was used has been earned."""
        with self._lock:
            at, used_s = self._now(), self._used()
            earned_s = self.processors * (at - self._at) - (used_s - self._used_s)
            self._at, self._used_s = at, used_s
            self._left_s = min(AHEAD_S, self._left_s + earned_s)
            return max(0.0, -self._left_s / self.processors)

    def used_s(self) -> float:
        """Since there is this allowance."""
        return self._used() - self._first_s
