# SPDX-License-Identifier: MIT
"""make calibrate fails where a goal is missed, and says which. Made-up figures: nothing is run."""

import sys
from typing import Any

import pytest

from tests.net import calibrate
from tests.net.calibrate import Loss, Throughput, Timing


def timing(p99_ms: float) -> Timing:
    return Timing(25, 0.02, 10, 1000, 0.05, p99_ms, 3.0)


def throughput(mbps: float) -> Throughput:
    return Throughput("no limit", mbps, 50_000, 0.9, 0)


def test_what_reaches_its_goal_is_no_miss() -> None:
    assert calibrate.missed_timing([timing(0.499)]) == []
    assert calibrate.missed_loss([Loss(0.01, 20000, 200, 150, 250)]) == []
    assert calibrate.missed_throughput([throughput(12), throughput(500)]) == []


def test_a_miss_says_what_and_by_how_much() -> None:
    (late,) = calibrate.missed_timing([timing(0.1), timing(0.5), timing(7.25)])
    assert late == (
        "timing: p99 is 0.5 ms or more in 2 of 3 cells, 7.250 ms at 25 ms, loss 0.02, 10 Mbit/s"
    )
    (lost,) = calibrate.missed_loss([Loss(0.01, 20000, 260, 150, 250)])
    assert lost == "loss: 260 of 20000 packets at 0.01, not 150 to 250"
    (slow,) = calibrate.missed_throughput([throughput(499)])
    assert slow == "throughput: 499 Mbit/s at best, not 500"
    assert calibrate.missed_timing([timing(float("nan"))]), "nothing measured is no success"


@pytest.mark.parametrize(("missed", "status"), [([], 0), (["timing: too late", "loss: 1"], 1)])
def test_the_command_fails_on_a_miss(
    missed: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: dict[str, Any] = {"missed": missed}
    monkeypatch.setattr(calibrate, "report", lambda _effort: told)
    monkeypatch.setattr(calibrate.os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["calibrate", "--quick"])
    assert calibrate.main() == status
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"calibrate: MISSED: {what}" for what in missed]


def test_what_is_printed_as_missed_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    """What the table calls MISSED or OUTSIDE, the command fails by."""
    calibrate.print_throughput([throughput(100)])
    assert "MISSED" in capsys.readouterr().out and calibrate.missed_throughput([throughput(100)])
    outside = Loss(0.05, 100, 50, 1, 9)
    calibrate.print_losses([outside])
    assert "OUTSIDE" in capsys.readouterr().out and calibrate.missed_loss([outside])
