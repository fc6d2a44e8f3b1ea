# SPDX-License-Identifier: MIT
"""Points are what they say, a gap is one, and what was found is in tables and plots."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench.blocks import plan
from bench.growth import gap, plot, report
from bench.growth.__main__ import parse_arguments
from bench.growth.axes import AXES, GAP, SESSIONS, Point, points
from bench.growth.measure import metrics
from bench.stats import Spread

ROOT = Path(__file__).parents[2]
MANY = 1_000_000


def test_every_point_is_there() -> None:
    for quick in (False, True):
        values = {it.name: it.quick if quick else it.values for it in AXES.values()}
        assert [(it.axis, it.value) for it in points(list(AXES), quick, MANY)] == [
            (name, value) for name, along in values.items() for value in along
        ]


def test_the_last_point_has_as_many_connections_as_there_can_be() -> None:
    assert [it.value for it in points(["connections"], False, 5_000)] == [1, 10, 100, 1_000, 5_000]
    assert [it.value for it in points(["gap"], False, 5_000)][-1] == 10_000


def test_each_session_has_a_connection() -> None:
    scene = Point(SESSIONS, 400).scene()
    assert (scene.sessions, scene.connections, scene.pipes) == (400, 400, 1)
    assert Point(SESSIONS, 1).scene().connections == 16
    assert Point(GAP, 10).scene().gap == 10


def test_each_block_has_each_point_once() -> None:
    every = points(list(AXES), True, MANY)
    steps = plan(every, 3, 1)
    assert steps == plan(every, 3, 1) and steps != plan(every, 3, 2)
    for block in range(3):
        assert {point for at, point in steps if at == block} == set(every)


@pytest.mark.parametrize(
    "arguments", [["--only", "sideways"], ["--reps", "0"], ["--connections", "3"]]
)
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(arguments)
    assert ended.value.code == 2


def test_early_messages_come_before_the_one_they_wait_for() -> None:
    """What the bench's LP sends, read as the wire format says."""
    one, rp_one = socket.socketpair()
    other, rp_other = socket.socketpair()
    server, application = socket.socketpair()
    lp = gap.OutOfStep((one, other), server)
    seen: list[tuple[int, int, int]] = []

    def read(pipe: socket.socket, count: int) -> None:
        for _ in range(count):
            head = pipe.recv(8, socket.MSG_WAITALL)
            conn, number, length = struct.unpack("<HIH", head)
            seen.append((conn, number, length))
            assert len(pipe.recv(length - 8, socket.MSG_WAITALL)) == gap.PAYLOAD

    def rp() -> None:
        for _ in range(2):
            read(rp_other, 3)
            read(rp_one, 1)
            application.sendall(bytes(4 * gap.PAYLOAD))

    thread = threading.Thread(target=rp)
    thread.start()
    assert lp.round(3) == lp.round(3) == 4
    thread.join()
    assert [number for _, number, _ in seen] == [2, 3, 4, 1, 6, 7, 8, 5]
    assert {(conn, length) for conn, _, length in seen} == {(1, 8 + gap.PAYLOAD)}
    for sock in (one, rp_one, other, rp_other, server, application):
        sock.close()


def figure(axis: str, value: int, block: int, rp: float, lp: float | None = None) -> dict[str, Any]:
    cpu = {"rp": rp} | ({"lp": lp} if lp else {})
    return {
        "axis": axis,
        "value": value,
        "block": block,
        "messages": 1000,
        "cpu_seconds": cpu,
        "rss_kib": {role: 2048 for role in cpu},
        "others_share": 0.1,
    }


def test_metrics_are_of_a_message() -> None:
    found = metrics(figure("pipes", 4, 0, 0.010, 0.020))
    assert found == {"cpu.rp": 10.0, "cpu.lp": 20.0, "mib.rp": 2.0, "mib.lp": 2.0}
    assert metrics({"failed": "it fell over"}) == {}


