# SPDX-License-Identifier: MIT
"""Runs what a plan has and a folder lacks: one after the other, each recorded when it ends."""

import os
import shutil
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import bed, guest, stand
from experiments.folder import FORMAT, Results
from experiments.model import Experiment
from experiments.plan import Run
from experiments.stand import Stand
from experiments.stopping import Late, Stopped, time_limit

GRACE_S = 5.0  # for a workload to notice its deadline by itself
Record = dict[str, Any]


@dataclass(frozen=True)
class Keep:
    """Logs of failed runs and of repetition 0 are kept in any case."""

    logs: bool = False
    pcaps: bool = False


class Runner:
    """Runs of one experiment on one stand."""

    def __init__(
        self,
        experiment: Experiment,
        results: Results,
        stand_: Stand,
        *,
        limit_s: float,
        keep: Keep,
        stopped: Callable[[], bool],
    ) -> None:
        self.experiment = experiment
        self.results = results
        self.stand = stand_
        self.limit_s = limit_s
        self.keep = keep
        self.stopped = stopped

    def run(self, run: Run) -> Record:
        """One run, recorded whatever becomes of it; only Stopped leaves none."""
        folder = self.results.path / "logs" / run.id
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        record = self._head(run)
        try:
            self._attempt(run, folder, record)
        except Stopped:
            self.stand.dismantle()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        record["took_s"] = round(time.time() - record["started"], 3)
        self._put_away(run, folder, record)
        self.results.append(record)
        return record

    def _head(self, run: Run) -> Record:
        return {
            "format": FORMAT,
            "experiment": self.experiment.name,
            "id": run.id,
            "params": dict(run.params),
            "seed": run.seed,
            "rep": run.rep,
            "block": run.rep,
            "order": run.order,
            "outcome": "ok",
            "error": None,
            "completion_s": None,
            "measures": {},
            "started": round(time.time(), 3),
            "host": socket.gethostname(),
            "load": round(os.getloadavg()[0], 2),
        }

    def _attempt(self, run: Run, folder: Path, record: Record) -> None:
        began = time.monotonic()
        try:
            with time_limit(self.limit_s + GRACE_S + self.stand.making_s(run.params)):
                self._measure(run, folder, record)
        except Late as late:
            self._failed("timeout", late, folder, record)
        except Exception as error:
            if self.stopped():
                raise Stopped("while a run failed") from error
            slow = time.monotonic() - began >= self.limit_s
            self._failed("timeout" if slow else "failed", error, folder, record)

    def _measure(self, run: Run, folder: Path, record: Record) -> None:
        with bed.laid(
            self.stand, run.params, run.seed, folder, self.limit_s, keep_pcaps=self.keep.pcaps
        ) as made:
            record["link"] = made.lab.topo.choice.realisation
            before = stand.account(made.lab)
            measures = self.experiment.measure(made)
            record["links"] = stand.difference(before, stand.account(made.lab))
            if made.pair and run.params["client"] == "vm":
                made.facts |= guest.redirected(made.lab)
            self._tell_of_lab(made)
        record["measures"] = made.noted | measures
        record["completion_s"] = record["measures"].get("completion_s")
        record.update(made.facts)

    def _tell_of_lab(self, made: bed.Bed) -> None:
        """What was in force, once for each kind of lab and way, read back while it is."""
        labs = self.results.meta.setdefault("labs", {})
        name = stand.name_of(made.params)
        if name not in labs:
            record = made.lab.record()
            record["proxies"] = record["proxies"][-1:] if made.pair else []  # not earlier runs'
            if made.params["client"] == "vm":
                record["nodes"]["client"]["machine"]["module"] = guest.module()
            labs[name] = record
            self.results.save()

    def _failed(self, outcome: str, error: BaseException, folder: Path, record: Record) -> None:
        """The lab may be in any state: the next run gets a new one."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        told = self.stand.gone() or f"{type(error).__name__}: {lines[0]}"
        record.update(outcome=outcome, error=told)
        text = "".join(traceback.format_exception(error))
        for path in self.stand.logs():
            shutil.copy(path, folder / f"lab-{path.name}")
        try:
            self.stand.dismantle()
        except Exception as also:  # of a lab that is broken; all that can be ended has been
            text += "\nThen, taking the lab down:\n" + "".join(traceback.format_exception(also))
        (folder / "error.txt").write_text(text)

    def _put_away(self, run: Run, folder: Path, record: Record) -> None:
        pcaps = sorted(folder.glob("*.pcap"))
        if pcaps:
            there = self.results.path / "pcaps" / run.id
            shutil.rmtree(there, ignore_errors=True)
            there.mkdir(parents=True)
            for path in pcaps:
                path.rename(there / path.name)
            record["pcaps"] = f"pcaps/{run.id}"
        kept = record["outcome"] != "ok" or run.rep == 0 or self.keep.logs
        if not kept or not any(folder.iterdir()):
            shutil.rmtree(folder)
        record["logs"] = f"logs/{run.id}" if folder.exists() else None
