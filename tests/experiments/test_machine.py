# SPDX-License-Identifier: MIT
"""How a machine kept up: what is void is repeated, kept apart, and in no median."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, catalogue, machine, merge, parameters, report
from experiments.campaign import How
from experiments.folder import FORMAT, Results
from experiments.machine import ATTEMPTS, LATE_MAX_US, LATE_P99_US
from experiments.model import Experiment
from experiments.plan import Plan
from experiments.report import conclusions, facts
from tests.experiments import synthetic

PLAN = Plan(
    "download",
    tuple(parameters.complete((), {"pipes": pipes}) for pipes in (1, 8)),
    reps=2,
    seed=1,
    limit_s=30.0,
)
AS_RUN, AS_RESUMED = How(), How(once_more=True)


def told(p99: int = 100, most: int = 900, **more: Any) -> dict[str, Any]:
    late = {
        "mile up": {"packets": 9, "p99": 1, "max": 2},
        "mile down": {"packets": 900, "p99": p99, "max": most},
    }
    plain = {"run_waited_s": 0.0, "linkem_waited_s": 0.0, "pressure_s": 0.4, "load": 1.0}
    return {"took_s": 10.0, "late_us": late, **plain, **more}


def test_what_is_within_the_bounds_counts() -> None:
    assert machine.beyond(told()) == ""
    waited = {f"{name}_waited_s": 10 * most for name, (_, most) in machine.WAITS.items()}
    at = told(LATE_P99_US, LATE_MAX_US, **waited)
    assert machine.beyond(at) == "", "a bound may be reached"
    at_work = told(rp_waited_s=1.64, lp_waited_s=1.65)
    assert machine.beyond(at_work) == "", "who is woken while others run waits a little"
    assert machine.beyond(told(load=99.0, pressure_s=9.9)) == "", "they are told, not judged"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (told(p99=LATE_P99_US + 1), "linkem was 1.001 ms late (mile down, 99th percentile"),
        (told(most=LATE_MAX_US + 1), "linkem was 50.001 ms late (mile down, most; 50 may be)"),
        (told(linkem_waited_s=1.5), "linkem waited for a processor for 15 % of the time"),
        (told(run_waited_s=2.0), "the run's process waited for a processor for 20 % of the time"),
        (told(rp_waited_s=3.3), "rp waited for a processor for 33 % of the time"),
        (told(lp_waited_s=2.1), "lp waited for a processor for 21 % of the time"),
    ],
)
def test_past_a_bound_it_says_which(found: dict[str, Any], says: str) -> None:
    assert says in machine.beyond(found)


def test_what_nobody_knows_is_not_held_against_a_run() -> None:
    """A link of netem's, a kernel without schedstat."""
    unknown = told(run_waited_s=None, linkem_waited_s=None, pressure_s=None)
    assert machine.beyond({**unknown, "late_us": {}}) == ""


def test_a_meter_knows_this_process() -> None:
    meter = machine.Meter((os.getpid(),))
    sum(range(100_000))
    found = meter.told({})
    assert found["took_s"] >= 0 and found["load"] >= 0
    for name in ("run_waited_s", "linkem_waited_s", "pressure_s"):
        assert found[name] is None or found[name] >= 0
    gone = machine.Meter((2**22 - 1,)).told({})
    assert gone["linkem_waited_s"] is None, "what cannot be read is not 0"


def test_a_proxy_that_stood_in_line_makes_a_run_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """linkem goes before all others, so it was on time in runs whose proxies were not."""
    waited_s = {os.getpid(): 0.0, 101: 0.0, 201: 0.0, 202: 0.0}
    monkeypatch.setattr(machine, "_waited_ns", lambda pid: round(waited_s[pid] * 1e9))
    meter = machine.Meter((101,), {"rp": 201, "lp": 202})
    meter.began -= 15.0
    waited_s.update({101: 0.11, 201: 4.95, 202: 2.9})
    found = meter.told(told()["late_us"])
    assert (found["rp_waited_s"], found["lp_waited_s"]) == (4.95, 2.9)
    assert machine.beyond(found) == "rp waited for a processor for 33 % of the time"
    assert machine.kept_by(found)
    plain = machine.Meter((101,)).told({})
    assert "rp_waited_s" not in plain, "a run without pipes has no proxies"


