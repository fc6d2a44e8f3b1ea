# SPDX-License-Identifier: MIT
"""What the engine's own decision makes of an object is what the oracle computes, within a message.

The engine's is played by tests/unit/test_path_policies.c in virtual time.
"""

from dataclasses import dataclass

import pytest

from experiments.oracle import dems, optimum, packets
from experiments.oracle.fluid import Message, simulate
from experiments.oracle.path import Path
from tests.unit.played import played

MESSAGE = packets.PACKET
WIFI = Path("wifi", 7.04e6 / 8, 0.025)
LTE = {ms: Path("lte", 9.185e6 / 8, ms / 2e3) for ms in (70, 270, 470)}
SIZES = [64 << 10, 256 << 10, 512 << 10, 1 << 20]
# The near path's window takes most of it at once, though the far one would have been free sooner.
TOO_SMALL = 64 << 10, 70
LARGER = [(size, far) for size in SIZES for far in LTE if (size, far) != TOO_SMALL]
SMALL = (Path("a", 200e3, 0.005), Path("b", 500e3, 0.010))
LARGE = (Path("a", 20e6, 0.005), Path("b", 50e6, 0.010))


@dataclass(frozen=True)
class Played:
    took: float
    bytes: list[int]
    again: int


def play(policy: str, size: int, *paths: Path) -> Played:
    words = [f"{value:.9g}" for path in paths for value in (path.rate, path.delay)]
    said = played("test_path_policies", policy, size, *words).split()
    *bytes_, again = (int(word) for word in said[1:])
    return Played(float(said[0]), bytes_, again)


def a_message(*paths: Path) -> float:
    return MESSAGE / min(path.rate for path in paths)


@pytest.mark.parametrize("far", LTE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("policy", ["minrtt", "rr", "ecf"])
def test_an_object_takes_as_long(policy: str, size: int, far: int) -> None:
    paths = WIFI, LTE[far]
    wanted, _ = packets.completion(paths, size, policy)
    played = play(policy, size, *paths)
    assert sum(played.bytes) == size
    assert played.took == pytest.approx(wanted, abs=a_message(*paths))


@pytest.mark.parametrize(("size", "far"), LARGER)
def test_the_soonest_take_as_long(size: int, far: int) -> None:
    """The engine counts a path whose window is open as one that sends at once, the oracle does not
    (TOO_SMALL). Where windows are full both choose alike."""
    paths = WIFI, LTE[far]
    wanted, _ = packets.completion(paths, size, "soonest")
    assert play("soonest", size, *paths).took == pytest.approx(wanted, abs=a_message(*paths))


@pytest.mark.parametrize(("size", "far"), LARGER)
@pytest.mark.parametrize("policy", ["ecf", "dems-b", "dems-s"])
def test_the_rule_is_the_fluid_optimum(policy: str, size: int, far: int) -> None:
    paths = WIFI, LTE[far]
    played = play(policy, size, *paths)
    best = optimum.completion(paths, size)
    assert best - 1e-6 <= played.took <= best + 2 * a_message(*paths)
    shares = optimum.shares(paths, size)
    for path, bytes_ in zip(paths, played.bytes, strict=True):
        assert bytes_ == pytest.approx(shares[path.name], abs=2 * MESSAGE)


@pytest.mark.parametrize("far", LTE)
@pytest.mark.parametrize("size", SIZES[1:])
def test_dems_sends_as_much_again(size: int, far: int) -> None:
    """Where an object ends the range around the meeting point does, too."""
    paths = WIFI, LTE[far]
    assert play("dems-b", size, *paths).again == 0
    assert 0 < play("dems-s", size, *paths).again <= dems.most_again(paths) + 3 * MESSAGE
    for deviation_ms in 0, 5, 10:
        wanted = dems.around(paths, size, deviation_ms / 1e3).again
        again = play(f"dems-f:{deviation_ms}", size, *paths).again
        assert again == pytest.approx(wanted, abs=3 * MESSAGE)


@pytest.mark.parametrize("policy", ["txdelay", "one:1", "one:0", "copies"])
@pytest.mark.parametrize(("paths", "size"), [(SMALL, 10_000), (LARGE, 1_000_000)])
def test_dealt_policies_are_the_fluid(policy: str, paths: tuple[Path, Path], size: int) -> None:
    oracle = f"one:{paths[int(policy[4:])].name}" if policy.startswith("one") else policy
    wanted = simulate(paths, [Message(size)], "srpt", oracle).times[0]
    assert play(policy, size, *paths).took == pytest.approx(wanted, abs=a_message(*paths))


@pytest.mark.parametrize("percent", [0, 2.5, 30, 50, 97.5, 100])
@pytest.mark.parametrize("far", LTE)
def test_a_split_is_the_fluid(percent: float, far: int) -> None:
    paths = WIFI, LTE[far]
    wanted = simulate(paths, [Message(256 << 10)], "srpt", f"split:{percent}").times[0]
    played = play(f"split:{percent}", 256 << 10, *paths)
    assert played.took == pytest.approx(wanted, abs=2 * a_message(*paths))


@pytest.mark.parametrize("far", LTE)
@pytest.mark.parametrize("size", SIZES)
def test_copies_are_the_fluid(size: int, far: int) -> None:
    """A path sends again what the other one has sent, but not what is known to have arrived."""
    paths = WIFI, LTE[far]
    wanted = simulate(paths, [Message(size)], "srpt", "copies").times[0]
    played = play("copies", size, *paths)
    assert sum(played.bytes) == size and 0 < played.again <= size
    assert played.took == pytest.approx(wanted, abs=a_message(*paths))


def test_three_paths() -> None:
    paths = WIFI, LTE[70], Path("third", LTE[270].rate, LTE[270].delay)
    for size in SIZES[1:]:
        best = optimum.completion(paths, size)
        assert best - 1e-6 <= play("ecf", size, *paths).took <= best + 2 * a_message(*paths)
