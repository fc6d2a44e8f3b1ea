# SPDX-License-Identifier: MIT
"""The statistics tshark prints, against what was generated."""

import json
import math
from pathlib import Path

import pytest

from tests.dissector import generator, tshark

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


@pytest.fixture(scope="module")
def generated(
    which_tshark: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[generator.Session], dict[str, list[dict]], Path]:
    sessions, capture, _ = generator.make_sessions(77, 25)
    path = tmp_path_factory.mktemp("statistics") / "many.pcap"
    capture.write(path)
    text = tshark.run(path, "-q", "-o", "tm3.statistics:json")
    return sessions, json.loads(text), path


def percentile(values: list[int], share: float) -> float:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1] / 1000


def check_delays(row: dict, sent: list[generator.Sent]) -> None:
    """Of these messages: what those that were delivered waited, and what all were held."""
    waits = [m.wait_us for m in sent if m.order != "copy" and m.wait_us is not None]
    for name, values in (("reorder_ms", waits), ("held_ms", [m.held_us for m in sent])):
        shares = (("p50", 0.5), ("p75", 0.75), ("p99", 0.99), ("max", 1)) if values else ()
        wanted = {key: percentile(values, share) for key, share in shares}
        found = row[name] or {}  # without any an empty list
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert found[key] == pytest.approx(value, abs=0.001)


def first_byte_ms(conn: generator.Connection) -> float | None:
    """From the SYN to when the answer's first byte was due; None if it has none."""
    syn = next(m for m in conn.sent if m.kind == "syn")
    answer = [m for m in conn.sent if not m.up and m.payload and m.order != "copy"]
    first = min(answer, key=lambda m: m.number, default=None)
    if first is None or first.wait_us is None:
        return None
    return (first.arrived_us + first.wait_us - syn.arrived_us) / 1000


def test_connections(generated: tuple[list[generator.Session], dict, Path]) -> None:
    sessions, found, _ = generated
    rows = {(row["dst"], row["id"]): row for row in found["connections"]}
    conns = [conn for session in sessions for conn in session.connections]
    assert len(rows) == len(conns)
    for conn in conns:
        row = rows[f"{conn.address}:{conn.port}", conn.id]
        for way, up in (("up", True), ("down", False)):
            sent = [message for message in conn.sent if message.up == up]
            assert row[way]["messages"] == len(sent)
            assert row[way]["payload_bytes"] == sum(len(message.payload) for message in sent)
            assert row[way]["pipes"] == len({message.pipe for message in sent})
            assert row[way]["duplicates"] == sum(message.order == "copy" for message in sent)
            check_delays(row[way], sent)
        check_delays(row, conn.sent)
        wanted = first_byte_ms(conn)
        assert row.get("first_byte_ms") == (wanted and pytest.approx(wanted, abs=0.001))
        assert row["pipes"] == len({message.pipe for message in conn.sent})
        ended = any(message.kind == "fin" for message in conn.sent)
        assert (row["end"] == "open") == (not ended)


def test_pipes(generated: tuple[list[generator.Session], dict, Path]) -> None:
    sessions, found, path = generated
    rows = {(row["lp"].split(":")[0], row["pipe"]): row for row in found["pipes"]}
    assert len(rows) == sum(session.pipes for session in sessions)
    wire: dict[tuple[str, int], int] = {}
    fields = ["ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "frame.len"]
    for source, target, near, far, size in tshark.field_values(
        path, fields, "-o", "tm3.content:FALSE"
    ):
        lp, port = (source, near) if far == "6000" else (target, far)
        wire[lp, int(port) - 40_000] = wire.get((lp, int(port) - 40_000), 0) + int(size)
    for session in sessions:
        total = sum(len(message.payload) for message in session.sent())
        for pipe in range(session.pipes):
            row = rows[session.lp, pipe]
            sent = [message for message in session.sent() if message.pipe == pipe]
            payload = sum(len(message.payload) for message in sent)
            ways = (row["up"], row["down"])
            for way, up in zip(ways, (True, False), strict=True):
                check_delays(way, [message for message in sent if message.up == up])
            assert sum(way["messages"] for way in ways) == len(sent)
            assert sum(way["payload_bytes"] for way in ways) == payload
            assert sum(way["wire_bytes"] for way in ways) == wire[session.lp, pipe]
            assert row["efficiency"] == pytest.approx(payload / wire[session.lp, pipe])
            assert row["share"] == pytest.approx(payload / total if total else 0)


def test_there_is_something_to_wait_for(
    generated: tuple[list[generator.Session], dict, Path],
) -> None:
    sessions, _, _ = generated
    conns = [conn for session in sessions for conn in session.connections]
    assert any(first_byte_ms(conn) is None for conn in conns)
    for session in sessions:
        for message in session.sent():
            if message.wait_us and message.held_us:
                return
    pytest.fail("no message of these waits, or none is held up")


def test_two_passes_count_once(generated: tuple[list[generator.Session], dict, Path]) -> None:
    _, found, path = generated
    twice = json.loads(tshark.run(path, "-2", "-q", "-o", "tm3.statistics:json"))
    assert twice == found


def test_the_table_tells_the_same(generated: tuple[list[generator.Session], dict, Path]) -> None:
    _, found, path = generated
    table = tshark.run(path, "-q", "-o", "tm3.statistics:table")
    assert "TM³ pipes" in table
    lines = table[table.index("TM³ connections") :].splitlines()[3:]
    cells = [line.split() for line in lines if line[:5].strip().isdigit()]
    assert len(cells) == len(found["connections"])
    for row, each in zip(found["connections"], cells, strict=True):
        assert each[:4] == [str(row["index"]), str(row["session"]), str(row["id"]), row["dst"]]
        assert each[4:6] == [str(row["up"]["payload_bytes"]), str(row["down"]["payload_bytes"])]
        assert each[9:12] == [f"{row['reorder_ms'][name]:.3f}" for name in ("p50", "p75", "p99")]


def test_a_capture_without_pipes(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    generator.Capture().write(path)
    found = json.loads(tshark.run(path, "-q", "-o", "tm3.statistics:json"))
    memory = found.pop("memory")
    assert found == {"format": 1, "pipes": [], "connections": [], "segments_made": 0}
    assert set(memory.values()) == {0}
    assert "(none)" in tshark.run(path, "-q", "-o", "tm3.statistics:table")