def test_a_crowd_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"us": 7_000_000, "s": 100.0}
    monkeypatch.setattr(machine, "_pressure_us", lambda: clock["us"])
    monkeypatch.setattr("time.monotonic", lambda: clock["s"])
    meter = machine.Meter(began=clock["s"])
    clock.update(us=9_000_000, s=104.0)
    found = meter.told({})
    assert found["pressure_s"] / found["took_s"] == 0.5 and machine.crowded(meter) == ""
    clock["us"] += 480_000
    assert machine.crowded(meter) == (
        "machine too slow: some process waited for a processor for 62 % of the time"
    )
    clock["us"] = None
    assert meter.told({})["pressure_s"] is None and machine.crowded(meter) == ""


# --- repeated, up to a limit ---


def folder(root: Path) -> Results:
    meta = {"experiment": "download", "plan": PLAN.as_dict(), "commit": "0123", "sessions": []}
    return Results.create(root, "download", "0123", meta)


def record(name: str, outcome: str, started: float = 1.0) -> dict[str, Any]:
    return {"format": FORMAT, "id": name, "outcome": outcome, "error": "late", "started": started}


class Attempts:
    """In place of Runs: outcomes in order; ok when there are no more."""

    def __init__(self, results: Results, *outcomes: str) -> None:
        self.results, self.outcomes = results, iter(outcomes)

    def run(self, run: Any, _stop: Any) -> dict[str, Any]:
        made = record(run.id, next(self.outcomes, "ok"))
        self.results.append(made)
        return made


