# SPDX-License-Identifier: MIT
"""What Wireshark has and tshark has not: entries in its menus, and the windows they open."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture
from tests.dissector.scenes import Scene
from tests.dissector.test_lua import STAND_IN, lines_of

GUI = Path(__file__).parent / "gui.lua"
STATISTICS = [("Statistics", "TM³ pipes"), ("Statistics", "TM³ connections")]
FOLLOW = "Follow TM³ connection"
ASKED, ANSWERED = b"what is it?", [b"this, ", b"that ", b"and the rest"]
OTHER = b"of another connection"
ALL, LAST_BUT_ONE = 99, 10
Line = tuple[str, ...]


@pytest.fixture
def packets(tmp_path: Path) -> Path:
    """Two connections over two pipes; of the second, index 1, an answer comes early."""
    capture = Capture()
    scene = Scene(capture, "10.7.0.1", 0)
    scene.open(2)
    scene.up(0, m.syn(5, "192.0.2.5", 7), m.data(5, 1, OTHER))
    scene.up(1, m.syn(6, "192.0.2.6", 7), m.data(6, 1, ASKED))
    scene.down(0, m.data(6, 0, ANSWERED[0]), m.data(5, 0, OTHER))
    scene.down(1, m.data(6, 2, ANSWERED[2]))
    scene.down(0, m.data(6, 1, ANSWERED[1]))
    path = tmp_path / "packets"
    path.write_text("".join(lines_of(capture)))
    return path


@pytest.fixture(params=["lua5.2", "lua5.4"])
def lua(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} on this machine: sudo make setup")
    return request.param


def use(
    lua: str, packets: Path, *actions: tuple[object, ...], wireshark: str = "4.4"
) -> list[Line]:
    """What gui.lua prints when Wireshark is used so."""
    words = ["\t".join(map(str, action)) for action in actions]
    command = [lua, STAND_IN, tshark.SCRIPT, packets, GUI, wireshark, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\t", 2)) for line in done.stdout.splitlines()]


def texts(said: list[Line], title: str) -> list[str]:
    return [line[2].replace("\\n", "\n") for line in said if line[:2] == ("text", title)]


def pieces(text: str) -> list[bytes]:
    """The bytes of a text in hex, the answers' with a tab in front."""
    title, *lines = text.splitlines()
    assert title == "TM³ connection 1 to 192.0.2.6:7"
    return [b"\t" * line.startswith("\t") + bytes.fromhex(line) for line in lines]


CARRIED = [ASKED, b"\t" + ANSWERED[0], b"\t" + ANSWERED[1] + ANSWERED[2]]


def test_entries_of_the_menus(lua: str, packets: Path) -> None:
    old, new = (
        [line[1:] for line in use(lua, packets, wireshark=version) if line[0] == "entry"]
        for version in ("4.0", "4.4")
    )
    assert old == [*STATISTICS, ("Tools", FOLLOW)]
    assert new == [*old, ("packet", FOLLOW)]


PICKED = [("menu", FOLLOW, 1), ("packet", FOLLOW, 1)]


@pytest.mark.parametrize("picked", PICKED, ids=["the Tools menu", "the menu of a packet"])
def test_a_connection_is_followed(lua: str, packets: Path, picked: tuple[object, ...]) -> None:
    title = "TM³ connection 1"
    in_hex, as_text = ("press", title, "In hex"), ("press", title, "As text")
    said = use(lua, packets, ("open",), ("read", 1, ALL), picked, in_hex, as_text)
    assert ("window", title) in said
    opened, pressed, again = texts(said, title)
    assert pieces(pressed) == CARRIED
    assert again == opened
    lines = opened.splitlines()
    assert lines[0] == "TM³ connection 1 to 192.0.2.6:7"
    assert lines[2::2] == ["what is it?", "this, ", "that and the rest"]
    assert [line.split()[0] for line in lines[1::2]] == ["↑", "↓", "↓"]


LATER: dict[str, list[tuple[object, ...]]] = {
    "a reload": [("open",), ("read", 1, ALL)],
    "nothing in the capture yet": [("open",)],
    "another connection": [("menu", FOLLOW, 0)],
    "more frames": [("read", LAST_BUT_ONE + 1, ALL)],
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_a_window_keeps_what_it_has_found(
    lua: str, packets: Path, later: list[tuple[object, ...]]
) -> None:
    """Its buttons show the bytes that the connection had carried when the window was opened."""
    title = "TM³ connection 1"
    read = LAST_BUT_ONE if later[0][0] == "read" else ALL
    found = [("open",), ("read", 1, read), ("menu", FOLLOW, 1), ("press", title, "In hex")]
    pressed = [("press", title, "In hex"), ("press", title, "As text")]
    said = use(lua, packets, *found, *later, *pressed)
    as_text, in_hex, *again = texts(said, title)
    assert pieces(in_hex) == CARRIED[: 2 if read < ALL else None]
    assert again == [in_hex, as_text]


def test_what_is_no_number_is_not_followed(lua: str, packets: Path) -> None:
    said = use(lua, packets, ("open",), ("read", 1, ALL), ("menu", FOLLOW, "six"))
    assert {line[0] for line in said} == {"entry"}


def test_the_statistics_in_a_window(lua: str, packets: Path) -> None:
    pipes, conns = (title for _, title in STATISTICS)
    said = use(
        lua, packets, ("open",), ("read", 1, ALL), ("menu", pipes), ("menu", conns),
        ("press", conns, "As JSON"), ("press", conns, "As text"),
    )  # fmt: skip
    assert texts(said, pipes)[0].count(":6000") == 4
    table, as_json, again = texts(said, conns)
    assert "192.0.2.6:7" in table
    assert again == table
    found = json.loads(as_json)["connections"]
    assert [row["dst"] for row in found] == ["192.0.2.5:7", "192.0.2.6:7"]
    assert found[1]["down"]["payload_bytes"] == sum(map(len, ANSWERED))
