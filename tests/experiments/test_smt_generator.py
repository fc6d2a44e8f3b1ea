# SPDX-License-Identifier: MIT
"""The messages that SMT's client makes, and those that a file describes."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from experiments.workloads.smt import described, sizes
from experiments.workloads.smt.failure import BadInput
from experiments.workloads.smt.generator import KINDS, Arrivals, Mixture, Wanted
from experiments.workloads.smt.graph import Graph
from tests.experiments.smt_checker import behind

# As Table 4.1 is printed: the distribution, and its percentage of each size.
TABLE = """
    32 128 384 4K 8K 16K 32K 64K 128K
 0   8   1   1  5  5  20  40  10   10
 1  80   5   5  2  2   2   2   1    1
 2 100   0   0  0  0   0   0   0    0
 3   0   0   0 100 0   0   0   0    0
 4   0   0   0  0 100  0   0   0    0
 5   0   0   0  0  0 100   0   0    0
 6   0   0   0  0  0   0 100   0    0
 7   0   0   0  0  0   0   0 100    0
 8  50   0   0  0  0   0  50   0    0
 9   0 100   0  0  0   0   0   0    0
10   0   0 100  0  0   0   0   0    0
11   0   0   0  0  0   0   0   0  100
12  20  10  10 10 10  10  10  10   10
13   0   0   0 17 17  17  17  16   16
14  40  30  30  0  0   0   0   0    0
"""


def test_table_of_sizes() -> None:
    head, *rows = [line.split() for line in TABLE.strip().splitlines()]
    assert [int(it.replace("K", "")) << 10 * ("K" in it) for it in head] == list(sizes.SIZES)
    assert [(at, *row) for at, row in enumerate(sizes.PERCENT)] == [
        tuple(map(int, row)) for row in rows
    ]
    assert all(sum(row) == 100 for row in sizes.PERCENT)


def test_sizes_are_drawn_by_their_shares() -> None:
    chance = random.Random(1)
    for number, row in enumerate(sizes.PERCENT):
        drawn = [sizes.draw(chance, number) for _ in range(3000)]
        for size, percent in zip(sizes.SIZES, row, strict=True):
            assert drawn.count(size) / 30 == pytest.approx(percent, abs=4)
            assert percent or size not in drawn
    assert sizes.mean(8) == 0.5 * 32 + 0.5 * 32768


def some(mixture: Mixture, count: int) -> list[Wanted]:
    return list(itertools.islice(mixture.messages(random.Random(5)), count))


def test_a_stream() -> None:
    found = some(Mixture(kinds=("stream",), block=3), 6)
    assert [it.needs for it in found] == [(), (0,), (1,), (0, 1, 2), (3,), (4,)]
    assert {it.size for it in found} == {1024}


def test_parallel_groups() -> None:
    found = some(Mixture(kinds=("parallel",), block=2), 6)
    assert [it.needs for it in found] == [(), (), (0, 1), (0, 1), (2, 3), (2, 3)]


def test_barriers() -> None:
    """Of 2 to 10 dependencies, each number of them about as often."""
    found = some(Mixture(kinds=("barrier",)), 20_000)
    barriers, first = [], 0
    for number, it in enumerate(found):
        if it.needs == tuple(range(first, number)) and number > first + 1:
            barriers.append(len(it.needs))
            first = number + 1
    assert first > 19_980
    for count in range(2, 11):
        assert barriers.count(count) / len(barriers) == pytest.approx(1 / 9, abs=0.02)


@pytest.mark.parametrize("kinds", [KINDS, KINDS[:2], KINDS[1:]])
def test_each_block_is_behind_all_before(kinds: tuple[str, ...]) -> None:
    """Whatever the graph leaves out, a message that needs an earlier block needs all of it."""
    found = some(Mixture(kinds=kinds, block=4, priorities=("a", "b")), 60)
    graph = Graph()
    for it in found:
        graph.add(it.needs)
    needs = [graph.needs(it) for it in range(len(graph))]
    turns = [len(list(run)) for _, run in itertools.groupby(it.priority for it in found)]
    first = 0
    for length in turns:
        for it in range(first, first + length):
            assert behind(needs, it) >= set(range(first))
        first += length
    assert len(turns) > 8


def test_streams_side_by_side() -> None:
    """Each message is behind the last one of its stream, and of no other."""
    found = some(Mixture(streams=4, priorities=("a", "b")), 400)
    ends: dict[int, int] = {}  # of each stream its last message, by its first
    of: dict[int, int] = {}
    for number, it in enumerate(found):
        stream = of[it.needs[0]] if it.needs else number
        assert not it.needs or it.needs == (ends[stream],)
        assert it.priority == found[stream].priority
        of[number], ends[stream] = stream, number
    lengths = [list(of.values()).count(stream) for stream in ends]
    assert len(lengths) == 4
    assert all(70 < it < 130 for it in lengths)
    assert {it.priority for it in found} == {"a", "b"}


def test_one_stream_is_a_total_order() -> None:
    assert [it.needs for it in some(Mixture(streams=1), 4)] == [(), (0,), (1,), (2,)]


def test_on_and_off() -> None:
    arrivals = Arrivals(batch=3, pause_s=0.1, rest_s=2.0)
    assert [arrivals.after(count) for count in range(1, 7)] == [0.1, 0.1, 2.0, 0.1, 0.1, 2.0]


def test_messages_of_a_file(tmp_path: Path) -> None:
    told = [
        {"name": "A", "size": 8},
        {"name": "B", "size": 99, "needs": ["A"], "priority": "high", "tag": 2},
    ]
    file = tmp_path / "graph"
    file.write_text(json.dumps(told))
    assert described.read(str(file), ["any", "high"]) == [
        Wanted(8, (), "any", 1),
        Wanted(99, (0,), "high", 2),
    ]


def of(*needs: str, **more: Any) -> list[dict[str, Any]]:
    """Messages A, B, ... that need these."""
    names = "ABCDEF"
    found = [{"name": names[at], "size": 9, "needs": list(it)} for at, it in enumerate(needs)]
    found[0].update(more)
    return found


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (of("B", "A"), "cyclic graph: A -> B -> A"),
        (of("A"), "cyclic graph: A -> A"),
        (of("", "C", ""), "forward dependency: B depends on C, which comes later"),
        (of("", "X"), 'B depends on "X", which is not there'),
        (of("", priority="urgent"), "A: unknown priority 'urgent': it is none of any, high"),
        (of("", size=7), "A: size 7 is not from 8 to"),
        (of("", size="9"), 'A: size "9" is wrong'),
        (of("", tag=128), "A: tag 128 is not from 1 to 127"),
        (of("", colour="red"), "has not name, size"),
        ([*of(""), *of("")], "A is there twice"),
        ([], "it is no list of messages"),
        ({}, "it is no list of messages"),
        ([3], "3 has not name, size"),
    ],
)
def test_a_wrong_file(tmp_path: Path, told: Any, why: str) -> None:
    file = tmp_path / "graph"
    file.write_text(json.dumps(told))
    with pytest.raises(BadInput) as found:
        described.read(str(file), ["any", "high"])
    assert str(found.value).startswith(f"graph {file}: ")
    assert why in str(found.value)
    assert "\n" not in str(found.value)


def test_no_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("{")
    with pytest.raises(BadInput, match="No such file"):
        described.read(str(tmp_path / "none"), ["any"])
    with pytest.raises(BadInput, match="no JSON"):
        described.read(str(tmp_path / "text"), ["any"])
