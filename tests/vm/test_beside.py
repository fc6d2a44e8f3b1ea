# SPDX-License-Identifier: MIT
"""Which groups of guests' tests run at the same time, and what is seen of one that runs beside."""

from pathlib import Path

import pytest

from vm.beside import beside
from vm.testing import turns


@pytest.mark.parametrize(
    ("names", "processors", "expected"),
    [
        (["netem", "kernel", "services"], 2, [["netem", "kernel", "services"]]),
        (["kernel", "services", "arm64", "netem"], 8, [["netem", "kernel", "services"], ["arm64"]]),
        (["netem"], 2, [["netem"]]),
        (["netem", "kernel", "services"], 1, [["netem"], ["kernel"], ["services"]]),
        (["kernel", "arm64", "services"], 2, [["kernel", "arm64"], ["services"]]),
        (["services"], 2, [["services"]]),
    ],
)
def test_what_measures_is_first_and_two_run_beside_it(
    names: list[str], processors: int, expected: list[list[str]]
) -> None:
    assert turns(names, processors, undisturbed=True) == expected


def test_what_measures_runs_alone_where_it_may_be_late() -> None:
    expected = [["netem"], ["kernel", "services"]]
    assert turns(["netem", "kernel", "services"], 2, undisturbed=False) == expected


def test_what_it_said_is_shown(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with beside("no-such-group", tmp_path, []) as it:
        assert not it.passes()
    assert b"invalid choice: 'no-such-group'" in capfdbinary.readouterr().out


def test_what_it_says_is_shown_as_it_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says another thing when what it said first was shown, and not before."""
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\necho one\nuntil [ -e '{tmp_path}/seen' ]; do sleep 0.1; done\necho other\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr("vm.beside.sys.executable", str(python))
    shown = b""

    def show(data: bytes) -> None:
        nonlocal shown
        shown += data
        if shown == b"one\n":
            (tmp_path / "seen").touch()

    monkeypatch.setattr("vm.beside.to_stdout", show)
    with beside("any-group", tmp_path, []) as it:
        assert it.passes()
    assert shown == b"one\nother\n"
