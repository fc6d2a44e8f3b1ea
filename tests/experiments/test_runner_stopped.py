# SPDX-License-Identifier: MIT
"""Whatever ends a sweep, and when: no lab is left, and what is finished is kept and resumed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from base import jsonl
from base.processes import everybody
from base.shell import until
from experiments.folder import Results
from experiments.live_run import LiveRun
from experiments.plan import Plan, Run
from experiments.runner import Keep
from experiments.runs import Runs
from experiments.stopping import Stop, Stopped, stoppable
from tests.conftest import why_no_namespace
from tests.experiments.runner_lab import SWEEP, configuration, experiment
from topologies.entry import entries, run_dir
from topologies.programs import built, program
from topologies.registry import MARK

pytestmark = [
    pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace())),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem"),
]
CONFIGURATION = configuration(way="direct")
LEAVE_S = 15.0  # to remove a lab, on a machine that does other things


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of this test's labs; all are gone at its end, and all that was theirs."""
    folder = Path(f"/run/tm3-test-{os.getpid()}-stopped")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TM3_RUN", str(folder))
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    nothing_left()
    assert not list(scratch.iterdir())
    if folder.exists():
        folder.rmdir()


def nothing_left() -> None:
    folder = run_dir()
    until("all labs to go", lambda: not folder.exists() or not list(folder.iterdir()), LEAVE_S)
    until("their processes to end", lambda: not marked(), LEAVE_S)


def marked() -> list[int]:
    """Programs of labs of this registry; a name of one may be part of another's."""
    mark = f"{MARK}={run_dir()}/".encode()
    found = []
    for process in everybody():
        try:
            words = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(mark) for word in words):
            found.append(process.pid)
    return found


# --- runs in a process of their own ---


@contextmanager
def runs(tmp_path: Path, measure: Any, limit_s: float = 20.0) -> Iterator[tuple[Runs, Stop]]:
    results = Results.create(tmp_path, "tried", None, {"plan": plan(1).as_dict()})
    with (
        stoppable() as stop,
        Runs(experiment(measure), results, limit_s=limit_s, keep=Keep(late=True)) as made,
    ):
        yield made, stop


def plan(reps: int) -> Plan:
    return Plan("tried", (CONFIGURATION,), reps, seed=1, limit_s=20.0)


def some(reps: int) -> list[Run]:
    return list(plan(reps).runs())


def fine(run: LiveRun) -> dict[str, Any]:
    return {"completion_s": 1.0, "lab": int(run.lab.name.split("-")[0])}


def test_a_lab_stands_between_runs_in_a_process_of_its_own(registry: Path, tmp_path: Path) -> None:
    with runs(tmp_path, fine) as (made, stop):
        first, second = (made.run(run, stop) for run in some(2))
        assert made.results.runs() == [first, second]
        assert first["measures"] == second["measures"] and len(list(entries())) == 1
        assert first["measures"]["lab"] != os.getpid()
        (lab,) = made.results.meta["labs"].values()
        assert lab["nodes"]["client"]["sysctls"]
    nothing_left()


@pytest.mark.parametrize("swallows", [False, True])
def test_a_run_that_takes_too_long_is_ended(registry: Path, tmp_path: Path, swallows: bool) -> None:
    def measure(run: LiveRun) -> dict[str, Any]:
        if run.seed > 1:
            return fine(run)
        with program(run.lab.state, "server", "stays", ["sleep", "600"]):
            while True:
                try:
                    time.sleep(60)
                except BaseException:  # what a careless workload does
                    if not swallows:
                        raise

    with runs(tmp_path, measure, limit_s=0.5) as (made, stop):
        began = time.monotonic()
        late, next_ = (made.run(run, stop) for run in some(2))
        assert time.monotonic() - began < 30
        assert made.results.runs() == [late, next_]
    assert (late["outcome"], next_["outcome"]) == ("timeout", "ok")
    assert late["error"] == "not done after 5.5 s"
    logs = made.results.path / late["logs"]
    assert "in measure" in (logs / "error.txt").read_text(), "where it hung"
    assert {path.name for path in logs.iterdir()} >= {"error.txt", "stays.log"}


