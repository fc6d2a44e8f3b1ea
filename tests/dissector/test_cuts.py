# SPDX-License-Identifier: MIT
"""However a pipe is cut into segments, its messages are the same."""

import itertools
import random
from pathlib import Path

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream, tcp_packet

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

UPLINK = [
    m.syn(5, "192.0.2.33", 30_443), m.data(5, 1, b"hi"), m.syn(6, "192.0.2.34", 30_080),
    m.data(5, 2, bytes(range(50))), m.fin(6, 1, m.FIN_RESET), m.data(5, 3, b"z"), m.fin(5, 4),
]  # fmt: skip
STREAM = b"".join(UPLINK)
FIELDS = (
    "conn", "seq", "len", "type", "dst.ip", "dst.port", "reason", "payload", "order", "offset",
)  # fmt: skip


def told(message: tshark.Message) -> tuple[object, ...]:
    return tuple(message.get(f"tm3.{name}") for name in FIELDS)


def dissect(
    path: Path,
    segmentations: list[list[tuple[int, int]]],
    *arguments: str,
    handshake: bool = True,
) -> list[list[tuple[object, ...]]]:
    """Each segmentation (start and end of segments, in the order of capture) on its own pipe."""
    capture = Capture()
    names = {}
    for number, segments in enumerate(segmentations):
        client = Endpoint(f"10.4.{number >> 8}.{number & 255}", 40_000)
        server = Endpoint("10.9.0.1", 6000)
        tcp = TcpStream(capture, client, server)
        if handshake:
            tcp.open(number * 1000)
        names[client.address] = number
        for at, (start, stop) in enumerate(segments):
            packet = tcp_packet(client, server, tcp.up_next + start, STREAM[start:stop])
            capture.add(number * 1000 + 10 + at, packet)
    capture.write(path)
    found: list[list[tuple[object, ...]]] = [[] for _ in segmentations]
    for frame in tshark.frames(path, *arguments, "-Y", "tm3", only="ip tm3"):
        number = names[frame.layers["ip"]["ip.src"]]
        found[number] += [told(message) for message in frame.messages]
    return found


def pieces(cuts: list[int]) -> list[tuple[int, int]]:
    edges = [0, *sorted(set(cuts)), len(STREAM)]
    return list(itertools.pairwise(edges))


def test_cut_at_every_byte(tmp_path: Path) -> None:
    rng = random.Random(7)
    whole = [pieces([])]
    once = [pieces([at]) for at in range(1, len(STREAM))]
    twice = [pieces(rng.sample(range(1, len(STREAM)), 2)) for _ in range(100)]
    bytewise = [pieces(list(range(1, len(STREAM))))]
    often = [pieces(rng.sample(range(1, len(STREAM)), 20)) for _ in range(50)]
    found = dissect(tmp_path / "cuts.pcap", whole + once + twice + bytewise + often)
    assert len(found[0]) == len(UPLINK)
    for number, messages in enumerate(found):
        assert messages == found[0], f"segmentation {number}"


def test_lost_and_sent_again(tmp_path: Path) -> None:
    """One segment comes late, or twice: TCP puts it right, nothing is a duplicate."""
    rng = random.Random(8)
    segmentations = [pieces([])]
    for _ in range(150):
        segments = pieces(rng.sample(range(1, len(STREAM)), rng.randint(2, 8)))
        lost = rng.randrange(len(segments) - 1)
        late = segments.pop(lost)
        segments.insert(rng.randint(lost, len(segments)), late)
        if rng.random() < 0.5:
            again = rng.randrange(len(segments))
            segments.insert(rng.randint(again + 1, len(segments)), segments[again])
        segmentations.append(segments)
    found = dissect(tmp_path / "lost.pcap", segmentations)
    for number, messages in enumerate(found):
        assert messages == found[0], f"{number}: {segmentations[number]}"


@pytest.mark.parametrize("passes", ["one", "two"])
def test_without_the_opening_of_its_pipe(tmp_path: Path, passes: str) -> None:
    """The capture begins behind the handshake: a first message is found only when there is enough
    of it and of the next. TCP gives bytes that had to wait again: none of it is a duplicate."""
    rng = random.Random(10)
    segmentations = [pieces([]), pieces(list(range(1, len(STREAM))))]
    for _ in range(150):
        segments = pieces(rng.sample(range(1, len(STREAM)), rng.randint(5, 40)))
        late = segments.pop(rng.randrange(1, len(segments) - 1))
        segments.insert(rng.randint(1, len(segments)), late)
        segmentations.append(segments)
    arguments = ["-2"] if passes == "two" else []
    found = dissect(tmp_path / "begun.pcap", segmentations, *arguments, handshake=False)
    for number, messages in enumerate(found):
        what = [each[:8] for each in messages]
        assert what == [each[:8] for each in found[0]], f"{number}: {segmentations[number]}"
        assert {each[8] for each in messages} == {"1"}, f"{number}: {segmentations[number]}"


def test_over_any_pipes_in_any_order(tmp_path: Path) -> None:
    """The same connection, dealt out to pipes at random: the same messages, in another order."""
    rng = random.Random(9)
    chunks = [m.syn(5, "192.0.2.33", 30_443)]
    chunks += [m.data(5, n, bytes([n]) * n) for n in range(1, 8)] + [m.fin(5, 8)]
    capture, path = Capture(), tmp_path / "dealt.pcap"
    for number in range(150):
        pipes = []
        for pipe in range(rng.randint(1, 4)):
            client = Endpoint(f"10.4.0.{number}", 40_000 + pipe)
            pipes.append(TcpStream(capture, client, Endpoint("10.9.0.1", 6000)))
            pipes[-1].open(number * 10_000 + pipe)
        for at, chunk in enumerate(rng.sample(chunks, len(chunks))):
            rng.choice(pipes).up(number * 10_000 + 100 + at, chunk)
    capture.write(path)
    found: dict[str, list[tuple[object, ...]]] = {}
    for frame in tshark.frames(path, "-2", "-Y", "tm3", only="ip tm3"):
        for message in frame.messages:
            assert message["tm3.order"] in "123"
            told_of = tuple(message.get(f"tm3.{name}") for name in (*FIELDS[:8], "offset"))
            found.setdefault(frame.layers["ip"]["ip.src"], []).append(told_of)
    assert len(found) == 150
    first = sorted(found["10.4.0.0"], key=str)
    assert all(sorted(messages, key=str) == first for messages in found.values())
