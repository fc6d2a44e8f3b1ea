# SPDX-License-Identifier: MIT
"""Installed and named on the command line as well: the dissector that was loaded first counts."""

import os
import subprocess

import pytest

from tests.dissector import tshark

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


def test_loaded_twice() -> None:
    sample = tshark.TOP / "dissector" / "samples" / "web.pcap"
    once = tshark.run(sample, "-q", "-o", "tm3.statistics:json")
    again = tshark.run(
        sample, "-X", f"lua_script:{tshark.SCRIPT}", "-q", "-o", "tm3.statistics:json"
    )
    assert again == once
    with tshark.home() as where:
        plugins = where / ".local" / "lib" / "wireshark" / "plugins"
        plugins.mkdir(parents=True)
        (plugins / "tm3.lua").write_bytes(tshark.SCRIPT.read_bytes())
        command = [*tshark.COMMAND, "-n", "-r", str(sample), "-X", f"lua_script:{tshark.SCRIPT}"]
        command += ["-q", "-o", "tm3.statistics:json", *tshark.REASSEMBLE]
        environment = {**os.environ, "HOME": str(where), "XDG_CONFIG_HOME": str(where)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert [line for line in done.stderr.splitlines() if line not in tshark.HARMLESS] == []
    assert done.stdout == once
