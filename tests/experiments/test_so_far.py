# SPDX-License-Identifier: MIT
"""The plots of a sweep that goes on: between two blocks, where somebody watches, and seldom."""

import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, so_far
from experiments.so_far import SHARE, SoFar
from tests.experiments import synthetic
from tests.experiments.test_machine import PLAN, Attempts, Watcher, folder


def test_they_are_those_of_the_runs_so_far(tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "download" / "one", synthetic.Download(), 3)
    assert not (made / "plots").exists()
    SoFar(made).draw()
    assert list((made / "plots").glob("*.svg"))


def test_they_take_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now, drawn = [1000.0], []

    def run(program: tuple[str, ...], **_: Any) -> None:
        drawn.append(now[0])
        now[0] += 2.0

    monkeypatch.setattr(so_far.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(so_far.subprocess, "run", run)
    it = SoFar(tmp_path)
    while now[0] < 2000:
        it.draw()
        now[0] += 1.0
    assert len(drawn) == pytest.approx(1000 * SHARE / 2.0, abs=1)


def test_one_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*_: Any, **more: Any) -> None:
        raise subprocess.TimeoutExpired("plot", more["timeout"])

    monkeypatch.setattr(so_far.subprocess, "run", run)
    SoFar(tmp_path).draw()


def test_between_two_blocks(tmp_path: Path) -> None:
    """Never beside a run: it would take the processor from what is measured."""
    results = folder(tmp_path)
    seen: Any = Watcher()
    made: Any = Attempts(results)
    counts = []

    class Counted(SoFar):
        def draw(self) -> None:
            counts.append(len(seen.done))

    campaign._here(made, list(PLAN.runs()), seen, seen, math.inf, Counted(results.path))
    of_block = len(PLAN.configurations)
    assert counts == [of_block * k for k in range(1, PLAN.blocks)]
