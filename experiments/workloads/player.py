# SPDX-License-Identifier: MIT
"""An actor that plays adaptive video: chunk after chunk, each as good as the rate allows.

How much a player wants to have before it begins, before it goes on, and at most, and which share
of the rate it dares to use, are those of a common player (ExoPlayer's). The rates of the ladder are
ours.
"""

import time
from dataclasses import dataclass
from statistics import mean
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.exchange import Connection

LADDER_KBPS = (100, 250, 500, 1000, 2500, 4500)
STARTS_S = 2.5  # of video, before it begins
AGAIN_S = 5.0  # before it goes on after it stood still
MOST_S = 15.0  # it loads no further ahead
DARES = 0.75  # of the rate
LAST = 3  # chunks whose rate counts


class Playback:
    """What was loaded and what was shown. Times are seconds since the player was opened."""

    def __init__(self) -> None:
        self.loaded_s = self.shown_s = self.stalled_s = 0.0
        self.stalls = 0
        self.began_s: float | None = None  # the first picture
        self._plays = False
        self._at = 0.0

    def upto(self, now: float) -> None:
        """Nothing was loaded since the last call."""
        passed, self._at = now - self._at, now
        if self._plays:
            left = self.loaded_s - self.shown_s
            self.shown_s += min(passed, left)
            if passed < left:
                return
            self._plays, self.stalls, passed = False, self.stalls + 1, passed - left
        if self.began_s is not None:
            self.stalled_s += passed

    def came(self, now: float, seconds: float) -> None:
        """So much more video."""
        self.upto(now)
        self.loaded_s += seconds
        wanted = STARTS_S if self.began_s is None else AGAIN_S
        if not self._plays and self.ahead_s >= wanted:
            self._plays = True
            if self.began_s is None:
                self.began_s = now

    @property
    def ahead_s(self) -> float:
        return self.loaded_s - self.shown_s


def quality(rates_kbps: list[float]) -> int:
    """The best of the ladder that the latest chunks' rates allow, in kbit/s."""
    dares = DARES * mean(rates_kbps[-LAST:]) if rates_kbps else 0.0
    return max([it for it in LADDER_KBPS if it <= dares], default=LADDER_KBPS[0])


@dataclass(frozen=True, kw_only=True)
class Player(Actor):
    """Chunks of `chunk_s` on one connection, one after the other, for `seconds` in all."""

    chunk_s: float = 2.0
    seconds: float = 30.0

    def run(self, scene: Scene) -> dict[str, Any]:
        opened = time.monotonic()
        playback = Playback()
        chosen: list[int] = []
        rates: list[float] = []
        with scene.dial(self.port) as connection:
            while (now := time.monotonic() - opened) < self.seconds:
                playback.upto(now)
                too_much = playback.ahead_s + self.chunk_s - MOST_S
                if too_much > 0:
                    time.sleep(min(too_much, self.seconds - now))
                    continue
                chosen.append(quality(rates))
                rates.append(self._load(scene, connection, chosen[-1]))
                playback.came(time.monotonic() - opened, self.chunk_s)
        playback.upto(time.monotonic() - opened)
        return {
            "began_s": playback.began_s,
            "stalls": playback.stalls,
            "stalled_s": playback.stalled_s,
            "kbps": chosen,
            "took_s": time.monotonic() - opened,
        }

    def _load(self, scene: Scene, connection: Connection, kbps: int) -> float:
        """The rate that the chunk had, from its request to its last byte."""
        size = round(kbps * 1e3 / 8 * self.chunk_s)
        times = connection.exchange(scene.request(down=size))
        return size * 8e-3 / (times.last - times.asked)
