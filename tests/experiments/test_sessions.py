# SPDX-License-Identifier: MIT
"""Sessions of a plan: when the next may begin, who waits for it, what a record says of it."""

import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, parameters, sessions
from experiments.campaign import How
from experiments.cli import main
from experiments.folder import FORMAT, Results
from experiments.plan import Plan, Run
from experiments.stopping import Stopped
from tests.experiments.runner_lab import experiment

CONFIGURATIONS = tuple(parameters.complete((), {"pipes": pipes}) for pipes in (1, 8))


def folder(root: Path, apart_s: float, count: int = 3) -> Results:
    plan = Plan("tried", CONFIGURATIONS, 2, 1, 30.0, sessions=count, apart_s=apart_s)
    return Results.create(root, "tried", None, {"experiment": "tried", "plan": plan.as_dict()})


class Made:
    """In place of Runs: what was run, when, and in how many labs."""

    labs = 0

    def __init__(self, _experiment: Any, results: Results, **_limits: Any) -> None:
        self.results = results

    def __enter__(self) -> "Made":
        Made.labs += 1
        return self

    def __exit__(self, *_error: Any) -> None:
        pass

    def run(self, run: Run, _stop: Any) -> dict[str, Any]:
        told = {"format": FORMAT, "id": run.id, "rep": run.rep, "session": run.session}
        more = {"outcome": "ok", "params": dict(run.params), "took_s": 0.0, "completion_s": 1.0}
        record = {**told, **more, "started": time.time()}
        self.results.append(record)
        return record


@pytest.fixture(autouse=True)
def no_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "Runs", Made)
    monkeypatch.setattr(Made, "labs", 0)


def carry_out(results: Results, **how: Any) -> list[dict[str, Any]]:
    campaign.run(experiment(lambda run: {}), results, How(**how, calibrate=False))
    return results.runs()


def test_sessions_are_apart_and_each_has_its_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[tuple[int, int]] = []  # for which session, and behind how many runs
    wait = sessions.wait

    def counted(results: Results, number: int, *more: Any) -> bool:
        waited.append((number, len(results.runs())))
        return wait(results, number, *more)

    monkeypatch.setattr(sessions, "wait", counted)
    runs = carry_out(folder(tmp_path, apart_s=0.3))
    assert [it["session"] for it in runs] == [0] * 4 + [1] * 4 + [2] * 4
    assert Made.labs == 3
    for last, first in ((3, 4), (7, 8)):
        assert runs[first]["started"] - runs[last]["started"] >= 0.299
    assert waited == [(0, 0), (1, 4), (2, 8)], "within one: at once"


def test_nobody_waits_longer_than_there_is_time(tmp_path: Path) -> None:
    """What is left can be resumed, and then the time that has passed counts."""
    results = folder(tmp_path, apart_s=3600.0)
    began = time.monotonic()
    assert len(carry_out(results, within_s=60.0)) == 4
    assert time.monotonic() - began < 30
    assert results.unfinished() == 8
    assert sessions.begins(results, 0) == 0.0, "it has begun"
    last = results.runs()[-1]
    assert sessions.begins(results, 1) == pytest.approx(last["started"] + 3600.0)


def test_when_the_time_is_up_no_other_session_begins(tmp_path: Path) -> None:
    results = folder(tmp_path, apart_s=0.0)
    assert [it["rep"] for it in carry_out(results, within_s=0.0)] == [0, 0]
    assert [it["rep"] for it in carry_out(results, within_s=math.inf)][2:4] == [1, 1]
    assert results.unfinished() == 0


def test_a_session_that_has_begun_goes_on_at_once(tmp_path: Path) -> None:
    results = folder(tmp_path, apart_s=3600.0)
    runs = list(results.plan.runs())
    made = Made(None, results)
    for run in runs[:5]:
        made.run(run, None)
    assert len(carry_out(results, within_s=60.0)) == 8


def test_a_signal_ends_the_waiting(tmp_path: Path) -> None:
    results = folder(tmp_path, apart_s=3600.0)

    def interrupt() -> None:
        while len(results.runs()) < 4:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(Stopped, match="between two sessions"):
        carry_out(results)
    sender.join()
    assert results.meta["sessions"][-1]["ended"], "the call is closed"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sessions", "0"), "sessions: 0 is not from 1 to 1000"),
        (("--sessions", "x"), "argument --sessions: invalid int value: 'x'"),
        (("--sessions", "3", "--apart", "-1"), "apart: -1.0 is not from 0"),
        (("--sessions", "1000", "--reps", "1000"), "1000 in 1000 sessions of"),
    ],
)
def test_a_wrong_number_is_told_in_one_line(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["run", "download", "--dry-run", *words])
    except SystemExit as ended:
        status = int(str(ended.code))
    told = capsys.readouterr().err
    assert (status, told.count("\n")) == (2, 1)
    assert says in told


def test_a_dry_run_tells_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "download", "--dry-run", "--sessions", "3", "--apart", "180"]) == 0
    assert "3 sessions, 3 h 00 min apart, of 20 repetitions" in capsys.readouterr().err