@pytest.mark.parametrize("who", ["worker", "keeper"])
def test_a_run_whose_process_is_killed_is_a_failure(
    registry: Path, tmp_path: Path, who: str
) -> None:
    def measure(run: LiveRun) -> dict[str, Any]:
        if run.seed == 1:
            os.kill(os.getpid() if who == "worker" else os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return fine(run)

    with runs(tmp_path, measure) as (made, stop):
        failed, next_ = (made.run(run, stop) for run in some(2))
        assert made.results.runs() == [failed, next_]
        assert len(list(entries())) == 1, "that of the second run"
    assert (failed["outcome"], next_["outcome"]) == ("failed", "ok")
    ended = "the run's process ended with SIGKILL" if who == "worker" else "the keeper of the run"
    assert failed["error"].startswith(ended)


def test_a_signal_stops_a_run_that_ignores_it(registry: Path, tmp_path: Path) -> None:
    """And more of them do not stop the tidying."""
    me = os.getpid()

    def measure(run: LiveRun) -> dict[str, Any]:
        for _ in range(100):
            os.kill(me, signal.SIGTERM)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
        return {}

    began = time.monotonic()
    with pytest.raises(Stopped), runs(tmp_path, measure) as (made, stop):
        made.run(some(1)[0], stop)
    assert time.monotonic() - began < 20
    assert made.results.runs() == []
    assert not list((made.results.path / "logs").iterdir())


# --- the command ---

RUN = ("run", "download", *SWEEP, "--reps", "3", "--results", "here")


@contextmanager
def command(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [built("tm3lab"), *words],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    files = tmp_path.glob("here/*/*/runs.jsonl")
    return [record for path in files for record in jsonl.records(path.read_text())]


def resumed(tmp_path: Path, before: list[dict[str, Any]]) -> None:
    """To its end, with the runs that were finished as they were."""
    folder = next(tmp_path.glob("here/download/*"))
    words = ("resume", "--keep-late", "--uncalibrated", f"here/download/{folder.name}")
    with command(tmp_path, *words) as again:
        _, err = again.communicate(timeout=100)
    assert again.returncode == 0, err
    after = lines(tmp_path)
    assert after[: len(before)] == before
    assert len({record["id"] for record in after}) == len(after) == 6
    assert all(record["outcome"] == "ok" for record in after)
    assert (folder / "report.html").exists()
    assert len(json.loads((folder / "meta.json").read_text())["sessions"]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_the_middle(registry: Path, tmp_path: Path, number: signal.Signals) -> None:
    """What is left is resumed once: it is the same by each signal, and more are resumed below."""
    with command(tmp_path, *RUN) as stopped:
        until("a run", lambda: len(lines(tmp_path)) >= 1, 60.0)
        os.killpg(stopped.pid, number)
        _, err = stopped.communicate(timeout=30)
        assert stopped.returncode == 130, err
        assert not list(entries()) and not marked(), "tm3lab was gone before its lab"
    before = lines(tmp_path)
    assert 1 <= len(before) < 6
    folder = next(tmp_path.glob("here/download/*"))
    left = 6 - len(before)
    assert err.endswith(f"stopped; {left} runs to go: tm3lab resume here/download/{folder.name}\n")
    if number is signal.SIGINT:
        resumed(tmp_path, before)


def wait_for_worker(process: "subprocess.Popen[str]") -> None:
    """The sweep has begun: what is there then is to be removed."""
    until("the folder", lambda: list(process_folders()), 60.0)
    assert process.poll() is None


def process_folders() -> list[Path]:
    return list(run_dir().iterdir()) if run_dir().exists() else []


SPAN_S = 3.5  # of the sweep, from its first lab on
SIXTHS = [round((number + 0.5) * SPAN_S / 6, 2) for number in range(6)]
KILLS = [
    (signal.SIGINT, False, SIXTHS[3]),
    (signal.SIGINT, True, SIXTHS[0]),
    (signal.SIGTERM, False, SIXTHS[1]),
    (signal.SIGTERM, True, SIXTHS[4]),
    (signal.SIGKILL, False, SIXTHS[5]),
    (signal.SIGKILL, True, SIXTHS[2]),
]


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(("number", "group", "after_s"), KILLS)
def test_ended_at_any_moment(
    registry: Path, tmp_path: Path, number: signal.Signals, group: bool, after_s: float
) -> None:
    """Alone, or with all its group; where it comes while a lab is made or taken down, too."""
    with command(tmp_path, *RUN) as stopped:
        wait_for_worker(stopped)
        time.sleep(after_s)  # the moment, not a wait for something
        (os.killpg if group else os.kill)(stopped.pid, number)
        if number != signal.SIGKILL:
            until("more of them to come", lambda: pester(stopped, number), 30.0)
        _, err = stopped.communicate(timeout=30)
    nothing_left()
    assert "Traceback" not in err
    before = lines(tmp_path)
    resumed(tmp_path, before)


def pester(process: "subprocess.Popen[str]", number: signal.Signals) -> bool:
    """Once more; whether it has ended."""
    if process.poll() is None:
        process.send_signal(number)
    return process.poll() is not None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("when", ["while it is made", "at the prompt"])
def test_a_lab_with_a_prompt_is_ended(
    registry: Path, tmp_path: Path, number: signal.Signals, when: str
) -> None:
    with command(tmp_path, "up", "lte", "--pipes", "2", "--rtt-ms", "20") as prompt:
        until("the lab", process_folders, 30.0)
        if when == "at the prompt":
            assert prompt.stdout is not None
            while "ends it all" not in prompt.stdout.readline():
                assert prompt.poll() is None
        prompt.send_signal(number)
        _, err = prompt.communicate(timeout=30)
    nothing_left()
    assert "Traceback" not in err
