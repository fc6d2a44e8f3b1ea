# SPDX-License-Identifier: MIT
"""How long pipes, paths and devices are killed, and what the proxies hold meanwhile.

For some seconds, or, by `make soak`, for so long that what grows with each kill would show.
"""

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.relay.programs import Program

SOAK_S = float(os.environ.get("TM3_SOAK_SECONDS", "0"))
LONG = pytest.mark.timeout(120 + 2 * SOAK_S)
GROWN_KIB = 8192
# Between two connections of each who has some, in a long run: without it, traffic keeps the cores
# from those who kill, and many fewer pipes are killed.
PAUSE_S = 0.05 if SOAK_S else 0.0


def grown(samples: list[int], by: Callable[[list[int]], int]) -> int:
    """By how much the last fifth of the samples is above the second."""
    fifth = max(1, len(samples) // 5)
    return by(samples[-fifth:]) - by(samples[fifth : 2 * fifth] or samples)


@dataclass(frozen=True)
class Held:
    """What a proxy holds, sampled while its pipes are killed.

    At rest it has `fds` descriptors. Each of the `workers` of the traffic has a connection, and so
    have those before it that the server has not closed yet, on a busy machine two or three; each
    of the `pipes` has two for a moment.
    """

    proxy: Program
    fds: int
    workers: int
    pipes: int
    kib: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def look(self) -> None:
        self.kib.append(self.proxy.rss_kib())
        self.open.append(self.proxy.fd_count())

    def check(self) -> None:
        """Descriptors are within what runs at a time; over a long run neither grows."""
        name = self.proxy.name
        kib = grown(self.kib, max)
        # Beside a kill there are for a moment now two more, and now four: that is no growth.
        descriptors = grown(self.open, statistics.median_low)
        print(f"{name}: {min(self.kib)} to {max(self.kib)} KiB, grown {kib}")
        print(f"{name}: {min(self.open)} to {max(self.open)} descriptors, grown {descriptors}")
        most = self.fds + 4 * self.workers + self.pipes
        assert max(self.open) <= most, f"{name} held {max(self.open)} descriptors of {most}"
        if SOAK_S:
            assert kib < GROWN_KIB, f"{name} grew: {some_of(self.kib)}"
            assert descriptors <= self.workers, f"{name} grew: {some_of(self.open)}"


def some_of(samples: list[int]) -> list[int]:
    return samples[:: len(samples) // 50 + 1]
