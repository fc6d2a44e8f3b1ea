# SPDX-License-Identifier: MIT
"""A campaign is one experiment from its plan to its report.

It begins a folder or continues one, does the runs that are missing there, and draws the plots.
"""

import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from base.sources import commit
from experiments import calibration, folder, in_force, meta, sessions
from experiments.folder import FolderError, Results
from experiments.machine import ATTEMPTS, VOID, attempts
from experiments.model import Experiment
from experiments.plan import Plan, Run
from experiments.progress import Progress, duration, expectation
from experiments.runner import Keep
from experiments.runs import Runs
from experiments.so_far import SoFar
from experiments.stopping import Stop, interruptible, stoppable
from experiments.tls import Tls


def say(text: str) -> None:
    print(f"tm3lab: {text}", file=sys.stderr, flush=True)


def unfinished(root: Path, plan: Plan, now: str | None) -> Results | None:
    """A folder of the same plan by the same sources that lacks some runs.

    Of sources that are in no commit nobody knows whether they are the same.
    """
    if now is None or now.endswith("+"):
        return None
    for path in folder.find(root, plan.experiment):
        try:
            found = Results.open(path)
            same = found.plan == plan and found.meta.get("commit") == now
            if same and found.unfinished():
                return found
        except FolderError:
            continue
    return None


def begin(experiment: Experiment, plan: Plan, root: Path, fresh: bool) -> Results:
    """The folder to write to: an unfinished one of the same plan, or a new one."""
    found = None if fresh else unfinished(root, plan, commit())
    if found is not None:
        say(f"continues {found.path} ({found.unfinished()} of {len(plan)} runs to go)")
        return found
    first = meta.session(meta.command_line())
    made = meta.of(experiment, plan, first)
    return Results.create(root, experiment.name, first["versions"]["commit"], made)


def begin_again(experiment: Experiment, before: Results, root: Path) -> Results:
    """A new folder of the same plan, in whose labs is in force what was then."""
    first = meta.session(meta.command_line())
    again = {"of": before.path.resolve().name, "sysctls": in_force.sysctls(before)}
    for line in in_force.differs(before.meta, {"sessions": [first]}):
        say(f"note: {line}")
    made = {**meta.of(experiment, before.plan, first), "again": again}
    return Results.create(root, experiment.name, first["versions"]["commit"], made)


@dataclass(frozen=True)
class How:
    """`part` (i, n): every n-th block, from the i-th on. `spread`: a Dask scheduler's address.
    `within_s`: no block but the first is begun when the time is up; what is left can be resumed.
    `calibrate`: the links of this machine are checked before each session. `once_more`: runs that
    are void after all their attempts have another one."""

    keep: Keep = field(default_factory=Keep)
    part: tuple[int, int] = (1, 1)
    spread: str = ""
    within_s: float = math.inf
    tls: Tls | None = None  # with `spread`
    page: tuple[str, int] | None = None  # where it is watched
    calibrate: bool = True
    once_more: bool = False

    def has(self, run: Run) -> bool:
        first, every = self.part
        return run.rep % every == first - 1


def run(experiment: Experiment, results: Results, how: How) -> None:
    """What is missing in the folder. Stopped leaves the finished runs and nothing running."""
    plan = results.plan
    with results.locked():
        mine = [run for run in plan.runs() if how.has(run)]
        left = _left(results, mine, how)
        session = _session(results)
        expected = expectation(experiment, results.path.parent.parent)
        bar = Progress(plan.experiment, len(mine), left, expected)
        try:
            with _signals(how) as stop, bar as progress:
                _sessions(experiment, results, left, how, progress, stop)
        finally:
            session["ended"] = round(time.time(), 3)
            results.save()
            results.hand_back()


def _left(results: Results, runs: Sequence[Run], how: How) -> list[Run]:
    done = results.done(once_more=how.once_more)
    return [run for run in runs if run.id not in done]


