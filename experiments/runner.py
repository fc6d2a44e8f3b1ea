# SPDX-License-Identifier: MIT
"""Runs what a plan has and a folder lacks: one after the other, each recorded when it ends."""

import faulthandler
import os
import shutil
import socket
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import guest, machine
from experiments.folder import FORMAT, Results
from experiments.labs import Labs, account, difference, emulators, lateness, name_of, proxies
from experiments.live_run import LiveRun
from experiments.model import Experiment
from experiments.plan import Run
from experiments.prepare import prepared, wanted_by

GRACE_S = 5.0  # for a workload to notice its deadline by itself
HANGS = "where-it-hangs.txt"
Record = dict[str, Any]


@dataclass(frozen=True)
class Keep:
    """Logs of failed runs and of repetition 0 are kept in any case. `late`: runs in which the
    machine did not keep up, which are void otherwise."""

    logs: bool = False
    pcaps: bool = False
    late: bool = False


class Runner:
    """Runs of one experiment in a lab of `labs`. It does not end what hangs: see runs.py."""

    def __init__(
        self,
        experiment: Experiment,
        results: Results,
        labs: Labs,
        *,
        limit_s: float,
        keep: Keep,
    ) -> None:
        self.experiment = experiment
        self.results = results
        self.labs = labs
        self.limit_s = limit_s
        self.keep = keep

    def allowed_s(self, run: Run) -> float:
        """After so long it hangs."""
        return self.limit_s + GRACE_S + self.labs.making_s(run.params)

    def run(self, run: Run) -> Record:
        """One run, recorded whatever becomes of it."""
        folder = empty_folder(self.results, run)
        record = head(self.experiment, run)
        with _told_where(folder / HANGS, self.allowed_s(run)):
            self._attempt(run, folder, record)
        finish(self.results, self.keep, run, record)
        return record

    def _attempt(self, run: Run, folder: Path, record: Record) -> None:
        try:
            self._measure(run, folder, record)
        except Exception as error:
            self._failed(error, folder, record)

    def _measure(self, run: Run, folder: Path, record: Record) -> None:
        with prepared(
            self.labs,
            run.params,
            run.seed,
            folder,
            self.limit_s,
            keep_pcaps=self.keep.pcaps,
            more=wanted_by(self.experiment, run.params, folder),
        ) as made:
            record["link"] = made.lab.topo.choice.realisation
            before = account(made.lab)
            meter = machine.Meter(emulators(made.lab), proxies(made.pair))
            measures = self._measures(made, record)
            record["machine"] = meter.told(lateness(made.lab))
            record["links"] = difference(before, account(made.lab))
            if made.pair and run.params["client"] == "vm":
                made.facts |= guest.redirected(made.lab)
            self._tell_of_lab(made)
        why = "; ".join(filter(None, (machine.beyond(record["machine"]), *made.voids)))
        if why and not self.keep.late:
            record.update(outcome=machine.VOID, error=why)
        record["measures"] = made.noted | measures
        if made.went:
            record["went"] = round(time.time() - time.monotonic() + made.went, 3)
        record["completion_s"] = record["measures"].get("completion_s")
        record.update(made.facts)

    def _measures(self, made: LiveRun, record: Record) -> dict[str, Any]:
        """Late is what had all of its own time, however long the lab took to make."""
        try:
            return self.experiment.measure(made)
        except Exception:
            if time.monotonic() >= made.deadline:
                record["outcome"] = "timeout"
            raise

    def _tell_of_lab(self, made: LiveRun) -> None:
        """What was in force, once for each kind of lab and way, read back while it is."""
        known = self.results.meta.setdefault("labs", {})
        name = name_of(made.params)
        if name not in known:
            record = made.lab.record()
            if made.params["client"] == "vm":
                record["nodes"]["client"]["machine"]["module"] = guest.module()
            known[name] = record
            self.results.save()

    def _failed(self, error: BaseException, folder: Path, record: Record) -> None:
        """The lab may be in any state: the next run gets a new one."""
        outcome = "timeout" if record["outcome"] == "timeout" else "failed"
        lines = str(error).strip().splitlines() or [type(error).__name__]
        told = self.labs.gone() or f"{type(error).__name__}: {lines[0]}"
        record.update(outcome=outcome, error=told)
        text = "".join(traceback.format_exception(error))
        save_logs(self.labs.logs(), folder)
        try:
            self.labs.dismantle()
        except Exception as also:  # of a lab that is broken; all that can be ended has been
            text += "\nThen, taking the lab down:\n" + "".join(traceback.format_exception(also))
        (folder / "error.txt").write_text(text)


def empty_folder(results: Results, run: Run) -> Path:
    """Where a run logs."""
    folder = results.path / "logs" / run.id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def save_logs(logs: Iterable[Path], folder: Path) -> None:
    """Of a lab that goes, beside the run's."""
    for path in logs:
        shutil.copy(path, folder / f"lab-{path.name}")


def head(experiment: Experiment, run: Run) -> Record:
    """What is known of a run before it has begun."""
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "id": run.id,
        "params": dict(run.params),
        "seed": run.seed,
        "rep": run.rep,
        "block": run.rep,
        "order": run.order,
        "session": run.session,
        "outcome": "ok",
        "error": None,
        "completion_s": None,
        "measures": {},
        "started": round(time.time(), 3),
        "host": socket.gethostname(),
        "load": round(os.getloadavg()[0], 2),
    }


def finish(results: Results, keep: Keep, run: Run, record: Record) -> None:
    """What it leaves is kept, or not, and the record written."""
    record["took_s"] = round(time.time() - record["started"], 3)
    folder = results.path / "logs" / run.id
    pcaps = sorted(folder.glob("*.pcap"))
    if pcaps:
        there = results.path / "pcaps" / run.id
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
        for path in pcaps:
            path.rename(there / path.name)
        record["pcaps"] = f"pcaps/{run.id}"
    kept = record["outcome"] != "ok" or run.rep == 0 or keep.logs
    if record["outcome"] == machine.VOID:  # the next attempt has the same folder
        kept = False
    if not kept or not any(folder.iterdir()):
        shutil.rmtree(folder)
    record["logs"] = f"logs/{run.id}" if folder.exists() else None
    results.append(record)


@contextmanager
def _told_where(path: Path, seconds: float) -> Iterator[None]:
    """What every thread does after so long is written down, for whoever ends it then."""
    with path.open("w") as file:
        faulthandler.dump_traceback_later(seconds, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
    path.unlink(missing_ok=True)