def result() -> dict[str, Any]:
    figures = [
        figure("pipes", 1, 0, 0.010, 0.020),
        figure("pipes", 64, 0, 0.015, 0.020),
        figure("pipes", 1, 1, 0.020, 0.020),
        figure("pipes", 64, 1, 0.050, 0.020),
        figure("gap", 10, 0, 0.002),
        {**figure("gap", 100, 0, 0.0), "failed": "it fell over"},
    ]
    return {
        "command": "bench.growth",
        "started": "now",
        "seed": 1,
        "blocks": 2,
        "pace": {"settle_s": 1.0, "hold_s": 2.0},
        "control": "cubic",
        "machine": {"cpu": "c", "processors_used": [0, 1], "kernel": "k"},
        "versions": {"rp": "rp (TM3) 0"},
        "figures": figures,
    }


def test_report_tells_growth_within_a_block_and_what_failed() -> None:
    for told in (report.text(result()), report.markdown(result())):
        assert "2.00 (1.50..2.50)" in told
        assert "Against pipes" in told and "Against connections" not in told
        assert "Failed: 100 messages that wait for one that is missing: it fell over." in told


def test_plots_show_every_figure() -> None:
    drawn = report.plots(result())
    assert set(drawn) == {"pipes", "gap"}
    tree = ET.fromstring(drawn["pipes"])
    svg = "{http://www.w3.org/2000/svg}"
    words = [it.text for it in tree.iter(f"{svg}text")]
    assert {"rp", "lp", "pipes", "1", "64", "MiB resident"} <= set(words)
    circles = list(tree.iter(f"{svg}circle"))
    assert len(circles) == 2 * 2 * 2
    heights = {it.get("cx"): [] for it in circles}
    for it in circles:
        heights[it.get("cx")].append(float(it.get("cy", "nan")))
    inside = [y for ys in heights.values() for y in ys]
    assert min(inside) >= plot.TOP and max(inside) <= plot.HEIGHT - plot.BOTTOM


@pytest.mark.parametrize("most", [0.0, 0.3, 1.0, 7.0, 99.0, 1234.0])
def test_ticks_are_few_and_reach_far_enough(most: float) -> None:
    found = plot.ticks(most)
    assert found[0] == 0 and found[-1] >= most
    assert 2 <= len(found) <= 6
    assert found[-1] <= max(1.0, 2 * most)


def test_what_is_larger_is_drawn_higher() -> None:
    scale = plot.Scale(0, (1, 100), 10.0)
    assert scale.x(1) < scale.x(10) < scale.x(100)
    assert scale.x(10) == pytest.approx((scale.x(1) + scale.x(100)) / 2)
    assert scale.y(0.0) > scale.y(5.0) > scale.y(10.0)
    one = plot.Panel("t", {"rp": [(5, Spread(1.0, 0.5, 2.0, 3))]})
    ET.fromstring(plot.draw([one], "a < b"))


def test_a_point_of_each_axis_is_measured(tmp_path: Path) -> None:
    """The smallest ones, with the real proxies; in namespaces of the bench's own."""
    build = Path(os.environ.get("TM3_BUILD") or ROOT / "build")
    if not all((build / name).exists() for name in ("rp", "lp")):
        pytest.skip("no rp and lp here: make")
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    command = ["-m", "bench.growth", "--quick", "--only", "pipes,gap", "--build", str(build)]
    done = subprocess.run(
        [sys.executable, *command, "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "growth.json").read_text())["figures"]
    assert not [it for it in figures if "failed" in it], figures
    assert {(it["axis"], it["value"]) for it in figures} == {
        ("pipes", 1),
        ("pipes", 64),
        *(("gap", value) for value in AXES[GAP].quick),
    }
    held = {it["value"]: it["rss_kib"]["rp"] for it in figures if it["axis"] == "gap"}
    # 10,000 messages of 1,000 bytes are really held, so each gap is one.
    assert held[10_000] - held[1] > 9_000
    assert ET.parse(tmp_path / "gap.svg").getroot().tag.endswith("svg")