@contextmanager
def _signals(how: How) -> Iterator[Stop | None]:
    """None where nothing of this machine is torn down: a signal raises Stopped."""
    with interruptible() if how.spread else stoppable() as stop:
        yield stop


def _sessions(
    experiment: Experiment,
    results: Results,
    left: list[Run],
    how: How,
    progress: Progress,
    stop: Stop | None,
) -> None:
    """What is left, session by session; each has labs of its own."""
    until = time.monotonic() + how.within_s
    so_far = SoFar(results.path) if how.page else None
    for number, its in groupby(left, key=lambda run: run.session):
        if number != left[0].session and time.monotonic() > until:
            break
        if not sessions.wait(results, number, until, progress, stop):
            break
        if stop is None:
            progress.note("not calibrated: workers do the runs, each of which tells who was late")
            _elsewhere(results, list(its), how, progress, until)
            continue
        of_session = list(its)
        if how.calibrate:
            calibration.before(results, of_session, how.keep.late, progress, stop)
        with Runs(experiment, results, limit_s=results.plan.limit_s, keep=how.keep) as runs:
            _here(runs, of_session, progress, stop, until, so_far)
        if so_far and number != left[-1].session:
            so_far.draw()


def _here(
    runs: Runs,
    left: list[Run],
    progress: Progress,
    stop: Stop,
    until: float,
    so_far: SoFar | None = None,
) -> None:
    block = left[0].rep
    void = attempts(runs.results.runs())  # of an earlier call: so many are tried already
    for run in left:
        stop.check("between two runs")
        if run.rep != block:
            if time.monotonic() > until:
                say(f"time is up after {run.rep} blocks of {runs.results.plan.blocks}")
                break
            if so_far:
                so_far.draw()
        block = run.rep
        record = runs.run(run, stop)
        for attempt in range(void.get(run.id, 0) + 2, ATTEMPTS + 1):
            if record["outcome"] != VOID:
                break
            progress.note(f"{record['id']}: void, attempt {attempt} follows: {record['error']}")
            stop.check("between two runs")
            record = runs.run(run, stop)
        progress.ended(record)


def _elsewhere(
    results: Results, left: list[Run], how: How, progress: Progress, until: float
) -> None:
    from experiments import spread  # Dask is an extra, and slow to import

    for record in spread.over((how.spread, how.tls), results, left, how.keep, until):
        progress.ended(record)


def _session(results: Results) -> dict[str, object]:
    """That of this call; the folder has it already if this call made the folder."""
    sessions = results.meta.setdefault("sessions", [])
    if not sessions or sessions[-1]["pid"] != os.getpid() or sessions[-1]["ended"]:
        sessions.append(meta.session(meta.command_line()))
        results.save()
        begun, now = results.meta.get("commit"), sessions[-1]["versions"]["commit"]
        if begun != now:
            say(f"note: {results.path} was begun by commit {begun}, this is {now}")
    return sessions[-1]


def finish(results: Results) -> str:
    """Plots and report of what is there; the table for the terminal."""
    from experiments import plots, report

    plots.draw(results.path, say)
    report.write(results.path)
    results.hand_back()
    return report.table(results.path)


def index(folders: Sequence[Path]) -> None:
    """One page that leads to the reports of all."""
    from experiments import report

    say(f"all reports: {report.index(folders)}")


def estimate_s(experiment: Experiment, plan: Plan, root: Path) -> float:
    return plan.blocks * expectation(experiment, root).all(plan.block(0))


def repetitions(plan: Plan) -> str:
    each = f"{plan.reps} repetitions"
    if plan.sessions == 1:
        return each
    return f"{plan.sessions} sessions, {duration(plan.apart_s)} apart, of {each}"


def told(experiment: Experiment, plan: Plan, root: Path) -> str:
    """A plan in one line."""
    return (
        f"{experiment.name}: {len(plan.configurations)} configurations x {repetitions(plan)}, "
        f"about {duration(estimate_s(experiment, plan, root))}"
    )
