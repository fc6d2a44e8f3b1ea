# SPDX-License-Identifier: MIT
"""The plots of the runs so far, for those who watch a sweep.

They are drawn between two blocks, when nothing is measured, by a process that ends before the next
run begins; and so seldom that they take a twentieth of the sweep's time.
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from base.sources import ROOT

SHARE = 0.05
MOST_S = 120.0  # of one drawing


class SoFar:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._not_before = 0.0

    def draw(self) -> None:
        """What cannot be drawn is told when the sweep ends."""
        began = time.monotonic()
        if began < self._not_before:
            return
        program = (sys.executable, "-P", "-m", "experiments", "plot", str(self._folder))
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                program,
                check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                timeout=MOST_S,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        ended = time.monotonic()
        self._not_before = ended + (ended - began) * (1 / SHARE - 1)
