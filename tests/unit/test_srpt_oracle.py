# SPDX-License-Identifier: MIT
"""Which connection goes first: the engine's own decision beside the oracle, on random batches.

The engine's is played by tests/unit/test_srpt.c in virtual time.
"""

import random
from collections.abc import Sequence

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


def play(conns: str, policy: str, paths: Sequence[Path], sizes: Sequence[int]) -> list[float]:
    words = [f"{value:.9g}" for path in paths for value in (path.rate, path.delay)]
    return [float(it) for it in played("test_srpt", conns, policy, len(paths), *words, *sizes)]


def batch(seed: int) -> tuple[list[Path], list[int]]:
    """Paths that messages are small beside, and two to eight objects from 4 KB to 1 MB."""
    dice = random.Random(seed)
    paths = [
        Path(f"path{i}", dice.uniform(2e6, 20e6), dice.uniform(0.003, 0.060))
        for i in range(dice.choice((2, 2, 3)))
    ]
    return paths, [int(4096 * 256 ** dice.random()) for _ in range(dice.randint(2, 8))]


def a_message(paths: Sequence[Path]) -> float:
    return MESSAGE / min(path.rate for path in paths)


@pytest.mark.parametrize("seed", BATCHES)
def test_srpt_ecf_is_the_oracles(seed: int) -> None:
    paths, sizes = batch(seed)
    wanted = simulate(paths, [Message(size) for size in sizes], "srpt", "ecf").completions
    assert play("srpt", "ecf", paths, sizes) == pytest.approx(wanted, abs=a_message(paths))


@pytest.mark.parametrize("seed", BATCHES)
def test_sa_ecf_is_the_oracles(seed: int) -> None:
    """A last turn that just misses the far path comes a round of turns later. Most do not."""
    paths, sizes = batch(seed)
    wanted = simulate(paths, [Message(size) for size in sizes], "rr", "ecf", MESSAGE).completions
    most = len(paths) * len(sizes) * a_message(paths)
    assert play("rr", "ecf", paths, sizes) == pytest.approx(wanted, abs=most)


@pytest.mark.parametrize("seed", BATCHES)
@pytest.mark.parametrize(("conns", "oracle"), [("srpt", "srpt"), ("rr", "rr"), ("fifo", "fcfs")])
@pytest.mark.parametrize("policy", ["soonest", "copies"])
def test_a_batch_is_the_oracles(seed: int, conns: str, oracle: str, policy: str) -> None:
    """Of copies the first that arrives counts, whichever path carries it."""
    paths, sizes = batch(seed)
    messages = [Message(size) for size in sizes]
    wanted = simulate(paths, messages, oracle, policy, MESSAGE).completions
    assert play(conns, policy, paths, sizes) == pytest.approx(wanted, abs=a_message(paths))


@pytest.mark.parametrize("seed", BATCHES)
def test_no_other_policy_completes_a_batch_sooner(seed: int) -> None:
    """The first to be complete, the second, and so on, whichever objects these are."""
    paths, sizes = batch(seed)
    best = sorted(play("srpt", "ecf", paths, sizes))
    for conns, policy in OTHERS:
        other = sorted(play(conns, policy, paths, sizes))
        for ours, theirs in zip(best, other, strict=True):
            assert ours <= theirs + 2 * a_message(paths), (conns, policy)
