# SPDX-License-Identifier: MIT
"""The sample captures: as they were found before, and as a reader of its own finds them.

`python -m tests.dissector.test_samples` writes the golden files anew.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.dissector import tshark

SAMPLES = sorted((tshark.TOP / "dissector" / "samples").glob("*.pcap"))
GOLDEN = Path(__file__).parent / "golden"
PORT = 6000
# The reader below knows nothing of MPTCP and the extension.
OVER_TCP = [path for path in SAMPLES if path.stem not in ("mptcp", "extension")]

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])


Found = list[dict[str, Any]]


def read_by_tshark(sample: Path) -> Found:
    """All fields of all messages; payloads by their digest."""
    rows = []
    for frame, message in tshark.messages(sample, "-2"):
        row = {"frame": frame, **{k: v for k, v in message.items() if not k.endswith("_tree")}}
        row["experts"] = tshark.experts(message)
        if "tm3.payload" in row:
            raw = bytes.fromhex(row["tm3.payload"].replace(":", ""))
            row["tm3.payload"] = hashlib.sha1(raw).hexdigest()
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def found(which_tshark: None) -> Callable[[Path], Found]:
    """Each sample is read once. What was found is not to be changed."""
    return cache(read_by_tshark)


@each_sample
def test_golden(found: Callable[[Path], Found], sample: Path) -> None:
    golden = json.loads((GOLDEN / f"{sample.stem}.json").read_text())
    assert found(sample) == golden


@dataclass
class Way:
    """One direction of a pipe, put together."""

    next: int | None = None
    early: dict[int, bytes] = field(default_factory=dict)
    stream: bytes = b""


@dataclass
class Seen:
    frame: int
    time_us: int
    place: int
    up: bool
    conn: int
    number: int
    length: int
    body: bytes
    order: str = ""
    wait_us: int = 0


def packets(path: Path) -> Iterator[tuple[int, int, bytes]]:
    raw, at, number = path.read_bytes(), 24, 0
    while at < len(raw):
        second, us, size, _ = struct.unpack_from("<IIII", raw, at)
        number += 1
        yield number, second * 1_000_000 + us, raw[at + 16 : at + 16 + size]
        at += 16 + size


def cut(way: Way) -> Iterator[tuple[int, int, int, bytes]]:
    while len(way.stream) >= 8:
        conn, number, length = struct.unpack_from("<HIH", way.stream)
        size = {0xFFFF: 14, 0xFFFE: 9}.get(length, length)
        if len(way.stream) < size:
            return
        yield conn, number, length, way.stream[8:size]
        way.stream = way.stream[size:]


def read(path: Path) -> list[Seen]:
    """The messages of a capture, each when its last byte and all before it were there."""
    ways: dict[tuple[bytes, bytes], Way] = {}
    seen: list[Seen] = []
    for frame, time_us, packet in packets(path):
        ip = packet[14:]
        tcp = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4], "big")]
        _, far, sequence = struct.unpack_from(">HHI", tcp)
        flags, payload = tcp[13], tcp[(tcp[12] >> 4) * 4 :]
        way = ways.setdefault((ip[12:20], tcp[:4]), Way())
        if flags & 2:
            way.next = (sequence + 1) % 2**32
        if not payload or way.next is None:
            continue
        way.early[sequence] = max(payload, way.early.get(sequence, b""), key=len)
        moved = True
        while moved:
            moved = False
            for start in sorted(way.early):
                behind = (way.next - start) % 2**32
                if behind < 2**31:
                    more = way.early.pop(start)[behind:]
                    way.stream, way.next = way.stream + more, (way.next + len(more)) % 2**32
                    moved = True
                    break
        for conn, number, length, body in cut(way):
            seen.append(Seen(frame, time_us, len(seen), far == PORT, conn, number, length, body))
    return seen


def judge(seen: list[Seen]) -> None:
    lanes: dict[tuple[int, bool], dict[int, Seen]] = {}
    for message in seen:
        lanes.setdefault((message.conn, message.up), {})[message.number] = message
    for lane in lanes.values():
        due: Seen | None = None
        released: set[int] = set()
        for number in range(len(lane)):
            message = lane[number]
            if due is None or message.place > due.place:
                due = message
            message.wait_us = due.time_us - message.time_us
            message.order = "2" if due is not message else "1"
            if due is not message:
                released.add(due.number)
        for number in released:
            lane[number].order = "34"


@pytest.mark.parametrize("sample", OVER_TCP, ids=[path.stem for path in OVER_TCP])
def test_against_a_reader_of_its_own(found: Callable[[Path], Found], sample: Path) -> None:
    seen = read(sample)
    judge(seen)
    rows = found(sample)
    assert len(rows) == len(seen) > 10
    destinations = {m.conn: m.body for m in seen if m.length == 0xFFFF}
    for message, row in zip(seen, rows, strict=True):
        assert row["frame"] == message.frame
        assert int(row["tm3.conn"]) == message.conn
        assert int(row["tm3.seq"]) == message.number
        assert int(row["tm3.len"]) == message.length
        assert (row["tm3.direction"] == "1") == message.up
        assert row["tm3.order"] in message.order
        assert round(float(row["tm3.wait"]) * 1e6) == message.wait_us
        body = destinations[message.conn]
        assert row["tm3.dst.ip"] == ".".join(map(str, body[:4]))
        assert int(row["tm3.dst.port"]) == int.from_bytes(body[4:], "little")
        if message.length == 0xFFFE:
            assert int(row["tm3.reason"], 0) == message.body[0]
        elif message.length != 0xFFFF:
            assert row["tm3.payload"] == hashlib.sha1(message.body).hexdigest()


def test_the_extension_in_a_sample(found: Callable[[Path], Found]) -> None:
    """Each pipe and connection begins as the extension has it, and the site comes whole."""
    sample = next(path for path in SAMPLES if path.stem == "extension")
    rows = found(sample)
    kinds = [row.get("tm3.ext.type") for row in rows]
    assert [kinds.count(kind) for kind in ("1", "2", "11", "3", "7")] == [4, 4, 5, 5, 1]
    assert all(row["tm3.session"] == "1" for row in rows)
    statistics = json.loads(tshark.run(sample, "-q", "-o", "tm3.statistics:json"))
    assert {row["dst"] for row in statistics["connections"]} == {"10.8.2.2:80"}
    bodies = tshark.field_values(sample, ["http.content_length"], "-2", "-Y", "http.response")
    pictures = [3000 + 4000 * number for number in range(4)]
    assert sorted(int(size) for (size,) in bodies)[1:] == pictures


def test_there_are_samples_with_what_the_readme_says(found: Callable[[Path], Found]) -> None:
    orders = {row.get("tm3.order") for sample in SAMPLES for row in found(sample)}
    assert orders >= {"1", "2", "3", "4"}
    readme = (tshark.SCRIPT.parent / "README.md").read_text()
    assert all(f"samples/{sample.name}" in readme for sample in SAMPLES)


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for sample in SAMPLES:
        path = GOLDEN / f"{sample.stem}.json"
        lines = ",\n ".join(json.dumps(row) for row in read_by_tshark(sample))
        path.write_text(f"[{lines}]\n")


if __name__ == "__main__":
    main()
