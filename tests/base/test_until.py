# SPDX-License-Identifier: MIT
"""A limit is of the machine's own time, not of what others took of it."""

import time
from pathlib import Path

import pytest

from base import pressure
from base.shell import until


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a guest sees how its host is pressed; nobody else presses this machine."""
    file = tmp_path / "cpu"
    real = pressure._waited_us
    monkeypatch.setenv("TM3_HOST_PRESSURE", str(tmp_path))
    monkeypatch.setattr(pressure, "_waited_us", lambda it: real(it) if it == file else 0)
    return file


def pressed(file: Path, share: float) -> None:
    """From now on, and always."""
    waited_us = round(1e6 * share * time.monotonic())
    file.write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\n")


@pytest.mark.parametrize(("share", "at_least_s"), [(0.0, 0.5), (0.5, 1.0), (1.0, 2.0)])
def test_a_limit_waits_while_others_have_the_machine(
    host: Path, share: float, at_least_s: float
) -> None:
    def never() -> bool:
        pressed(host, share)
        return False

    pressed(host, share)
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=r"waited 0\.5 s \(\d+ by the clock\) for nothing"):
        until("nothing", never, 0.5)
    assert at_least_s - 0.05 < time.monotonic() - begun < at_least_s + 1.0


def test_what_comes_late_on_a_busy_machine_is_in_time(host: Path) -> None:
    begun = time.monotonic()

    def comes() -> bool:
        pressed(host, 0.7)
        return time.monotonic() - begun > 0.9

    pressed(host, 0.7)
    assert until("what takes three times as long", comes, 0.5)
