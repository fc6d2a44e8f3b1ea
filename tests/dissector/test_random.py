# SPDX-License-Identifier: MIT
"""A thousand random sessions: every field of every message against what was generated."""

import hashlib
from pathlib import Path

import pytest

from tests.dissector import generator, tshark

SESSIONS_A_FILE = 100
FILES = 10
ORDERS = {"1": "in order", "2": "early", "3": "late", "4": "late, resent", "5": "copy"}
TYPES = {"0xffff": "syn", "0xfffe": "fin", "0x0000": "data"}

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


def one(value: object) -> str:
    assert isinstance(value, str), f"one value expected, not {value!r}"
    return value


def seconds_us(text: str) -> int:
    return round(float(text) * 1e6)


def expected(
    session: generator.Session, message: generator.Sent, frame_of: dict[int, int]
) -> dict[str, object]:
    """All that the dissector is to say of a message, in the words of `found`."""
    conn, number = message.conn, message.number
    frames = {
        name: [frame_of[m.packet] for m in conn.sent if m.kind == name] for name in ("syn", "fin")
    }
    filler = message.filled_by
    return {
        "frame": frame_of[message.packet],
        "conn": conn.id,
        "seq": number,
        "type": message.kind,
        "payload": hashlib.sha1(message.payload).hexdigest() if message.payload else None,
        "reason": message.reason or None,
        "dst": (conn.address, conn.port),
        "pipe": message.pipe,
        "up": message.up,
        "lp": session.lp,
        "order": message.order,
        "wait_us": None if message.order == "copy" else message.wait_us,
        "held_us": message.held_us,
        "filled_by": frame_of[filler.packet] if filler and message.order == "early" else None,
        "original": frame_of[message.original.packet] if message.original else None,
        "syn_frame": frames["syn"][0],
        "fin_frames": sorted(frames["fin"]),
    }


def as_list(value: object) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [str(value)]


def found(frame: int, addresses: tuple[str, str], message: tshark.Message) -> dict[str, object]:
    kind = TYPES[one(message["tm3.type"])]
    payload = message.get("tm3.payload")
    raw = bytes.fromhex(one(payload).replace(":", "")) if payload else b""
    up = message["tm3.direction"] == "1"
    fill = message.get("tm3.filled_by")
    first = message.get("tm3.original")
    wait = message.get("tm3.wait")
    length = {"syn": 0xFFFF, "fin": 0xFFFE}.get(kind, 8 + len(raw))
    assert int(one(message["tm3.len"])) == length
    return {
        "frame": frame,
        "conn": int(one(message["tm3.conn"])),
        "seq": int(one(message["tm3.seq"])),
        "type": kind,
        "payload": hashlib.sha1(raw).hexdigest() if raw else None,
        "reason": int(one(message["tm3.reason"]), 0) if "tm3.reason" in message else None,
        "dst": (one(message["tm3.dst.ip"]), int(one(message["tm3.dst.port"]))),
        "pipe": int(one(message["tm3.pipe"])),
        "up": up,
        "lp": addresses[0] if up else addresses[1],
        "order": ORDERS[one(message["tm3.order"])],
        "wait_us": seconds_us(one(wait)) if wait is not None else None,
        "held_us": seconds_us(one(message.get("tm3.held", "0"))),
        "filled_by": int(one(fill)) if fill else None,
        "original": int(one(first)) if first else None,
        "syn_frame": int(one(message["tm3.syn_frame"])),
        "fin_frames": sorted(int(each) for each in as_list(message.get("tm3.fin_frame"))),
    }


def key(row: dict[str, object]) -> tuple[object, ...]:
    return row["frame"], row["lp"], row["conn"], row["up"], row["seq"], row["order"]


@pytest.mark.parametrize("pair", range(FILES // 2))
def test_every_field_of_every_message(pair: int, tmp_path: Path) -> None:
    for seed in tshark.mine(2 * pair, 2 * pair + 1):
        check(seed, tmp_path)


def check(seed: int, tmp_path: Path) -> None:
    sessions, capture, frame_of = generator.make_sessions(seed, SESSIONS_A_FILE)
    path = tmp_path / "random.pcap"
    capture.write(path)
    wanted = [expected(s, m, frame_of) for s in sessions for m in s.sent()]
    got = []
    for frame in tshark.frames(path, "-2", "-Y", "tm3", "-o", "tm3.content:FALSE", only="ip tm3"):
        ip = frame.layers["ip"]
        for message in frame.messages:
            got.append(found(frame.number, (ip["ip.src"], ip["ip.dst"]), message))
    wanted.sort(key=key)
    got.sort(key=key)
    for a, b in zip(wanted, got, strict=False):
        assert a == b
    assert len(wanted) == len(got)
    assert {row["order"] for row in wanted} == set(ORDERS.values())
