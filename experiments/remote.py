# SPDX-License-Identifier: MIT
"""A run on another machine: what a Dask worker does for `--spread`.

`attempt` is called in a thread of the worker; a run is stopped by a signal, so it has a process of
its own, `python -m experiments.remote`, which reads an order and answers with the record and its
files.
"""

import base64
import json
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from base.processes import end_with_parent
from experiments.folder import KINDS

SPARE_S = 60.0  # beyond a run's time limit: to set up and to tidy


class Refused(RuntimeError):
    """This worker cannot do the run; the message says why."""


_running: dict[subprocess.Popen[str], str] = {}  # and for whom


def attempt(order: dict[str, Any]) -> dict[str, Any]:
    """Carries out an order; its answer."""
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.remote"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _running[process] = order["sweep"]
    try:
        out, err = process.communicate(json.dumps(order), timeout=order["limit_s"] + SPARE_S)
    finally:
        process.terminate()
        process.communicate()
        del _running[process]
    if process.returncode:
        raise Refused(err.strip().splitlines()[-1] if err.strip() else "stopped")
    return json.loads(out)


def stop(sweep: str) -> None:
    """Ends what this worker runs now for that sweep; others' goes on."""
    for process, whose in list(_running.items()):
        if whose == sweep:
            process.terminate()


def _packed(folder: Path) -> dict[str, str]:
    """Logs and captures of the run, by their paths in its folder, as text."""
    return {
        str(path.relative_to(folder)): base64.b85encode(zlib.compress(path.read_bytes())).decode()
        for kind in KINDS
        for path in (folder / kind).rglob("*")
        if path.is_file()
    }


def unpack(files: dict[str, str], folder: Path, run: str) -> None:
    """Writes what a worker sends of a run, which lies in that run's own folders."""
    own = [(folder / kind / run).resolve() for kind in KINDS]
    for name, text in files.items():
        path = (folder / name).resolve()
        if not any(path.is_relative_to(it) for it in own):
            raise Refused(f"it sends {name!r}, which lies outside of run {run}'s folders")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(base64.b85decode(text)))


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    from base.sources import commit
    from experiments import catalogue, preflight
    from experiments.folder import Results
    from experiments.plan import Run
    from experiments.runner import Keep
    from experiments.runs import Runs
    from experiments.stopping import stoppable

    mine = commit()
    if mine != order["commit"]:
        raise Refused(f"its sources are of commit {mine}, not {order['commit']}")
    experiment = catalogue.of(order)
    run = Run(**order["run"])
    preflight.check(experiment, [run.params])
    with tempfile.TemporaryDirectory(prefix="tm3lab-remote-") as root:
        results = Results.create(Path(root), experiment.name, mine, {"again": order["again"]})
        limits = {"limit_s": order["limit_s"], "keep": Keep(**order["keep"])}
        with stoppable() as stop, Runs(experiment, results, **limits) as runs:
            record = runs.run(run, stop)
        labs = results.meta.get("labs", {})
        return {"record": record, "labs": labs, "files": _packed(results.path)}


def main() -> int:
    try:
        end_with_parent(signal.SIGTERM)  # a worker that is killed takes its run along
        answer = carry_out(json.load(sys.stdin))
    except KeyboardInterrupt:
        return 130
    except Exception as why:
        print(f"{type(why).__name__}: {why}", file=sys.stderr)
        return 1
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
