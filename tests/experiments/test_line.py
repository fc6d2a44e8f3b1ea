# SPDX-License-Identifier: MIT
"""The start line of a client and its runner."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.workloads import line

CLIENT = """
import time
from pathlib import Path
from experiments.workloads import line
line.wait(Path({folder!r}))
print(time.monotonic())
"""


def test_nothing_is_done_before_the_run_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the runner has no processor as soon as it let the client go."""
    touch = Path.touch

    def then_late(path: Path) -> None:
        touch(path)
        time.sleep(0.3)

    argv = [sys.executable, "-c", CLIENT.format(folder=str(tmp_path))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        monkeypatch.setattr(Path, "touch", then_late)
        went = line.start(tmp_path, client, lambda: None)
        assert client.stdout is not None
        assert went <= float(client.stdout.read())
