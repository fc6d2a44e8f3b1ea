# SPDX-License-Identifier: MIT
"""Captures of both ends joined: each message once, with the time that it was under way."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dissector import join
from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

LP, RP = "10.7.0.1", "10.9.0.1"
ONE_WAY_US, CLOCK_US = 20_000, 5_000_000
LATE_US, AGAIN_US = 7_000, 60_000


@dataclass
class BothEnds(Capture):
    """What is put on the wire, as each end sees it; RP's clock is ahead."""

    at_lp: Capture = field(default_factory=Capture)
    at_rp: Capture = field(default_factory=Capture)
    more_us: int = 0  # under way, beside what is usual
    lost: bool = False

    def add(self, time_us: int, packet: bytes) -> None:
        super().add(time_us, packet)
        up = packet[26:30] == bytes(map(int, LP.split(".")))
        there = time_us + ONE_WAY_US + self.more_us
        if up or not self.lost:
            self.at_lp.add(time_us if up else there, packet)
        if not up or not self.lost:
            self.at_rp.add((there if up else time_us) + CLOCK_US, packet)


def play() -> BothEnds:
    """Two pipes that arrive in the other order; one message late, one lost at first."""
    both = BothEnds()
    pipes = [TcpStream(both, Endpoint(LP, 40_000 + n), Endpoint(RP, 6000)) for n in range(2)]
    both.more_us = 100
    pipes[0].open(0)
    both.more_us = 0
    pipes[1].open(50)
    pipes[0].up(10_000, m.syn(1, "192.0.2.1", 9) + m.data(1, 1, b"question"))
    pipes[1].down(100_000, m.data(1, 0, b"first"))
    both.more_us = LATE_US
    pipes[0].down(101_000, m.data(1, 1, b"late"))
    both.more_us, both.lost = 0, True
    pipes[1].down(102_000, m.data(1, 2, b"lost at first"))
    both.lost = False
    pipes[1].down(103_000, m.data(1, 3, b"behind it"))
    pipes[1].down_next -= len(m.data(1, 2, b"lost at first") + m.data(1, 3, b"behind it"))
    pipes[1].down(102_000 + AGAIN_US, m.data(1, 2, b"lost at first"))
    pipes[1].down_next += len(m.data(1, 3, b"behind it"))
    both.lost = True
    pipes[0].down(300_000, m.fin(1, 4))
    return both


def write(folder: Path) -> tuple[Path, Path]:
    both = play()
    paths = folder / "lp.pcap", folder / "rp.pcap"
    both.at_lp.write(paths[0])
    both.at_rp.write(paths[1])
    return paths


def check(found: list[join.Journey], offset: float) -> None:
    assert offset == pytest.approx(CLOCK_US / 1e6, abs=1e-5)
    rows = {(row["direction"], row["number"]): row for row in map(join.row_of, found)}
    assert len(rows) == len(found) == 7
    us = {key: round(row["one_way_s"] * 1e6) for key, row in rows.items() if row["came"]}
    lost = AGAIN_US + ONE_WAY_US
    assert us == {
        ("up", 0): ONE_WAY_US, ("up", 1): ONE_WAY_US, ("down", 0): ONE_WAY_US,
        ("down", 1): ONE_WAY_US + LATE_US, ("down", 2): lost, ("down", 3): lost - 1000,
    }  # fmt: skip
    assert rows["down", 4]["came"] is None
    assert rows["down", 3]["held_s"] == pytest.approx((AGAIN_US - 1000) / 1e6)
    assert {key[1]: row["pipe"] for key, row in rows.items() if key[0] == "down"} == {
        0: 1, 1: 0, 2: 1, 3: 1, 4: 0,
    }  # fmt: skip


@pytest.mark.parametrize("swapped", [False, True], ids=["lp first", "rp first"])
def test_one_way_delays(tmp_path: Path, swapped: bool) -> None:
    paths = write(tmp_path)
    check(*join.joined(paths[::-1] if swapped else paths, None, tshark.COMMAND))


def test_of_a_merged_capture(tmp_path: Path) -> None:
    merged = tmp_path / "both.pcapng"
    subprocess.run(["mergecap", "-I", "none", "-w", merged, *write(tmp_path)], check=True)
    check(*join.joined([merged], None, tshark.COMMAND))


def test_the_offset_is_believed(tmp_path: Path) -> None:
    found, offset = join.joined(write(tmp_path), 5.001, tshark.COMMAND)
    assert offset == 5.001
    rows = {(row["direction"], row["number"]): row for row in map(join.row_of, found)}
    assert rows["up", 0]["one_way_s"] == pytest.approx(0.019)
    assert rows["down", 0]["one_way_s"] == pytest.approx(0.021)


def test_as_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dissector.join", *write(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tshark.TOP)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["number"] for row in rows if row["direction"] == "down"] == list("01234")
    assert "RP's clock is +5000.000 ms ahead" in done.stderr
    done = subprocess.run([*command, "--format", "jsonl"], capture_output=True, cwd=tshark.TOP)
    assert done.stdout.count(b"\n") == 7


def numbered(capture: Capture) -> Capture:
    """With the numbers that a sender gives to its packets, as Linux does."""
    packets = [
        (time, place, packet[:18] + place.to_bytes(2, "big") + packet[20:])
        for place, (time, _, packet) in enumerate(capture.packets, 1)
    ]
    return Capture(packets)


def test_two_points_in_one_capture_count_once(tmp_path: Path) -> None:
    """Both ends by one clock, read as it is: what one end has seen is not counted again."""
    both, path = BothEnds(), tmp_path / "merged.pcap"
    pipe = TcpStream(both, Endpoint(LP, 40_000), Endpoint(RP, 6000))
    pipe.open(0)
    pipe.up(50_000, m.syn(1, "192.0.2.1", 9))
    for number in range(20):
        pipe.down(100_000 + number * 1000, m.data(1, number, b"payload"))
        pipe.up(100_100 + number * 1000, m.data(1, number + 1, b"more"))
    lp, rp = numbered(both.at_lp), numbered(both.at_rp)
    back = [(time - CLOCK_US, place + 1000, packet) for time, place, packet in rp.packets]
    Capture(lp.packets + back).write(path)
    alone = tmp_path / "lp.pcap"
    lp.write(alone)
    found, of_one = (
        json.loads(tshark.run(each, "-q", "-o", "tm3.statistics:json")) for each in (path, alone)
    )
    (pipe_row,), (as_one,) = found["pipes"], of_one["pipes"]
    assert pipe_row.pop("captured_twice") == 1
    for way in ("up", "down"):
        assert pipe_row[way]["frames"] == as_one[way]["frames"]
        assert pipe_row[way]["tcp_resent"] == pipe_row[way]["tcp_out_of_order"] == 0
        assert pipe_row[way]["messages"] == as_one[way]["messages"]
    assert found["connections"][0]["up"]["duplicates"] == 0
    for passes in ((), ("-2",)):
        rows = tshark.field_values(path, ["frame.number"], *passes, "-Y", "tm3.expert.twice")
        assert len(rows) == 1


def test_captures_of_two_worlds(tmp_path: Path) -> None:
    one, _ = write(tmp_path)
    both, other = BothEnds(), tmp_path / "other.pcap"
    TcpStream(both, Endpoint("10.1.1.1", 1), Endpoint(RP, 6000)).open(0)
    both.at_lp.write(other)
    with pytest.raises(join.JoinError, match="no message is in both"):
        join.joined((one, other), None, tshark.COMMAND)
