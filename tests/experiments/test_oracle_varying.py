# SPDX-License-Identifier: MIT
"""One object over paths that vary: beside the closed form where they do not, and by hand."""

from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.catalogue import paths_vary
from experiments.oracle import optimum
from experiments.oracle.path import OracleError, Path
from experiments.oracle.varying import STEP_S, Varying, least, steps, together

KIB = 1024
WITHIN_S = 2 * STEP_S


def constant(path: Path) -> Varying:
    return Varying(lambda at: path.rate, lambda at: path.delay)


@given(
    st.lists(st.tuples(st.integers(100, 2000), st.integers(1, 200)), min_size=1, max_size=3),
    st.integers(10_000, 300_000),
)
@settings(max_examples=40, deadline=None)
def test_of_paths_that_do_not_vary_it_is_the_closed_form(
    drawn: list[tuple[int, int]], size: int
) -> None:
    paths = [Path(f"p{i}", rate * 1e3, ms / 1e3) for i, (rate, ms) in enumerate(drawn)]
    varying = [constant(it) for it in paths]
    assert least(varying, size) == pytest.approx(optimum.completion(paths, size), abs=WITHIN_S)
    rate = sum(it.rate for it in paths)
    both = size / rate + max(it.delay for it in paths)
    assert together(varying, size) == pytest.approx(both, abs=WITHIN_S)
    assert least(varying, size) <= together(varying, size) + WITHIN_S


def test_a_far_path_is_used_as_soon_as_it_is_near() -> None:
    """100 KB/s each, 10 ms away; the other one 500 ms until 100 ms have passed. Who foresees that
    sends nothing there before, since what comes behind cannot overtake it."""
    near = constant(Path("near", 100e3, 0.010))
    other = Varying(lambda at: 100e3, steps((0.5, *[0.01] * 99), 0.1))
    assert least([near], 20_000) == pytest.approx(0.210, abs=WITHIN_S)
    assert least([near, other], 20_000) == pytest.approx(0.160, abs=WITHIN_S)
    assert least([near, other], 20_000, begin=0.1) == pytest.approx(0.110, abs=WITHIN_S)
    assert together([near, other], 20_000) == pytest.approx(0.600, abs=WITHIN_S)
    assert together([near, other], 40_000) == pytest.approx(0.600, abs=WITHIN_S)


def test_a_rate_of_the_moment() -> None:
    """100 KB/s for a tenth of a second, then 400: 20 KB are 10 and 10 KB."""
    path = Varying(steps((100e3, 400e3), 0.1), lambda at: 0.020)
    assert least([path], 20_000) == pytest.approx(0.1 + 0.025 + 0.020, abs=WITHIN_S)


def test_what_foresight_gains_where_delays_vary() -> None:
    """The ten draws of a quick run of paths-vary: 256 KiB, from rp on."""
    ratios = []
    for number in range(1, 1 + paths_vary.QUICK_MANY):
        paths = paths_vary.varying_of("delay", number)
        begin = paths[0].delay(0.0) + 0.008  # a request, and from rp to the server and back, twice
        best, both = (at(paths, 256 * KIB, begin) for at in (least, together))
        ratios.append((begin + best) / (begin + both))
    assert median(ratios) == pytest.approx(0.98, abs=0.01)
    assert min(ratios) > 0.92
    assert max(ratios) <= 1.0


def test_questions_without_an_answer() -> None:
    nothing = Varying(lambda at: 0.0, lambda at: 0.0)
    with pytest.raises(OracleError, match="take more than 60 s"):
        least([nothing], 1)
    with pytest.raises(OracleError, match="no path"):
        together([], 1)
    with pytest.raises(OracleError, match="a size of 0"):
        least([nothing], 0)
