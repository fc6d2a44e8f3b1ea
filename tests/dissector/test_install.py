# SPDX-License-Identifier: MIT
"""`make install-dissector` puts the file where tshark finds it, and the profile works."""

import os
import subprocess

import pytest

from tests.dissector import tshark

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


def test_installed_for_a_user() -> None:
    sample = tshark.TOP / "dissector" / "samples" / "web.pcap"
    with tshark.home() as where:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
        environment.pop("XDG_CONFIG_HOME", None)
        environment["HOME"] = str(where)
        install = [tshark.TOP / "dissector" / "install"]
        done = subprocess.run(install, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        command = [*tshark.COMMAND, "-n", "-C", "TM3", "-2", "-r", str(sample), "-Y", "tm3"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert [line for line in done.stderr.splitlines() if line not in tshark.HARMLESS] == []
    lines = done.stdout.splitlines()
    assert "GET /index.html" in done.stdout
    # The columns of the profile: order and wait are in the line of an early message.
    early = next(line for line in lines if "(early, waits" in line)
    assert " data early 0." in early
