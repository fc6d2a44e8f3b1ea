# SPDX-License-Identifier: MIT
"""Which connection goes first: the engine's own decision beside the oracle, on random batches.

The engine's is played by tests/unit/test_srpt.c in virtual time.
"""

import random
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from experiments.oracle import packets
from experiments.oracle.fluid import Message, simulate
from experiments.oracle.path import Path
from tests.unit.played import played

MESSAGE = packets.PACKET
BATCHES = range(20)
OTHERS = [
    (conns, paths)
    for conns in ("las", "drr", "fifo", "rr", "srpt")
    for paths in ("soonest", "minrtt", "rr", "ecf", "txdelay")
    if (conns, paths) != ("srpt", "ecf")
]
PLAYED = [("srpt", "ecf"), *OTHERS, *((conns, "copies") for conns in ("srpt", "rr", "fifo"))]


def batch(seed: int) -> tuple[list[Path], list[int]]:
    """Paths that messages are small beside, and two to eight objects from 4 KB to 1 MB."""
    dice = random.Random(seed)
    paths = [
        Path(f"path{i}", dice.uniform(2e6, 20e6), dice.uniform(0.003, 0.060))
        for i in range(dice.choice((2, 2, 3)))
    ]
    return paths, [int(4096 * 256 ** dice.random()) for _ in range(dice.randint(2, 8))]


Completions = dict[tuple[str, str], list[float]]
PlayedBatch = Callable[[int], Completions]


def play_batch(seed: int) -> Completions:
    """When each object is complete, under each pair of policies. One process plays them all: under
    sanitizers its start takes longer than a batch."""
    paths, sizes = batch(seed)
    miles = [f"{value:.9g}" for path in paths for value in (path.rate, path.delay)]
    words: list[object] = []
    for pair in PLAYED:
        words += ["and"] * bool(words) + [*pair, len(paths), *miles, *sizes]
    lines = played("test_srpt", *words).splitlines()
    return {
        pair: [float(it) for it in line.split()] for pair, line in zip(PLAYED, lines, strict=True)
    }


@pytest.fixture(scope="module")
def played_batch() -> PlayedBatch:
    """Each seed's is played once for all tests."""
    return cache(play_batch)


def a_message(paths: Sequence[Path]) -> float:
    return MESSAGE / min(path.rate for path in paths)


@pytest.mark.parametrize("seed", BATCHES)
def test_srpt_ecf_is_the_oracles(played_batch: PlayedBatch, seed: int) -> None:
    paths, sizes = batch(seed)
    wanted = simulate(paths, [Message(size) for size in sizes], "srpt", "ecf").completions
    assert played_batch(seed)["srpt", "ecf"] == pytest.approx(wanted, abs=a_message(paths))


@pytest.mark.parametrize("seed", BATCHES)
def test_sa_ecf_is_the_oracles(played_batch: PlayedBatch, seed: int) -> None:
    """A last turn that just misses the far path comes a round of turns later. Most do not."""
    paths, sizes = batch(seed)
    wanted = simulate(paths, [Message(size) for size in sizes], "rr", "ecf", MESSAGE).completions
    most = len(paths) * len(sizes) * a_message(paths)
    assert played_batch(seed)["rr", "ecf"] == pytest.approx(wanted, abs=most)


@pytest.mark.parametrize("seed", BATCHES)
@pytest.mark.parametrize(("conns", "oracle"), [("srpt", "srpt"), ("rr", "rr"), ("fifo", "fcfs")])
@pytest.mark.parametrize("policy", ["soonest", "copies"])
def test_a_batch_is_the_oracles(
    played_batch: PlayedBatch, seed: int, conns: str, oracle: str, policy: str
) -> None:
    """Of copies the first that arrives counts, whichever path carries it."""
    paths, sizes = batch(seed)
    messages = [Message(size) for size in sizes]
    wanted = simulate(paths, messages, oracle, policy, MESSAGE).completions
    assert played_batch(seed)[conns, policy] == pytest.approx(wanted, abs=a_message(paths))


@pytest.mark.parametrize("seed", BATCHES)
def test_no_other_policy_completes_a_batch_sooner(played_batch: PlayedBatch, seed: int) -> None:
    """The first to be complete, the second, and so on, whichever objects these are."""
    paths, _ = batch(seed)
    best = sorted(played_batch(seed)["srpt", "ecf"])
    for pair in OTHERS:
        for ours, theirs in zip(best, sorted(played_batch(seed)[pair]), strict=True):
            assert ours <= theirs + 2 * a_message(paths), pair
