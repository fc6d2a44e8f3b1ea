# SPDX-License-Identifier: MIT
"""The page of a sweep while it runs, by a process of its own, after all others in the queue for a
core: what is measured shares them, and forks, which a process with threads should not do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.processes import end_with_parent, renice
from base.sources import ROOT
from experiments.watch.server import Server

END_S = 5.0
LAST = 19  # of all nice values


def found(place: tuple[str, int]) -> tuple[str, int]:
    """A place that is free now; where the port is 0, with its number. Raises PortTaken."""
    with Server(place) as server:
        host, port = server.server_address[:2]
        return str(host), int(port)


@contextmanager
def beside(folder: Path, place: tuple[str, int]) -> Iterator[int]:
    """`tm3lab watch FOLDER` while the block runs; yields its process. That is a session of its own:
    it has no part in what a terminal's keys end."""
    port = f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "experiments", "watch", str(folder), "--port", port],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=lambda: end_with_parent(signal.SIGTERM),
    )
    renice(process.pid, LAST)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
