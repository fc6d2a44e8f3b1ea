# SPDX-License-Identifier: MIT
"""An actor that connects again and again, whatever became of those before: how long each took."""

import threading
import time
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.redialling import PAUSE_S

WORKERS = 10  # so many may be late before another one waits for them


@dataclass(frozen=True, kw_only=True)
class Connects(Actor):
    """Every so often connect(), a request, and the one byte that it asked for.

    Of each when it was due, by time.monotonic(), and how long until it was served. One that failed
    is tried again and counts until it is served; how often that was is `failed`.
    """

    every_s: float = 0.02
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        served: list[tuple[float, float]] = []
        failed: list[float] = []
        threads = [
            threading.Thread(target=self._work, args=(scene, n, served, failed), daemon=True)
            for n in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"served": sorted(served), "failed": sorted(failed)}

    def _work(
        self, scene: Scene, number: int, served: list[tuple[float, float]], failed: list[float]
    ) -> None:
        due = scene.began + number * self.every_s
        while not scene.over.wait(max(0.0, due - time.monotonic())):
            while not self._one(scene, failed):
                if scene.over.wait(PAUSE_S):
                    break
            served.append((due, time.monotonic() - due))
            due += WORKERS * self.every_s

    def _one(self, scene: Scene, failed: list[float]) -> bool:
        try:
            with scene.dial(self.port) as connection:
                scene.to_hang_up.append(connection)
                connection.exchange(scene.request(down=1))
                return True
        except OSError:
            if not scene.over.is_set():
                failed.append(time.monotonic())
            return False
