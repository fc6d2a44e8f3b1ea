# SPDX-License-Identifier: MIT
"""One of two paths is silent for a while: what that costs at least."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.oracle import optimum
from experiments.oracle.path import OracleError, Path
from experiments.oracle.silence import fresh_completion_through

PATHS = [Path("near", 880_000.0, 0.025), Path("far", 1_148_000.0, 0.035)]
SIZE, GROWN = 1 << 20, 1e9
SHARE = {it.name: it.rate / sum(path.rate for path in PATHS) for it in PATHS}


@pytest.mark.parametrize("name", ["near", "far"])
def test_a_silence_costs_its_length_times_the_share_of_the_path(name: str) -> None:
    without = optimum.completion(PATHS, SIZE)
    through = fresh_completion_through(PATHS, SIZE, name, 0.1, 0.2, GROWN)
    assert through == pytest.approx(without + 0.2 * SHARE[name])


@pytest.mark.parametrize("name", ["near", "far"])
def test_near_the_end_the_other_path_is_sooner(name: str) -> None:
    """The rest goes over the other path, and the end of the silence is not waited for."""
    without = optimum.completion(PATHS, SIZE)
    other = next(it for it in PATHS if it.name != name)
    here = next(it for it in PATHS if it.name == name)
    begins = without - here.delay - 0.05
    through = fresh_completion_through(PATHS, SIZE, name, begins, 5.0, GROWN)
    assert through == pytest.approx(without + 0.05 * here.rate / other.rate)


@given(st.floats(0, 2), st.floats(0, 2), st.sampled_from(["near", "far"]))
def test_it_is_between_none_and_all_of_the_silence(begins: float, lasts: float, name: str) -> None:
    without = optimum.fresh_completion(PATHS, SIZE)
    through = fresh_completion_through(PATHS, SIZE, name, begins, lasts)
    assert without <= through <= without + lasts + 1e-9
    if begins > without:
        assert through == pytest.approx(without)


def test_a_silence_before_anything_was_sent_holds_up_the_window_as_well() -> None:
    alone = [Path("near", 880_000.0, 0.025)]
    assert fresh_completion_through(alone, SIZE, "near", 0.0, 0.3) == pytest.approx(
        optimum.fresh_completion(alone, SIZE) + 0.3
    )


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(OracleError, match="no path is called lte"):
        fresh_completion_through(PATHS, SIZE, "lte", 0.0, 0.3)
