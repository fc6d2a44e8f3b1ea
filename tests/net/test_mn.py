# SPDX-License-Identifier: MIT
"""Mininet's own command takes the topologies, from any directory."""

import re
import subprocess
from pathlib import Path

import pytest

from topologies.lab import Lab
from topologies.topos import LastMile

CUSTOM = Path(__file__).parents[2] / "topologies" / "lastmile.py"


def mn(topo: str, *more: str, directory: Path, script: str = "") -> str:
    done = subprocess.run(
        ["mn", "--custom", str(CUSTOM), "--topo", topo, *more],
        cwd=directory,
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("topo", "links"),
    [
        ("lastmile,preset=lte", 2),
        ("lastmile,preset=lossy,loss=0,rtt_ms=30,bottleneck=sender", 2),
        ("twolastmiles", 3),
        ("twolastmiles,preset=wired,link=linkem", 3),
    ],
)
def test_everybody_reaches_everybody(labs: Path, tmp_path: Path, topo: str, links: int) -> None:
    said = mn(topo, "--test", "pingall", directory=tmp_path)
    assert "0% dropped (6/6 received)" in said, said
    assert f"Stopping {links} links" in said
    assert "Stopping 0 switches" in said and "Stopping 3 hosts" in said
    assert "completed in" in said


def test_the_parameters_arrive(labs: Path, tmp_path: Path) -> None:
    script = "client ping -c 3 -i 0.2 rp\n"
    said = mn("lastmile,preset=lte,rtt_ms=120", directory=tmp_path, script=script)
    times = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", said)]
    assert times and 119 < min(times) < 125, said


@pytest.mark.parametrize(
    ("topo", "says"),
    [
        ("lastmile,preset=lete", "preset: 'lete' is none of wired"),
        ("lastmile,preset=lte,down_mbps=-3", "down_mbps: -3 is not from"),
        ("lastmile,preset=lte,rtt_ms=50ms", "rtt_ms: '50ms' is not a number, without its unit"),
        ("twolastmiles,loss=2", "loss: 2 is not from 0 to 1"),
        ("lastmile,speed=3", "speed: no such parameter"),
    ],
)
def test_a_wrong_parameter_is_named_and_costs_nobody_else(
    labs: Path, tmp_path: Path, topo: str, says: str
) -> None:
    """mn would now end every Mininet of the machine; with these topologies it does not."""
    junk = tmp_path / "keep.log"
    junk.write_text("somebody's log")
    with Lab(LastMile("wired")) as other:
        said = mn(topo, "--test", "pingall", directory=tmp_path)
        assert f"ParameterError: {says}" in said, said
        assert "Removing" not in said, said
        other.check()
        other.client.inside("ping", "-c", "1", "-W", "3", "10.0.9.2")
    assert junk.exists()
