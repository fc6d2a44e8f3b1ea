# SPDX-License-Identifier: MIT
"""The oracle's closed forms: published figures, and against a search that knows no formula."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.oracle import dems, optimum
from experiments.oracle.path import MOST_PATHS, OracleError, Path, nearest_first

KIB = 1024
SMALL = [Path("near", 200e3, 0.005), Path("far", 500e3, 0.010)]


def wifi_lte(far_rtt_ms: float) -> list[Path]:
    return [Path("wifi", 7040e3 / 8, 0.025), Path("lte", 9185e3 / 8, far_rtt_ms / 2000)]


def drawn(most: int = 4) -> st.SearchStrategy[list[Path]]:
    one = st.tuples(st.integers(10, 2000), st.integers(0, 300))
    return st.lists(one, min_size=1, max_size=most).map(
        lambda all_: [Path(f"p{i}", rate * 1e3, ms / 1e3) for i, (rate, ms) in enumerate(all_)]
    )


def test_ten_kilobytes_over_a_near_and_a_far_path() -> None:
    assert optimum.thresholds(SMALL) == pytest.approx({"near": 0, "far": 1000})
    assert optimum.completion(SMALL, 10e3) == pytest.approx(0.022857, abs=5e-7)
    assert optimum.stops(SMALL, 10e3)["far"] == pytest.approx(0.012857, abs=5e-7)


@pytest.mark.parametrize(("rtt", "bytes_"), [(70, 8.8e3), (270, 96.8e3), (470, 184.8e3)])
def test_thresholds_at_three_distances(rtt: float, bytes_: float) -> None:
    paths = wifi_lte(rtt)
    assert optimum.thresholds(paths)["lte"] == pytest.approx(bytes_)
    assert dems.stop_below(paths) == pytest.approx(bytes_)
    far = nearest_first(paths)[1]
    assert optimum.takes(far, paths, bytes_ * 1.000001)
    assert not optimum.takes(far, paths, bytes_ * 0.999999)


@pytest.mark.parametrize(("rtt", "ms"), [(70, 160), (270, 217), (470, 273)])
def test_256_kib_at_three_distances(rtt: float, ms: int) -> None:
    assert round(optimum.completion(wifi_lte(rtt), 256 * KIB) * 1e3) == ms


@pytest.mark.parametrize(("rtt", "bytes_"), [(70, 59), (270, 159), (470, 259)])
def test_dems_sends_again(rtt: float, bytes_: int) -> None:
    paths = wifi_lte(rtt)
    assert dems.most_again(paths) / 1e3 == pytest.approx(bytes_, abs=1)
    assert dems.again(paths, 0.010) == pytest.approx(10e3, rel=0.01)


def test_where_dems_goes_on() -> None:
    paths = wifi_lte(270)  # 110 ms between their delays
    assert dems.near_goes_on(paths, 0.010, ago=0.120)
    assert not dems.near_goes_on(paths, 0.010, ago=0.121)
    assert dems.far_goes_on(paths, 0.010, between=88.1e3)
    assert not dems.far_goes_on(paths, 0.010, between=87.9e3)
    assert dems.far_goes_on(wifi_lte(70), 0.020, between=0)  # not known well enough to stop
    around = dems.around(paths, 256 * KIB, 0.010)
    assert around.far_from < dems.meeting(paths, 256 * KIB) < around.near_until
    assert around.again == pytest.approx(dems.again(paths, 0.010))
    assert dems.around(paths, 50e3, 0.010).near_until == 50e3  # the far path has none of it
    with pytest.raises(OracleError, match="3 path"):
        dems.stop_below([*paths, Path("third", 1e6, 0.1)])
    with pytest.raises(OracleError, match="-1 s is below 0"):
        dems.again(paths, -1)


@given(drawn(MOST_PATHS), st.integers(1, 10_000_000))
@settings(max_examples=200, deadline=None)
def test_the_optimum_is_the_time_in_which_the_paths_carry_the_object(
    paths: list[Path], size: int
) -> None:
    last = optimum.completion(paths, size)
    assert sum(optimum.shares(paths, size).values()) == pytest.approx(size, rel=1e-9, abs=1e-3)
    assert sum(it.rate * max(0, last * 0.999 - it.delay) for it in paths) < size
    assert last <= min(it.delay + size / it.rate for it in paths) * (1 + 1e-12)


@given(drawn(), st.integers(1, 3_000_000))
@settings(max_examples=200, deadline=None)
def test_the_rule_uses_the_paths_that_the_optimum_uses(paths: list[Path], size: int) -> None:
    used = optimum.stops(paths, size)
    for path in paths:
        bound = optimum.thresholds(paths)[path.name]
        if size > bound * (1 + 1e-9):
            assert used[path.name] > 0 and optimum.takes(path, paths, size)
        elif size < bound * (1 - 1e-9):
            assert used[path.name] == 0 and not optimum.takes(path, paths, size)


def test_a_path_is_worth_less_behind_what_it_holds() -> None:
    far = SMALL[1]
    assert optimum.takes(far, SMALL, 1500, held=1000)  # both at 12 ms and 12.5 ms
    assert not optimum.takes(far, SMALL, 1500, held=1500)
    assert not optimum.takes(far, SMALL, 0)


def test_a_fresh_window_doubles_until_it_fills_the_path() -> None:
    path = Path("p", 100e3, 0.050)  # 10000 bytes fill it
    assert [optimum.fresh_sent(path, t, 2000) for t in (0.0, 0.01, 0.02, 0.1)] == pytest.approx(
        [0, 1000, 2000, 2000]
    )
    assert optimum.fresh_sent(path, 0.15, 2000) == pytest.approx(6000)
    assert optimum.fresh_sent(path, 0.25, 2000) == pytest.approx(2000 + 4000 + 5000)
    assert optimum.fresh_sent(path, 1.0, 2000) == pytest.approx(14000 + 70e3)


@given(drawn(1), st.integers(1, 5_000_000), st.integers(500, 100_000))
@settings(max_examples=200, deadline=None)
def test_fresh_bytes_and_fresh_time_are_inverse(paths: list[Path], size: int, window: int) -> None:
    seconds = optimum.fresh_time(paths[0], size, window)
    assert optimum.fresh_sent(paths[0], seconds, window) == pytest.approx(size, rel=1e-6, abs=0.01)


@given(drawn(2), st.integers(1, 2_000_000), st.integers(1000, 60_000))
@settings(max_examples=100, deadline=None)
def test_no_static_split_is_better_with_fresh_windows(
    paths: list[Path], size: int, window: int
) -> None:
    best = optimum.fresh_completion(paths, size, window)
    assert best >= optimum.completion(paths, size) * (1 - 1e-9)
    for part in range(41):
        split = [size * part / 40, size * (40 - part) / 40][: len(paths)]
        split[-1] = size - sum(split[:-1])
        took = max(
            path.delay + optimum.fresh_time(path, bytes_, window)
            for path, bytes_ in zip(paths, split, strict=True)
            if bytes_ > 0
        )
        assert best <= took * (1 + 1e-9)


def test_fresh_windows_cost_up_to_twice_the_time() -> None:
    """With ten segments at first the best split is 1.02 to 1.83 times the fluid optimum here."""
    found = [
        optimum.fresh_completion(wifi_lte(rtt), kib * KIB)
        / optimum.completion(wifi_lte(rtt), kib * KIB)
        for rtt in (70, 270, 470)
        for kib in (64, 128, 256, 512, 1024, 4096, 8192)
    ]
    assert (min(found), max(found)) == pytest.approx((1.02, 1.83), abs=0.005)


def test_a_far_path_is_worth_it_earlier_with_fresh_windows() -> None:
    for rtt in (70, 270, 470):
        fresh, grown = optimum.fresh_thresholds(wifi_lte(rtt)), optimum.thresholds(wifi_lte(rtt))
        assert fresh["lte"] <= grown["lte"]
    near = wifi_lte(470)[0]
    assert optimum.fresh_thresholds(wifi_lte(470))["lte"] == optimum.fresh_sent(near, 0.210)


@pytest.mark.parametrize(
    ("rate", "delay", "rtt", "told"),
    [
        (0, 0.1, None, "path p: a rate of 0 bytes/s"),
        (-5, 0.1, None, "path p: a rate of -5"),
        (float("nan"), 0.1, None, "path p: a rate of nan"),
        (1, -0.1, None, "path p: a delay of -0.1 s"),
        (1, 0.1, 0.05, "path p: a round trip of 0.05 s is shorter"),
        (1, 0.1, -1, "path p: a round trip of -1 s is shorter"),
    ],
)
def test_paths_that_are_none(rate: float, delay: float, rtt: float | None, told: str) -> None:
    with pytest.raises(OracleError, match=told):
        Path("p", rate, delay, rtt)


def test_sets_of_paths_that_are_none() -> None:
    with pytest.raises(OracleError, match="8 paths: at most 7"):
        optimum.completion([Path(str(i), 1, 0) for i in range(8)], 1)
    with pytest.raises(OracleError, match="no path"):
        optimum.thresholds([])
    with pytest.raises(OracleError, match="path p: two"):
        optimum.thresholds([Path("p", 1, 0), Path("p", 2, 0)])
    with pytest.raises(OracleError, match="a size of -1 bytes"):
        optimum.completion([Path("p", 1, 0)], -1)
