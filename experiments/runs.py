# SPDX-License-Identifier: MIT
"""Runs in a process of their own, recorded also where that process hangs or is killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.scope import Scope
from experiments.folder import Results
from experiments.keeper import Broken, Keeper
from experiments.labs import Labs
from experiments.model import Experiment
from experiments.plan import Run
from experiments.runner import (
    HANGS,
    Keep,
    Record,
    Runner,
    empty_folder,
    finish,
    head,
    save_logs,
)
from experiments.stopping import Stop, Stopped

InForce = dict[str, object]  # by the lab's name


class Runs(Scope):
    """Of one experiment; the lab stands between them, until the block ends or a run breaks."""

    def __init__(
        self, experiment: Experiment, results: Results, *, limit_s: float, keep: Keep
    ) -> None:
        self.experiment, self.results = experiment, results
        self.limit_s, self.keep = limit_s, keep
        self._keeper = Keeper(self._begin, self._aside)

    def open(self) -> None:
        self._keeper.open()

    def close(self, error: BaseException | None) -> None:
        self._keeper.close()
        if isinstance(error, Stopped):
            self.results.sweep()  # of the run that was broken off

    def run(self, run: Run, stop: Stop) -> Record:
        """Its record, which is written already. Raises Stopped, which leaves none."""
        record = head(self.experiment, run)
        before = len(self._written(run))  # attempts that are void
        try:
            record, labs = self._keeper.ask(run, stop)
        except Broken as why:
            return self._broken(run, record, why, before)
        self.results.meta.setdefault("labs", {}).update(labs)
        return record

    def _written(self, run: Run) -> list[Record]:
        return [it for it in self.results.runs() if it["id"] == run.id]

    def _broken(self, run: Run, record: Record, why: Broken, before: int) -> Record:
        """The run's process is gone, and wrote no record or perhaps half of one."""
        self.results.mend()
        written = self._written(run)[before:]
        if written:
            return written[0]
        folder = self.results.path / "logs" / run.id
        if not folder.is_dir():
            empty_folder(self.results, run)
        record["outcome"], record["error"] = "timeout" if why.late else "failed", str(why)
        hangs = folder / HANGS
        where = hangs.read_text() if hangs.is_file() else ""
        hangs.unlink(missing_ok=True)
        (folder / "error.txt").write_text(f"{why}\n{where}")
        finish(self.results, self.keep, run, record)
        return record

    def _aside(self, run: Run, labs: list[Path]) -> None:
        """In the keeper."""
        folder = self.results.path / "logs" / run.id
        if folder.is_dir():
            save_logs((it for lab in labs for it in lab.glob("*.log") if _has_text(it)), folder)

    @contextmanager
    def _begin(self) -> Iterator["_Doer"]:
        """In the worker."""
        again = self.results.meta.get("again") or {}
        drops = self.experiment.drops
        with Labs(self.results.path, again.get("sysctls", {}), drops) as labs:
            limits = {"limit_s": self.limit_s, "keep": self.keep}
            yield _Doer(Runner(self.experiment, self.results, labs, **limits))


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


class _Doer:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._told: set[str] = set()  # of these labs tm3lab knows

    def allowed_s(self, run: Run) -> float:
        return self._runner.allowed_s(run)

    def do(self, run: Run) -> tuple[Record, InForce]:
        record = self._runner.run(run)
        labs = self._runner.results.meta.get("labs", {})
        fresh = {name: lab for name, lab in labs.items() if name not in self._told}
        self._told |= set(fresh)
        return record, fresh
