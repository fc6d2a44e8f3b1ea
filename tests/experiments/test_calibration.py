# SPDX-License-Identifier: MIT
"""A machine that is late, or whose links let through something else, begins no sweep."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from experiments import calibration, campaign, catalogue, cli_run, parameters
from experiments.calibration import RATE_OFF, Found, Kind
from experiments.campaign import How
from experiments.cli import main
from experiments.folder import FORMAT, Results
from experiments.machine import ATTEMPTS, LATE_MAX_US, LATE_P99_US
from experiments.plan import Plan
from experiments.preflight import CannotServe
from experiments.report import facts
from experiments.runner import Keep
from experiments.stopping import stoppable
from tests.conftest import why_no_namespace
from tests.experiments import synthetic
from tests.experiments.runner_lab import experiment
from tests.net.measure import again_if_late, near
from topologies.lab import Lab

KIND = Kind("linkem", "network", 10.0)
PLAN = Plan(
    "download",
    tuple(parameters.complete((), {"pipes": pipes, "link": "linkem"}) for pipes in (1, 8)),
    reps=2,
    seed=1,
    limit_s=30.0,
)


def found(**changed: Any) -> Found:
    """Of a machine that is on time."""
    told = {"took_s": 3.0, "late_us": {}, "run_waited_s": 0.0, "linkem_waited_s": 0.0}
    plain = {"sent": 1000, "arrived": 1000, "late_p99_ms": 0.2, "late_max_ms": 2.0, "mbps": 9.99}
    return Found(**{**plain, "machine": {**told, "pressure_s": 0.1, "load": 0.5}, **changed})


LATE = found(late_p99_ms=7.25)


# --- judged ---


def test_a_bound_may_be_reached() -> None:
    assert calibration.missed(KIND, found()) == []
    at = found(late_p99_ms=LATE_P99_US / 1e3, late_max_ms=LATE_MAX_US / 1e3)
    assert calibration.missed(KIND, at) == []
    for mbps in (10 * (1 - RATE_OFF) + 0.001, 10 * (1 + RATE_OFF) - 0.001):
        assert calibration.missed(KIND, found(mbps=mbps)) == []


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (LATE, "packets were 7.25 ms late (99th percentile; 1 may be)"),
        (found(late_max_ms=81.0), "packets were 81 ms late (most; 50 may be)"),
        (found(mbps=9.0), "9 Mbit/s instead of 10, 10.0 % less (2 may be)"),
        (found(mbps=10.5), "10.5 Mbit/s instead of 10, 5.0 % more (2 may be)"),
        (found(mbps=0.0), "0 Mbit/s instead of 10, 100.0 % less (2 may be)"),
        (found(arrived=990), "990 of 1000 packets arrived over a link that loses none"),
        (
            found(machine={**found().machine, "linkem_waited_s": 1.5}),
            "linkem waited for a processor for 50 % of the time",
        ),
        (
            found(machine={**found().machine, "late_us": {"mile down": {"p99": 1500, "max": 2}}}),
            "linkem was 1.5 ms late (mile down, 99th percentile; 1 may be)",
        ),
    ],
)
def test_a_miss_says_what_and_by_how_much(seen: Found, says: str) -> None:
    assert calibration.missed(KIND, seen) == [says]


def test_what_waits_behind_a_late_packet_is_late_by_the_rate() -> None:
    """500 bytes take 0.4 ms at 10 Mbit/s, and the way 25: the second is sent at once behind the
    first, the third much later, and comes 3 ms late."""
    sent_ms = (0.0, 0.0, 100.0)
    came_ms = (25.4, 25.8, 128.4)
    arrivals = [
        (number, round(1e6 * sent), round(1e6 * came))
        for number, (sent, came) in enumerate(zip(sent_ms, came_ms, strict=True))
    ]
    assert list(calibration._late_ms(arrivals, KIND)) == pytest.approx([0, 0, 3], abs=1e-3)


def test_each_kind_of_link_once_at_the_fastest_rate_of_the_sweep() -> None:
    def kinds(*chosen: dict[str, Any]) -> list[Kind]:
        return calibration.kinds(parameters.complete((), it) for it in chosen)

    linkem = {"link": "linkem"}
    assert kinds({**linkem, "preset": "lte"}, {**linkem, "mbps": 40.0}, linkem) == [
        Kind("linkem", "network", 40.0)
    ]
    assert kinds({**linkem, "mbps": 1000.0}) == [Kind("linkem", "network", calibration.MOST_MBPS)]
    assert kinds(linkem, {**linkem, "bottleneck": "sender"}) == [
        Kind("linkem", "network", 10.0),
        Kind("linkem", "sender", 10.0),
    ]
    trace = {**linkem, "trace_down": "synthetic-lte"}
    assert kinds(trace) == [Kind("linkem", "network", calibration.PLAIN_MBPS)]


# --- it stops a sweep ---


class Machine:
    """What a machine would show, one calibration after the other; then always the last."""

    def __init__(self, *seen: Found) -> None:
        self.seen = list(seen)
        self.asked = 0

    def __call__(self, its: list[Kind], _stop: Any) -> list[dict[str, Any]]:
        self.asked += 1
        now = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        return [asdict(now) for _ in its]


class Ran:
    """In place of Runs."""

    ids: list[str]

    def __init__(self, _experiment: Any, results: Results, **_: Any) -> None:
        self.results = results

    def __enter__(self) -> "Ran":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def run(self, run: Any, _stop: Any) -> dict[str, Any]:
        Ran.ids.append(run.id)
        record = {"id": run.id, "outcome": "ok", "params": dict(run.params), "took_s": 0.1}
        return {**record, "completion_s": 1.0}


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "Runs", Ran)
    monkeypatch.setattr(Ran, "ids", [], raising=False)


def swept(
    root: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine, **how: Any
) -> dict[str, Any]:
    """meta.json of a sweep on that machine; `wrong` there: why it ended."""
    monkeypatch.setattr(calibration, "_asked", machine)
    plan = PLAN.as_dict()
    results = Results.create(root, "download", None, {"experiment": "download", "plan": plan})
    wrong = None
    try:
        campaign.run(experiment(lambda run: {}), results, How(**how))
    except CannotServe as why:
        wrong = str(why)
    return {**json.loads((results.path / "meta.json").read_text()), "wrong": wrong}


def test_a_late_machine_ends_the_sweep_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(LATE)
    meta = swept(tmp_path, monkeypatch, machine)
    assert Ran.ids == [] and machine.asked == ATTEMPTS
    assert meta["wrong"].startswith(
        "calibration missed: linkem: packets were 7.25 ms late (99th percentile; 1 may be); in 3 "
        "attempts, so no run begins: tm3lab resume "
    )
    assert "\n" not in meta["wrong"]
    (call,) = meta["sessions"]
    assert call["ended"], "it ends in order"
    assert [it["runs_follow"] for it in call["calibrations"]] == [False] * ATTEMPTS
    (link,) = call["calibrations"][0]["links"]
    assert link["kind"] == {"link": "linkem", "bottleneck": "network", "mbps": 10.0}
    assert link["found"]["late_p99_ms"] == 7.25
    said = capsys.readouterr().err
    assert "attempt 2 follows" in said and "attempt 3 follows" in said


def test_a_moment_that_was_late_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = swept(tmp_path, monkeypatch, Machine(LATE, found()))
    assert meta["wrong"] is None and len(Ran.ids) == len(PLAN)
    told = meta["sessions"][0]["calibrations"]
    assert [it["runs_follow"] for it in told] == [False, True]
    assert [bool(it["missed"]) for it in told] == [True, False]


def test_who_keeps_what_is_late_begins_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(LATE)
    meta = swept(tmp_path, monkeypatch, machine, keep=Keep(late=True))
    assert meta["wrong"] is None and len(Ran.ids) == len(PLAN) and machine.asked == 1
    assert meta["sessions"][0]["calibrations"][0]["runs_follow"]
    assert "runs follow all the same (--keep-late)" in capsys.readouterr().err


def test_it_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(LATE)
    meta = swept(tmp_path, monkeypatch, machine, calibrate=False)
    assert machine.asked == 0 and len(Ran.ids) == len(PLAN)
    assert "calibrations" not in meta["sessions"][0]


def test_nothing_is_calibrated_where_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each session of a plan is, by itself: hours may lie between them."""
    machine = Machine(found())
    monkeypatch.setattr(calibration, "_asked", machine)
    monkeypatch.setattr(campaign.sessions, "wait", lambda *_: True)
    plan = Plan("download", PLAN.configurations, 2, 1, 30.0, sessions=3)
    results = Results.create(tmp_path, "download", None, {"plan": plan.as_dict()})
    campaign.run(experiment(lambda run: {}), results, How())
    assert machine.asked == 3
    monkeypatch.setattr(results, "done", lambda **_: {run.id for run in plan.runs()})
    campaign.run(experiment(lambda run: {}), results, How())
    assert machine.asked == 3


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
def test_the_command_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "_asked", Machine(LATE))
    words = ["--pipes", "1", "--size", "50KB", "--preset", "wired", "--way", "pipes", "--warm"]
    more = ["no", "--reps", "1", "--link", "linkem", "--results", str(tmp_path)]
    assert main(["run", "download", *words, *more]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("tm3lab: calibration missed: linkem: packets were 7.25 ms late")


def test_a_later_session_that_cannot_begin_leaves_the_report_of_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It went past plots and report, and left the folder out of the index."""

    class Recorded(Ran):
        def run(self, run: Any, _stop: Any) -> dict[str, Any]:
            made = super().run(run, _stop)
            more = {"format": FORMAT, "rep": run.rep, "seed": run.seed, "session": run.session}
            self.results.append({**made, **more})
            return {**made, **more}

    monkeypatch.setattr(campaign, "Runs", Recorded)
    monkeypatch.setattr(campaign.sessions, "wait", lambda *_: True)
    monkeypatch.setattr(calibration, "_asked", Machine(found(), LATE))
    download = catalogue.find("download")
    params = {"pipes": 1, "link": "linkem", "size": 50_000, "preset": "wired"}
    chosen = (parameters.complete(download.parameters, params),)
    plan = Plan("download", chosen, 2, 1, 30.0, sessions=3)
    meta = {"experiment": "download", "plan": plan.as_dict(), "commit": "0123", "sessions": []}
    results = Results.create(tmp_path, "download", "0123", meta)
    assert cli_run.carry_out(download, results, How()) == 1
    assert len(results.runs()) == len(plan) // 3
    assert (results.path / "report.html").is_file() and (results.path / "summary.json").is_file()
    said = capsys.readouterr().err
    assert "calibration missed" in said and "resume" in said and "runs of the plan are left" in said


def test_a_first_session_that_cannot_begin_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_asked", Machine(LATE))
    meta = {"experiment": "download", "plan": PLAN.as_dict(), "commit": "0123", "sessions": []}
    results = Results.create(tmp_path, "download", "0123", meta)
    with pytest.raises(CannotServe):
        cli_run.carry_out(catalogue.find("download"), results, How())
    assert not (results.path / "report.html").exists()


def test_a_lab_that_cannot_be_made_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no such device\nand more of it")

    monkeypatch.setattr(calibration, "Lab", broken)
    says = r"^calibration: RuntimeError: no such device$"
    with stoppable() as stop, pytest.raises(CannotServe, match=says):
        calibration.tried([KIND], stop)


# --- the report ---


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = synthetic.Plain()
    monkeypatch.setattr(catalogue, "of", lambda meta: made)
    yield made


def told(seen: Found, runs_follow: bool) -> dict[str, Any]:
    missed = calibration.missed(KIND, seen)
    link = {"kind": asdict(KIND), "found": asdict(seen), "missed": missed}
    return {"began": 1.0, "links": [link], "missed": missed, "runs_follow": runs_follow}


def of_report(path: Path, known: Any, *calibrations: dict[str, Any]) -> str:
    folder = synthetic.make(path, known, 2)
    meta = json.loads((folder / "meta.json").read_text())
    if calibrations:
        meta["sessions"][0]["calibrations"] = list(calibrations)
    (folder / "meta.json").write_text(json.dumps(meta))
    return dict(facts.of(synthetic.loaded(folder, known)))["calibration"]


def test_the_report_says_what_it_was(tmp_path: Path, known: Any) -> None:
    good = told(found(), True)
    says = of_report(tmp_path / "A", known, told(found(late_p99_ms=0.4, mbps=9.9), True), good)
    assert says == (
        "2 times right before runs: packets at most 0.4 ms late (99th percentile), 9.9 of "
        "10 Mbit/s (1.0 % off)"
    )
    says = of_report(tmp_path / "B", known, told(LATE, False), good)
    assert "7.2 ms late" in says and "1 of them missed what is asked" in says
    assert "Runs followed" not in says
    says = of_report(tmp_path / "C", known, told(LATE, True))
    assert says.endswith("Runs followed all the same (--keep-late)")
    assert of_report(tmp_path / "D", known).startswith("none: nobody checked the links")
    early = told(found(late_p99_ms=-0.28), True)  # a sender's own queue lets a burst pass
    assert "packets at most 0 ms late" in of_report(tmp_path / "E", known, early)


# --- measured ---


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem")
def test_a_link_as_it_is() -> None:
    """In a process of its own, as before a sweep."""
    seen: list[dict[str, Any]] = []

    def late() -> list[str]:
        return [it for it in seen[-1]["missed"] if "waited" in it or "late" in it]

    def attempt() -> None:
        with stoppable() as stop:
            seen.append(calibration.tried([KIND], stop))
        (link,) = seen[-1]["links"]
        near("packets", link["found"]["arrived"], link["found"]["sent"])
        near("rate", link["found"]["mbps"], 10.0, part=RATE_OFF)
        near("late", link["found"]["late_p99_ms"], 0.5, plus=0.5)
        assert link["found"]["machine"]["late_us"]["mile down"]["packets"] > 1000

    again_if_late(late, "a link as declared", attempt)


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem")
def test_a_link_that_is_slower_than_it_says() -> None:
    """By 20 % and by 5 ms: seen from outside, where the link knows of nothing."""
    with Lab(KIND.topology()) as lab:
        lab.change(mbps=8.0, rtt_ms=calibration.RTT_MS + 10)
        seen = calibration.measure(lab, KIND)
    assert seen.late_p99_ms >= 5.0 and 7.0 < seen.mbps < 8.4
    text = "; ".join(calibration.missed(KIND, seen))
    assert "ms late (99th percentile; 1 may be)" in text
    assert "Mbit/s instead of 10, " in text and " % less (2 may be)" in text
