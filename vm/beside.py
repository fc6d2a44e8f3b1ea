# SPDX-License-Identifier: MIT
"""A group of tests whose guest runs beside another one's: it says what it has to say at its end."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from base.sources import ROOT
from vm.machine import to_stdout


class Beside:
    def __init__(self, name: str, process: "subprocess.Popen[bytes]", said: Path) -> None:
        self.name = name
        self._process, self._said = process, said

    def passes(self) -> bool:
        """Waits for its end."""
        status = self._process.wait()
        to_stdout(self._said.read_bytes())
        return status == 0


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
