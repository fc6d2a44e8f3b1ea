# SPDX-License-Identifier: MIT
"""Garbage raises no Lua error: `tshark.run` fails on any word on stderr and on any in the tree."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.generator import make_sessions
from tests.dissector.packets import Capture, Endpoint, TcpStream

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

STREAMS = 250
Spoil = Callable[[random.Random, bytes], bytes]


def noise(rng: random.Random, raw: bytes) -> bytes:
    return rng.randbytes(len(raw))


def flip(rng: random.Random, raw: bytes) -> bytes:
    spoilt = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def lose(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + raw[at + rng.randint(1, 40) :]


def small_numbers(rng: random.Random, raw: bytes) -> bytes:
    return bytes(rng.choice([0, 0, 1, 2, 9, 14, 255, 254]) for _ in raw)


def some_message(rng: random.Random) -> bytes:
    conn = rng.choice([0, 1, 1, 2, 3, 65535])
    number = rng.choice([0, 1, 2, 3, 5, 2**20, 2**31, 2**32 - 1])
    return rng.choice(
        [
            m.data(conn, number, rng.randbytes(rng.choice([1, 30, 4096]))),
            m.data(conn, number, b"GET / HTTP/1.1\r\n\r\n"),
            m.syn(conn, "192.0.2.1", rng.choice([80, 443, 53, 6000, 0]), rng.choice([0, 0, 7])),
            m.fin(conn, number, rng.choice([0x88, 0x99, 0x77, 0])),
            m.hello(rng.randbytes(16), rng.randrange(256), rng.randrange(256)),
            m.welcome(),
            m.synack(conn, number, rng.randrange(256)),
            m.window(conn, rng.randrange(2**64)),
            m.open_name(conn, "x" * rng.randrange(256), 80, number),
            m.extension(rng.randbytes(rng.randint(1, 60))),
            m.extension(bytes([rng.randint(0, 16)]) + rng.randbytes(rng.randint(0, 60))),
        ]
    )


SPOILS: list[Spoil] = [noise, flip, lose, small_numbers]


def spoilt_capture(seed: int, spoils: Sequence[Spoil]) -> Capture:
    """STREAMS of each, behind local proxies of its own."""
    capture = Capture()
    for spoil in spoils:
        rng = random.Random(seed)
        for number in range(STREAMS):
            address = f"10.6.{SPOILS.index(spoil)}.{number % 100}"
            add_stream(capture, rng, Endpoint(address, 40_000 + number), number * 1000, spoil)
    return capture


def add_stream(
    capture: Capture, rng: random.Random, client: Endpoint, time_us: int, spoil: Spoil
) -> None:
    server = Endpoint("10.9.0.1", rng.choice([6000, 6000, 6010, 7777]))
    tcp = TcpStream(capture, client, server)
    if rng.random() < 0.7:
        tcp.open(time_us)
    raw = b"".join(some_message(rng) for _ in range(rng.randint(1, 12)))
    raw = spoil(rng, raw)
    time_us += 10
    while raw:
        size = rng.choice([1, 9, 100, 1448])
        tcp.send(time_us, raw[:size], rng.random() < 0.7)
        raw, time_us = raw[size:], time_us + 10


def dissected(path: Path, seed: int, *arguments: str) -> str:
    """What tshark says of all garbage of a seed; where it fails, it is told over which."""
    spoilt_capture(seed, SPOILS).write(path)
    try:
        return tshark.run(path, *arguments)
    except AssertionError as error:
        guilty = [it.__name__ for it in SPOILS if fails(path, seed, it, *arguments)]
        raise AssertionError(f"{' and '.join(guilty) or 'all together'}: {error}") from error


def fails(path: Path, seed: int, spoil: Spoil, *arguments: str) -> bool:
    spoilt_capture(seed, [spoil]).write(path)
    try:
        tshark.run(path, *arguments)
    except AssertionError:
        return True
    return False


def counted(text: str) -> Counter[str]:
    """How often pipes are found, by what their streams were spoilt by."""
    found: Counter[str] = Counter()
    for frame in re.split(r"^Frame \d+: ", text, flags=re.MULTILINE)[1:]:
        whose = re.search(r": 10\.6\.(\d)\.", frame)
        assert whose, frame
        found[SPOILS[int(whose[1])].__name__] += frame.count("TM³ pipe")
    return found


def test_garbage_raises_no_error(tmp_path: Path) -> None:
    path = tmp_path / "spoilt.pcap"
    for seed in tshark.mine(1, 2):
        found = counted(dissected(path, seed, "-V"))
        assert len(found) == len(SPOILS) and min(found.values()) > STREAMS / 2, found
        dissected(path, seed, "-2", "-V", "-o", "tm3.statistics:json")


def test_packets_cut_short_by_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "sliced.pcap"
    _, capture, _ = make_sessions(3, 20)
    for snaplen in (60, 90, 200):
        capture.write(path, snaplen)
        assert "TM³ pipe" in tshark.run(path, "-2", "-V", "-o", "tm3.statistics:table")


OPTIONS = [
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.reassemble_out_of_order:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tm3.keep_mb:0",
]


@pytest.mark.parametrize("option", OPTIONS)
def test_whatever_tcp_is_told_to_do(tmp_path: Path, option: str) -> None:
    path = tmp_path / "options.pcap"
    _, capture, _ = make_sessions(4, 20)
    capture.write(path)
    assert "TM³ pipe" in tshark.run(path, "-2", "-V", "-o", option)


def test_a_lua_error_would_be_noticed(tmp_path: Path) -> None:
    """The check above can fail: a dissector that raises an error is caught by it."""
    script, path = tmp_path / "wrong.lua", tmp_path / "any.pcap"
    script.write_text(
        'local p = Proto("wrong", "Wrong")\n'
        "function p.dissector() error('on purpose') end\n"
        'DissectorTable.get("tcp.port"):add(6000, p)\n'
    )
    capture = Capture()
    tcp = TcpStream(capture, Endpoint("10.6.0.1", 40_000), Endpoint("10.9.0.1", 6000))
    tcp.up(0, b"x")
    capture.write(path)
    with pytest.raises(AssertionError, match="Lua Error"):
        tshark.run(path, "-V", script=script)
