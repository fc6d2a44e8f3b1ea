# SPDX-License-Identifier: MIT
"""A group of tests whose guest runs beside another one's: what it says is shown after that."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from base.sources import ROOT
from vm.machine import to_stdout

LOOK_S = 1.0


class Beside:
    def __init__(self, name: str, process: "subprocess.Popen[bytes]", said: Path) -> None:
        self.name = name
        self._process, self._said = process, said

    def passes(self) -> bool:
        """Waits for its end; shows what it has said so far, then what it says as it says it."""
        with self._said.open("rb") as said:
            while True:
                status = self._process.poll()
                to_stdout(said.read())
                if status is not None:
                    return status == 0
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(LOOK_S)


@contextmanager
def beside(name: str, results: Path, words: Sequence[str]) -> Iterator[Beside]:
    """It ends with the block, and with who started it."""
    group = ["test", "--only", name, "--results", str(results), "--", *words]
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", sys.executable, "-m", "vm", *group],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Beside(name, process, Path(said.name))
        finally:
            process.terminate()
            process.wait()
