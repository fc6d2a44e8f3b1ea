# SPDX-License-Identifier: MIT
"""Both Luas that Wireshark comes with run the dissector alike, number for number.

tshark here has Lua 5.2. What 5.4 may do differently (integers beside floats, how they are written)
is seen by running the same packets through both, with a stand-in for Wireshark's API.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dissector import tshark
from tests.dissector.packets import EPOCH_US, Capture
from tests.dissector.scenes import play_all
from tests.dissector.test_order import SCENES
from tests.dissector.test_resumed import RESUMED

STAND_IN = Path(__file__).parent / "stand_in.lua"


def lines_of(capture: Capture) -> list[str]:
    ordered = sorted(capture.packets)
    return [
        f"{number} {(EPOCH_US + time_us) / 1e6:.6f} 54 {packet.hex()}\n"
        for number, (time_us, _, packet) in enumerate(ordered, 1)
    ]


def run(lua: str, packets: Path) -> str:
    done = subprocess.run(
        [lua, STAND_IN, tshark.SCRIPT, packets], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, f"{lua}: {done.stderr}"
    return done.stdout


def test_lua_5_2_and_5_4_agree(tmp_path: Path) -> None:
    luas = ["lua5.2", "lua5.4"]
    missing = [lua for lua in luas if shutil.which(lua) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on this machine: sudo make setup")
    # All scenes but the one with 4 MiB of early data, and those that need reassembly.
    scenes = {n: play for n, play in (SCENES | RESUMED).items() if n != "early_limit"}
    capture, _ = play_all(scenes)
    packets = tmp_path / "packets"
    packets.write_text("".join(lines_of(capture)))
    old, new = (run(lua, packets) for lua in luas)
    assert old == new
    assert old.count("+ tm3.order") > 200
    assert "handed on" in old
    assert "+ tm3.wait 0.002000000" in old
    assert '"format": 1' in old
