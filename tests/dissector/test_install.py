# SPDX-License-Identifier: MIT
"""`make install-dissector` puts the file where tshark finds it, and the profile works."""

import csv
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.dissector import tshark

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


PROFILE = tshark.TOP / "dissector" / "profile"
SAMPLES = tshark.TOP / "dissector" / "samples"


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


def table(name: str) -> list[list[str]]:
    lines = (PROFILE / name).read_text().splitlines()
    return list(csv.reader(line for line in lines if not line.startswith("#")))


def test_buttons_and_graphs_filter_for_what_there_is() -> None:
    """A capture with early messages, losses, ends and odd ones has something for each."""
    buttons, graphs = table("dfilter_buttons"), table("io_graphs")
    assert {len(row) for row in buttons} == {4}
    assert {len(row) for row in graphs} == {9}
    expressions = {row[2] for row in [*buttons, *graphs]}
    fields = {row[6] for row in graphs if row[6]}
    assert len(expressions) > 10
    found = {
        name: found_in(SAMPLES / name, expressions | fields)
        for name in ("download.pcap", "endings.pcap")
    }
    for expression in expressions:
        assert any(expression in each for each in found.values()), expression
    assert fields <= found["download.pcap"]


def found_in(capture: Path, expressions: set[str]) -> set[str]:
    """Those that have frames: all asked at once, one statistic of protocols for each."""
    taps = [word for each in expressions for word in ("-z", f"io,phs,{each}")]
    told = tshark.run(capture, "-2", "-q", *taps)
    counts = re.findall(r"^Filter: (.*)\n((?:\n.* frames:\d+ .*)?)", told, re.MULTILINE)
    assert {each for each, _ in counts} == expressions
    return {each for each, rows in counts if rows}
