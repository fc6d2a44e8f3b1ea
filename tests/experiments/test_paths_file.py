# SPDX-License-Identifier: MIT
"""How much of a file went over both paths, beside what DEMS expects."""

from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue.paths_file import PathsFile, over_expected, paths_of
from experiments.oracle import dems

MESSAGE = 1448
PATHS = paths_of(parameters.complete(PathsFile.parameters, {"preset": "wifi-lte"}))


def sample(path: int, deviation_ms: float, reinjected: int = 0) -> dict[str, Any]:
    return {"path": path, "deviation_ms": deviation_ms, "reinjected": reinjected}


def test_what_goes_again_is_measured_by_the_largest_deviation() -> None:
    """What delays deviate by once all has gone decided nothing."""
    records = [sample(0, 1.0), sample(1, 1.0), sample(0, 8.0), sample(1, 2.0)]
    records += [sample(0, 0.1, MESSAGE), sample(1, 0.1, 2 * MESSAGE)]
    records += [sample(0, 90.0, MESSAGE), sample(1, 0.1, 2 * MESSAGE)]
    expected = dems.again(PATHS, 0.005) + 2 * MESSAGE
    assert over_expected(records, PATHS) == pytest.approx(3 * MESSAGE / expected)


def test_a_message_on_each_path_is_no_more_than_is_expected() -> None:
    """Of a deviation of 1 ms (5.13) makes 0.9 KB, and no message is cut."""
    assert dems.again(PATHS, 0.001) == pytest.approx(900, rel=0.1)
    records = [sample(0, 0.0, MESSAGE), sample(1, 0.0, MESSAGE)]
    assert over_expected(records, PATHS) == pytest.approx(1)


def test_of_one_path_nothing_is_expected() -> None:
    assert over_expected([sample(0, 1.0, MESSAGE)], PATHS) is None
