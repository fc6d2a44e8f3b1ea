# SPDX-License-Identifier: MIT
"""How far a sweep is and how long it will still take: a bar, or plain lines where no one looks."""

import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from base.scope import Scope
from experiments import folder
from experiments.folder import FolderError, Results
from experiments.machine import VOID
from experiments.model import Experiment
from experiments.plan import Run, digest

LINE_EVERY_S = 10.0
OVERHEAD_S = 0.6  # proxies started, sockets ended; on top of an experiment's own guess


class Expectation:
    """What a run takes: its configuration's median so far, earlier runs', the experiment's guess.

    With no run of a configuration yet, it takes as long as all others, in proportion to the guess.
    """

    def __init__(self, experiment: Experiment, earlier: Iterable[dict[str, Any]] = ()) -> None:
        self.guess_s = experiment.run_seconds + OVERHEAD_S
        self.taken: dict[str, list[float]] = {}
        for record in earlier:
            self.learn(record)

    def learn(self, record: dict[str, Any]) -> None:
        self.taken.setdefault(digest(record["params"]), []).append(record["took_s"])

    def of(self, run: Run) -> float:
        known = self.taken.get(digest(run.params))
        if known:
            return statistics.median(known)
        if self.taken:
            return statistics.fmean(statistics.median(some) for some in self.taken.values())
        return self.guess_s

    def all(self, runs: Iterable[Run]) -> float:
        """Runs of a plan: those of one configuration have the same parameters, not equal ones."""
        alike: dict[int, list[Run]] = {}
        for run in runs:
            alike.setdefault(id(run.params), []).append(run)
        return sum(len(its) * self.of(its[0]) for its in alike.values())


def expectation(experiment: Experiment, root: Path) -> Expectation:
    """With the newest results of this experiment that can be read."""
    for path in folder.find(root, experiment.name):
        try:
            earlier = Results.open(path).runs()
        except FolderError:
            continue
        if earlier:
            return Expectation(experiment, earlier)
    return Expectation(experiment)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def told(record: dict[str, Any]) -> str:
    """A finished run in a few words."""
    if record["outcome"] != "ok":
        return f"{record['id']}: {record['outcome']}: {record['error']}"
    completion = record["completion_s"]
    return record["id"] + (f": {completion:.3f} s" if completion is not None else ": ok")


class Progress(Scope):
    """Of `total` runs some may be done: `left` are those to come."""

    def __init__(self, name: str, total: int, left: list[Run], expected: Expectation) -> None:
        self.name = name
        self.total = total
        self.left = {run.id: run for run in left}
        self.expected = expected
        self.failed = 0
        self._said = 0.0
        self._bar: Any = None

    def open(self) -> None:
        if sys.stderr.isatty():
            self._open_bar()

    def close(self, error: BaseException | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open_bar(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[left]} left{task.fields[failed]}"),
            progress.TextColumn("{task.fields[last]}", markup=False),
            console=Console(stderr=True),
            redirect_stdout=False,
            refresh_per_second=2,  # it shares the cores with what is measured
        )
        self._task = self._bar.add_task(
            self.name,
            total=self.total,
            completed=self.total - len(self.left),
            left=duration(self.left_s()),
            failed="",
            last="",
        )
        self._bar.start()

    def left_s(self) -> float:
        return self.expected.all(self.left.values())

    def ended(self, record: dict[str, Any]) -> None:
        self.left.pop(record["id"], None)
        self.expected.learn(record)
        bad = record["outcome"] != "ok"
        self.failed += bad and record["outcome"] != VOID
        if self._bar is not None:
            self._show(record, bad)
        elif bad or time.monotonic() - self._said >= LINE_EVERY_S or not self.left:
            self._said = time.monotonic()
            done = self.total - len(self.left)
            left = f"{duration(self.left_s())} left" if self.left else "done"
            text = f"{self.name} {done}/{self.total}, {left}; {told(record)}"
            print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _show(self, record: dict[str, Any], bad: bool) -> None:
        if bad:
            self._bar.console.print(told(record), markup=False, highlight=False)
        self._bar.update(
            self._task,
            advance=1,
            left=duration(self.left_s()),
            failed=f", {self.failed} failed" if self.failed else "",
            last=told(record)[:60],
        )
