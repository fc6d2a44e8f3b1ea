# SPDX-License-Identifier: MIT
"""Captures that begin in the middle of messages whose payload looks like messages, too."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

STREAMS, MSS = 75, 1448  # of a seed


def words(count: int, start: int) -> bytes:
    return struct.pack(f"<{count}H", *((start + i) % 65536 for i in range(count)))


def numbers(count: int, start: int) -> bytes:
    return struct.pack(f"<{count // 2}I", *(start * 1000 + i for i in range(count // 2)))


def steps(count: int, start: int) -> bytes:
    """Each word nine more: so the words themselves lead to further ones."""
    return struct.pack(f"<{count}H", *((start % 9 + i * 9) % 4000 for i in range(count)))


PAYLOADS: list[Callable[[int, int], bytes]] = [words, numbers, steps]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("passes", ["one", "two"])
def test_payload_that_counts_makes_no_messages(
    tmp_path: Path, payload: Callable[[int, int], bytes], passes: str
) -> None:
    capture, path = Capture(), tmp_path / "middle.pcap"
    sent: set[tuple[str, str]] = set()
    dice = [random.Random(seed) for seed in tshark.mine(6, 7)]
    for number in range(STREAMS * len(dice)):
        rng = dice[number % len(dice)]
        client = Endpoint(f"10.6.{number >> 8}.{number & 255}", 40_000)
        pipe = TcpStream(capture, client, Endpoint("10.9.0.1", 6000))
        conn, first = rng.randint(1, 32767), rng.randint(2000, 100_000)
        parts = [payload(rng.choice([1000, 2048]), rng.randint(0, 60)) for _ in range(6)]
        raw = b"".join(m.data(conn, first + at, part) for at, part in enumerate(parts))
        sent |= {(str(conn), str(first + at)) for at in range(len(parts))}
        raw = raw[rng.randint(9, 1900) :]
        for at in range(0, len(raw), MSS):
            pipe.down(number * 10_000 + at, raw[at : at + MSS])
    capture.write(path)
    arguments = ["-2"] if passes == "two" else []
    rows = [row for _, row in tshark.messages(path, *arguments) if "tm3.seq" in row]
    found = {(row["tm3.conn"], row["tm3.seq"]) for row in rows}
    assert found - sent == set()
    assert len(found) > STREAMS * len(dice) * 4
