# SPDX-License-Identifier: MIT
"""Losses on a pipe: what TCP sent again, what was only overtaken, and how long messages that were
there already were held up in the pipe. `test_random` has the same in numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import ACK, Capture, Endpoint, tcp_packet

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

# Of a pipe over MPTCP the data are looked at, not the segments of its subflows.
SAMPLES = sorted((tshark.TOP / "dissector" / "samples").glob("*.pcap"))
SAMPLES = [path for path in SAMPLES if path.stem != "mptcp"]
RP = Endpoint("10.9.0.1", 6000)
ROUND_TRIP_US = 40_000
BEGIN_US = ROUND_TRIP_US + 1000
LATE, LATE_RESENT = "3", "4"


def statistics(path: Path) -> dict[str, Any]:
    return json.loads(tshark.run(path, "-q", "-o", "tm3.statistics:json"))


def sent_again(sample: Path) -> int:
    """Wireshark calls what follows another segment within its round trip "out of order", also where
    the capture, taken before the loss, has the same segment twice."""
    fields = ["tcp.stream", "tcp.srcport", "tcp.seq", "tcp.len", "tcp.analysis.retransmission"]
    alone = ("--disable-protocol", "x11", "-Y", "tcp.len > 0")
    seen, count = set(), 0
    for *segment, retransmission in tshark.field_values(sample, fields, *alone, script=None):
        count += bool(retransmission) or tuple(segment) in seen
        seen.add(tuple(segment))
    return count


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_as_many_were_sent_again_as_wireshark_says(sample: Path) -> None:
    pipes = statistics(sample)["pipes"]
    found = sum(row[way]["tcp_resent"] for row in pipes for way in ("up", "down"))
    assert found == sent_again(sample)


def play(
    capture: Capture, lp: str, gap_us: int, *, handshake: bool = True, fifth: bool = False
) -> None:
    """SYN and one message; then message 2 comes so long behind message 3 of its pipe. The fifth
    comes meanwhile on another one."""
    near, other, seq = Endpoint(lp, 40_000), Endpoint(lp, 40_001), 1001
    if handshake:
        capture.add(0, tcp_packet(near, RP, 1000, b"", 2, 0))
        capture.add(ROUND_TRIP_US // 2, tcp_packet(RP, near, 5000, b"", 2 | ACK, 1001))
        capture.add(ROUND_TRIP_US, tcp_packet(near, RP, 1001, b"", ACK, 5001))
    first = m.syn(1, "192.0.2.1", 9) + m.data(1, 1, b"one")
    parts = [first, m.data(1, 2, b"two"), m.data(1, 3, b"three"), m.data(1, 4, b"four")]
    times_us = [0, 1000 + gap_us, 1000, 2000]
    for part, at_us in zip(parts, times_us, strict=True):
        capture.add(BEGIN_US + at_us, tcp_packet(near, RP, seq, part))
        seq += len(part)
    if fifth:
        capture.add(BEGIN_US + 2500, tcp_packet(other, RP, 1, m.data(1, 5, b"five")))


# How late the segment is, whether the handshake is there, and whether it was sent again.
GAPS = [(1500, True, 0), (15_000, True, 0), (45_000, True, 1), (1500, False, 0), (5000, False, 1)]


@pytest.fixture(scope="module")
def ways(which_tshark: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The uplinks of a capture with all gaps, each behind a local proxy of its own."""
    capture, path = Capture(), tmp_path_factory.mktemp("losses") / "gaps.pcap"
    for number, (gap_us, handshake, _) in enumerate(GAPS):
        play(capture, f"10.5.0.{number}", gap_us, handshake=handshake)
    capture.write(path)
    return {row["lp"].partition(":")[0]: row["up"] for row in statistics(path)["pipes"]}


@pytest.mark.parametrize("number", range(len(GAPS)), ids=["-".join(map(str, it)) for it in GAPS])
def test_overtaken_is_not_sent_again(ways: dict[str, dict[str, Any]], number: int) -> None:
    way = ways[f"10.5.0.{number}"]
    assert way["tcp_resent"] == GAPS[number][2]
    assert way["tcp_out_of_order"] == 2


def test_messages_behind_a_loss_were_held_up_in_their_pipe(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "loss.pcap"
    play(capture, "10.5.0.1", 45_000)
    capture.write(path)
    found = [(each["tm3.seq"], each.get("tm3.held")) for _, each in tshark.messages(path)]
    assert found == [
        ("0", None), ("1", None), ("2", None), ("3", "0.045000000"), ("4", "0.044000000"),
    ]  # fmt: skip
    found = statistics(path)
    pipe, conn = found["pipes"][0], found["connections"][0]
    for held in (pipe["up"]["held_ms"], conn["up"]["held_ms"], conn["held_ms"]):
        assert held["p50"] == 0
        assert (held["p75"], held["max"]) == pytest.approx((44, 45), abs=0.001)
    assert conn["up"]["reorder_ms"]["max"] == 0


@pytest.mark.parametrize(("gap_us", "order"), [(15_000, LATE), (45_000, LATE_RESENT)])
def test_a_gap_is_said_to_be_a_retransmissions_only_if_it_was(
    tmp_path: Path, gap_us: int, order: str
) -> None:
    """Message 5 waits, on another pipe, for those behind the hole."""
    capture, path = Capture(), tmp_path / "gap.pcap"
    play(capture, "10.5.0.1", gap_us, fifth=True)
    capture.write(path)
    rows = tshark.messages(path)
    by_number = {each["tm3.seq"]: each["tm3.order"] for _, each in rows}
    assert by_number["4"] == order