class Watcher:
    """In place of Progress and Stop."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.done: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, it: dict[str, Any]) -> None:
        self.done.append(it["outcome"])

    def check(self, _what: str) -> None:
        pass


def carried_out(results: Results, *outcomes: str, how: How = AS_RUN) -> Watcher:
    seen: Any = Watcher()
    made: Any = Attempts(results, *outcomes)
    left = campaign._left(results, list(PLAN.runs()), how)
    if left:
        campaign._here(made, left, seen, seen, math.inf)
    return seen


def test_a_void_run_is_repeated(tmp_path: Path) -> None:
    results = folder(tmp_path)
    seen = carried_out(results, "void", "void", "ok")
    assert seen.done == ["ok"] * 4 and len(results.runs()) == 6
    assert ["attempt 2 follows: late" in seen.notes[0], "attempt 3" in seen.notes[1]] == [True] * 2
    assert results.unfinished() == 0


def test_not_for_ever(tmp_path: Path) -> None:
    results = folder(tmp_path)
    seen = carried_out(results, *["void"] * ATTEMPTS)
    assert seen.done == ["void", "ok", "ok", "ok"] and len(seen.notes) == ATTEMPTS - 1
    assert results.unfinished() == 0, "it was tried often enough"
    assert list(machine.attempts(results.runs()).values()) == [ATTEMPTS]


def test_attempts_of_an_earlier_call_count(tmp_path: Path) -> None:
    """A run that was void twice before the command was stopped had three more at a resume."""
    results = folder(tmp_path)
    first = next(iter(PLAN.runs()))
    for _ in range(ATTEMPTS - 1):
        results.append(record(first.id, "void"))
    seen = carried_out(results, *["void"] * ATTEMPTS)
    assert machine.attempts(results.runs())[first.id] == ATTEMPTS
    assert seen.done[0] == "void"


def test_a_failure_is_not_repeated(tmp_path: Path) -> None:
    seen = carried_out(folder(tmp_path), "failed")
    assert seen.done == ["failed", "ok", "ok", "ok"]


def test_resume_does_what_was_void_when_it_stopped(tmp_path: Path) -> None:
    results = folder(tmp_path)
    first = next(iter(PLAN.runs()))
    results.append(record(first.id, "void"))
    assert first.id not in results.done() and results.unfinished() == 4
    results.append(record(first.id, "ok"))
    assert first.id in results.done() and machine.attempts(results.runs()) == {}


def test_resume_tries_once_more_what_was_tried_often_enough(tmp_path: Path) -> None:
    """Its help said so, but on a quiet day the folder stayed as it was."""
    results = folder(tmp_path)
    carried_out(results, *["void"] * ATTEMPTS)
    assert carried_out(results).done == []
    seen = carried_out(results, "void", how=AS_RESUMED)
    assert (seen.done, seen.notes) == (["void"], [])
    assert carried_out(results, how=AS_RESUMED).done == ["ok"]
    assert carried_out(results, how=AS_RESUMED).done == []
    assert machine.attempts(results.runs()) == {}


def test_merged_folders_keep_void_attempts_apart(tmp_path: Path) -> None:
    parts = [folder(tmp_path) for _ in range(2)]
    ids = [run.id for run in PLAN.runs()]
    parts[0].append(record(ids[0], "void"))
    parts[1].append(record(ids[0], "ok", 2.0))
    whole = merge.merge([it.path for it in (parts[0], parts[0], parts[1])], tmp_path)
    assert [it["outcome"] for it in whole.runs()] == ["void", "ok"]
    assert whole.done() == {ids[0]}


# --- in no median ---


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    made = synthetic.Plain()
    monkeypatch.setattr(catalogue, "of", lambda meta: made)
    yield made


def with_void(path: Path) -> Path:
    """A void attempt at every run, of absurd length, written after the one that counts; and a run
    that has no other."""
    runs = path / "runs.jsonl"
    lines = [json.loads(line) for line in runs.read_text().splitlines()]
    voids = []
    for line in lines:
        measures = {name: 1e9 for name in line["measures"]}
        more = {"outcome": "void", "error": "linkem was 9 ms late", "logs": None}
        voids.append({**line, **more, "completion_s": 1e9, "measures": measures})
    voids.append({**voids[0], "id": "alone"})
    runs.write_text("".join(json.dumps(it) + "\n" for it in [*lines, *voids]))
    return path


def test_a_void_run_never_enters_a_median(tmp_path: Path, known: Experiment) -> None:
    clean = synthetic.make(tmp_path / "A", known, 5)
    void = with_void(synthetic.make(tmp_path / "B", known, 5))
    for path in (clean, void):
        report.write(path)
    one, other = (json.loads((path / "summary.json").read_text()) for path in (clean, void))
    assert other["configurations"] == one["configurations"]
    assert other["comparison"] == one["comparison"]
    assert other["contrasts"] == one["contrasts"]
    assert (one["void"], one["void_attempts"]) == (0, 0)
    assert (other["void"], other["void_attempts"]) == (1, one["runs"] + 1)
    assert other["runs"] == one["runs"] and other["failed"] == 0


def test_the_report_says_what_is_void_and_why(tmp_path: Path, known: Experiment) -> None:
    path = with_void(synthetic.make(tmp_path / "A", known, 5))
    page = report.write(path).read_text()
    assert "linkem was 9 ms late" in page and "1 void" in page
    assert "1 run without another" in page
    results = synthetic.loaded(path, known)
    assert "1 more are void" in conclusions.sentences(results)[0]


def test_a_folder_without_lateness_says_so(tmp_path: Path, known: Experiment) -> None:
    """Made before runs kept it; or by a link that does not tell."""
    path = synthetic.make(tmp_path / "A", known, 2)
    results = synthetic.loaded(path, known)
    assert "nobody knows whether linkem was late" in facts.kept_up(results)
    assert "nobody knows whether linkem was late" in report.write(path).read_text()
    assert json.loads((path / "summary.json").read_text())["late"] is None
    lines = [json.loads(line) for line in (path / "runs.jsonl").read_text().splitlines()]
    lines[0]["machine"] = told()
    write(path, lines)
    assert "not all links" in facts.kept_up(synthetic.loaded(path, known)), "of one run it is known"


def test_a_machine_with_a_clock_of_its_own_was_not_late(tmp_path: Path, known: Experiment) -> None:
    path = synthetic.make(tmp_path / "A", known, 2)
    meta = json.loads((path / "meta.json").read_text())
    meta["machine"] = {**(meta.get("machine") or {}), "own_clock": True}
    (path / "meta.json").write_text(json.dumps(meta))
    results = synthetic.loaded(path, known)
    assert "its clock counts instructions" in facts.kept_up(results)
    assert "10^9 instructions are a second" in dict(facts.of(results))["machine"]
    said = " ".join(conclusions.sentences(results))
    assert "only its own programs can" in said and "nobody knows" not in said


def test_the_worst_of_all_runs_is_told(tmp_path: Path, known: Experiment) -> None:
    path = synthetic.make(tmp_path / "A", known, 2)
    lines = [json.loads(line) for line in (path / "runs.jsonl").read_text().splitlines()]
    for k, line in enumerate(lines):
        waited = {"linkem_waited_s": 0.25, "rp_waited_s": 0.5}
        line["machine"] = told(100 + k, 3000 if k else 40_000, load=1.5 + k, **waited)
    write(path, lines)
    results = synthetic.loaded(path, known)
    assert facts.lateness(results) == {"p99_us": 99 + len(lines), "max_us": 40_000}
    says = facts.kept_up(results)
    assert "40 ms in all" in says and f"load at most {0.5 + len(lines):g}" in says
    assert "waited for a processor, of a run at most: linkem 2.5 %, rp 5.0 %;" in says


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    (path / "runs.jsonl").write_text("".join(json.dumps(it) + "\n" for it in lines))
