# SPDX-License-Identifier: MIT
"""What arrives at the client by each last mile while a program runs, and an event on the way."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.failure import RunFailed
from topologies.lab import Lab

EVERY_S = 0.05
STEP_S = 0.25  # of the series
SETTLES_S = 0.2  # what was under way when it happened has arrived by then
FROM, UNTIL = 0.1, 0.9  # of all bytes: before, paths begin; after, one may have nothing left to do


def received(lab: Lab) -> tuple[int, ...]:
    """Bytes that the client took in by each last mile so far."""
    lines = Path(f"/proc/{lab.client.pid}/net/dev").read_text().splitlines()
    told = {name.strip(): rest for name, _, rest in (line.partition(":") for line in lines)}
    return tuple(int(told[f"client-eth{number}"].split()[0]) for number in range(len(lab.miles)))


@dataclass
class Arrivals:
    """Of an object of `size`; `event` is called once a `share` of it has come."""

    size: int
    share: float
    event: Callable[[], None]
    received: Callable[[], tuple[int, ...]]
    clock: Callable[[], float] = time.monotonic
    samples: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    happened: float | None = None

    def watch(self, process: "subprocess.Popen[bytes]") -> None:
        """Until it has ended."""
        due = time.monotonic()
        while process.poll() is None:
            self.look()
            due = max(due + EVERY_S, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        self.look()

    def look(self) -> None:
        self.samples.append((self.clock(), self.received()))
        if self.happened is None and self.come(-1) >= self.share * self.size:
            self.event()
            self.happened = self.clock()

    def come(self, sample: int) -> int:
        """Bytes by all last miles since the first look."""
        return sum(self.samples[sample][1]) - sum(self.samples[0][1])

    def at_share(self, share: float) -> float:
        """When so much of the object had come. Raises RunFailed."""
        for number, (at, _) in enumerate(self.samples):
            if self.come(number) >= share * self.size:
                return at
        raise RunFailed(f"nobody saw {share:g} of the object come")

    def bytes_per_s(self, begin: float, end: float) -> tuple[float, ...]:
        """By each last mile, between the looks next to these times. Raises RunFailed."""
        chosen = [it for it in self.samples if begin <= it[0] <= end]
        if len(chosen) < 2:
            raise RunFailed("too quick: nobody looked twice before the event, or after it")
        (first_at, first), (last_at, last) = chosen[0], chosen[-1]
        return tuple((b - a) / (last_at - first_at) for a, b in zip(first, last, strict=True))

    def kept(self) -> tuple[float, float]:
        """What is left of all paths' rate after the event, and of the last path's."""
        if self.happened is None:
            raise RunFailed("the event did not happen")
        before = self.bytes_per_s(self.at_share(FROM), self.happened)
        after = self.bytes_per_s(self.happened + SETTLES_S, self.at_share(UNTIL))
        if not before[-1]:
            raise RunFailed("the last path carried nothing before the event")
        if not after[-1]:
            raise RunFailed("the last path carried nothing after the event")
        return sum(after) / sum(before), after[-1] / before[-1]

    def series(self) -> dict[str, Any]:
        """Mbit/s in each step, from the first byte on: together, and by each last mile."""
        started = [it for number, it in enumerate(self.samples) if self.come(number)]
        paths: list[list[float]] = [[] for _ in self.samples[0][1]]
        if started:
            mark_at, mark = started[0]
            for at, now in started:
                if at - mark_at < STEP_S:
                    continue
                for path, was, there in zip(paths, mark, now, strict=True):
                    path.append((there - was) * 8 / 1e6 / (at - mark_at))
                mark_at, mark = at, now
        names = ("first", "second", "third")
        return {
            "series_step_s": STEP_S,
            "series_together_mbps": [sum(each) for each in zip(*paths, strict=True)],
            **{f"series_{name}_mbps": path for name, path in zip(names, paths, strict=False)},
        }
