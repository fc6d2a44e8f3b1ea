# SPDX-License-Identifier: MIT
"""Which groups of guests' tests run at the same time, and what is seen of one that runs beside."""

from pathlib import Path

import pytest

from vm.beside import beside
from vm.testing import turns


@pytest.mark.parametrize(
    ("names", "processors", "expected"),
    [
        (["netem", "kernel", "services"], 2, [["netem"], ["kernel", "services"]]),
        (["kernel", "netem", "services"], 8, [["netem"], ["kernel", "services"]]),
        (["netem", "kernel", "services"], 1, [["netem"], ["kernel"], ["services"]]),
        (["kernel", "arm64", "services"], 2, [["kernel", "arm64"], ["services"]]),
        (["services"], 2, [["services"]]),
    ],
)
def test_what_measures_runs_alone(
    names: list[str], processors: int, expected: list[list[str]]
) -> None:
    assert turns(names, processors) == expected


def test_what_it_said_is_shown(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with beside("no-such-group", tmp_path, []) as it:
        assert not it.passes()
    assert b"invalid choice: 'no-such-group'" in capfdbinary.readouterr().out
