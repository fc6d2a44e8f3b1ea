# SPDX-License-Identifier: MIT
"""Pipes over several subflows of MPTCP: read in the order of their data, or not at all."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.mptcp import DOWN, UP, Pipe, two_ways
from tests.dissector.packets import Capture

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

BODY = b"".join(b"%07d " % number for number in range(6400))
HEAD = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
REQUEST = b"GET /object HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
PART, SEGMENT = 4000, 1400
SAMPLE = tshark.TOP / "dissector" / "samples" / "mptcp.pcap"


def answer() -> list[bytes]:
    """The messages of RP."""
    text = HEAD + BODY
    parts = [text[at : at + PART] for at in range(0, len(text), PART)]
    return [m.data(1, number, part) for number, part in enumerate(parts)] + [m.fin(1, len(parts))]


def play(pipe: Pipe, seed: int, time_us: int = 0) -> None:
    """A request, and the answer in segments on both subflows, one of which is slower."""
    rng = random.Random(seed)
    opening = m.syn(1, f"192.0.2.{seed + 1}", 80) + m.data(1, 1, REQUEST)
    pipe.send(time_us + 100, 1, opening[:20], UP)
    pipe.send(time_us + 110, 0, opening[20:], UP)
    raw, clock, free = b"".join(answer()), time_us + 1000, [0, 0]
    for at in range(0, len(raw), SEGMENT):
        clock += 10
        subflow = rng.randrange(2)
        # In order on its subflow.
        free[subflow] = max(free[subflow] + 1, clock + (0, 3000)[subflow])
        pipe.send(free[subflow], subflow, raw[at : at + SEGMENT], DOWN)
        if rng.random() < 0.1:
            free[1 - subflow] = max(free[1 - subflow] + 1, free[subflow] + rng.randint(-50, 5000))
            raw_again = raw[at : at + SEGMENT]
            pipe.send(free[1 - subflow], 1 - subflow, raw_again, DOWN, again=True)


SEEDS = range(4)
Sent = list[tuple[str, int, int]]


def pipes_of_seeds(path: Path, *, opened: bool) -> None:
    """A pipe for each seed, one after the other."""
    capture = Capture()
    for seed in SEEDS:
        pipe = two_ways(capture, seed)
        if opened:
            pipe.open(seed * 1_000_000)
        play(pipe, seed, seed * 1_000_000)
    capture.write(path)


def seed_of(*addresses: str) -> int:
    """Of a frame between these: its pipe's, which the client's address tells."""
    (client,) = (each for each in addresses if each.startswith("10.8."))
    return int(client.rpartition(".")[2]) - 1


def numbers(capture: Path, *arguments: str) -> dict[int, Sent]:
    """Of each seed: direction, number and payload's size of each message, as they became due in the
    pipe."""
    found: dict[int, Sent] = {seed: [] for seed in SEEDS}
    for frame in tshark.frames(capture, "-Y", "tm3", *arguments, only="ip tm3"):
        ip = frame.layers["ip"]
        found[seed_of(ip["ip.src"], ip["ip.dst"])] += [
            (row["tm3.direction"], int(row["tm3.seq"]), int(row.get("tm3.payload.len", 0)))
            for row in frame.messages
        ]
    return found


def what_was_sent() -> Sent:
    down = [("2", number, len(raw) - 8) for number, raw in enumerate(answer())]
    return [("1", 0, 0), ("1", 1, len(REQUEST)), *down[:-1], ("2", down[-1][1], 0)]


@dataclass(frozen=True)
class Look:
    """What tshark says of the pipes that it has seen from their beginning."""

    numbers: dict[int, Sent]
    bodies: dict[int, list[str]]


@pytest.fixture(scope="module")
def opened(which_tshark: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mptcp") / "opened.pcap"
    pipes_of_seeds(path, opened=True)
    return path


@pytest.fixture(scope="module")
def looks(opened: Path) -> dict[str, Look]:
    """In one pass, and in two."""
    found = {}
    for name, passes in {"one": (), "two": ("-2",)}.items():
        bodies: dict[int, list[str]] = {seed: [] for seed in SEEDS}
        fields = ["ip.dst", "http.file_data"]
        for lp, body in tshark.field_values(opened, fields, *passes, "-Y", "http.response"):
            bodies[seed_of(lp)].append(tshark.body(body))
        found[name] = Look(numbers(opened, *passes), bodies)
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("passes", ["one", "two"])
def test_both_subflows_are_one_pipe(looks: dict[str, Look], passes: str, seed: int) -> None:
    look = looks[passes]
    assert look.numbers[seed] == what_was_sent()
    assert look.bodies[seed] == [BODY.decode()]


def test_statistics_have_one_pipe(opened: Path) -> None:
    """Of each seed, with one connection."""
    found = json.loads(tshark.run(opened, "-q", "-o", "tm3.statistics:json"))
    pipes = {seed_of(row["lp"].partition(":")[0]): row for row in found["pipes"]}
    conns = {row["dst"]: row for row in found["connections"]}
    assert pipes.keys() == set(SEEDS) and len(found["pipes"]) == len(SEEDS)
    assert len(found["connections"]) == len(SEEDS)
    for seed in SEEDS:
        assert pipes[seed]["down"]["payload_bytes"] == len(HEAD + BODY), seed
        assert pipes[seed]["down"]["held_ms"]["max"] >= 1, seed
        assert conns[f"192.0.2.{seed + 1}:80"]["down"]["duplicates"] == 0, seed


def test_a_real_one(tmp_path: Path) -> None:
    """Linux at both ends, 4 and 3 Mbit/s: what was loaded comes out whole."""
    tshark.run(SAMPLE, "-q", "-2", "--export-objects", f"http,{tmp_path}")
    loaded = (bytes(range(256)) * 500)[:100_000]
    assert (tmp_path / "large").read_bytes() == loaded
    assert (tmp_path / "index.html").read_bytes().startswith(b"<html><body>TM3")
    assert not tshark.messages(SAMPLE, "-Y", "tm3.expert")


def test_who_joins_what_is_not_there_is_not_read(tmp_path: Path) -> None:
    capture, path = Capture(), tmp_path / "a.pcap"
    pipe = two_ways(capture)
    pipe.open(0)
    play(pipe, 1)
    capture.packets = [
        each for each in capture.packets if b"\x0a\x08\x01\x01" not in each[2][26:34]
    ]
    capture.write(path)
    assert not any(numbers(path).values())
    for passes in ((), ("-2",)):
        said = tshark.field_values(path, ["frame.number"], *passes, "-Y", "tm3.expert.mptcp")
        assert len(said) > 10


@pytest.fixture(scope="module")
def from_the_middle(
    which_tshark: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[int, Sent], set[int]]:
    """What is read of each seed, and of which ones tshark says that it cannot be read."""
    path = tmp_path_factory.mktemp("mptcp") / "middle.pcap"
    pipes_of_seeds(path, opened=False)
    odd = tshark.field_values(path, ["ip.src", "ip.dst"], "-Y", "tm3.expert.mptcp")
    return numbers(path), {seed_of(*ends) for ends in odd}


@pytest.mark.parametrize("seed", SEEDS)
def test_from_the_middle_nothing_is_invented(
    from_the_middle: tuple[dict[int, Sent], set[int]], seed: int
) -> None:
    """Nobody knows then which subflows go together."""
    found, odd = from_the_middle
    assert set(found[seed]) <= set(what_was_sent())
    assert seed in odd
