# SPDX-License-Identifier: MIT
"""bench-ramp at work: it opens its clients, then takes one step after the other."""

import contextlib
import json
import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.programs import Trouble, last_line

OPEN_SECONDS = 120.0  # thousands of handshakes
MORE_SECONDS = 60.0  # than a step asks, for what is still under way


class Generator:
    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process, self._log = process, log
        self.pid = process.pid
        self.opened = self._line(OPEN_SECONDS)

    def _line(self, seconds: float) -> dict[str, Any]:
        """What it says next. Raises Trouble with its last words where it does not."""
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            why = last_line(self._log) if ready else f"nothing in {seconds:g} s"
            raise Trouble(f"who asks: {why}")
        return json.loads(line)

    def step(self, rate: float, settle_seconds: float, seconds: float) -> dict[str, Any]:
        with contextlib.suppress(BrokenPipeError):  # then its last words say why
            print(f"{rate:.3f} {settle_seconds:g} {seconds:g}", file=self._process.stdin)
            self._process.stdin.flush()
        return self._line(settle_seconds + seconds + MORE_SECONDS)


@contextlib.contextmanager
def asking(command: Sequence[str], log: Path) -> Iterator[Generator]:
    """All its clients are open, and each has had its first answer."""
    pipe = subprocess.PIPE
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True) as process,
    ):
        try:
            yield Generator(process, log)
        finally:
            process.kill()
