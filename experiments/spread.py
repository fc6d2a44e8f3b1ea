# SPDX-License-Identifier: MIT
"""Runs spread over machines by Dask distributed, an extra: experiments/requirements-spread.txt.

    tm3lab scheduler                    on one machine
    sudo tm3lab worker tcp://HOST:8786  on each that does runs, one at a time
    tm3lab run ... --spread tcp://HOST:8786

All have the same commit of the sources. What a worker is asked to do it does as root: only in a
network that you trust.
"""

import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

from distributed import Client, as_completed

from experiments import remote
from experiments.folder import Results
from experiments.plan import Run
from experiments.preflight import CannotServe, need_root
from experiments.runner import Keep, Record
from topologies.record import commit

CONNECT_S = 10


def _order(results: Results, run: Run, keep: Keep) -> dict[str, Any]:
    return {
        "experiment": results.meta["experiment"],
        "plan": {"definition": results.plan.definition},
        "run": run.as_dict(),
        "limit_s": results.plan.limit_s,
        "keep": vars(keep),
        "commit": commit(),
    }


def _connect(address: str) -> Client:
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as why:
        raise CannotServe(f"no Dask scheduler at {address}: {why}") from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise CannotServe(f"{address} has no workers: sudo tm3lab worker {address}")
    return client


def over(address: str, results: Results, left: list[Run], keep: Keep) -> Iterator[Record]:
    """Each record when its run is finished, wherever that was."""
    client = _connect(address)
    futures: list[Any] = []
    try:
        futures += [
            client.submit(
                remote.attempt,
                _order(results, run, keep),
                key=f"{results.path.parent.name}-{results.path.name}-{run.id}",
                pure=False,
                priority=-n,
            )
            for n, run in enumerate(left)
        ]
        for future in as_completed(futures, loop=client.loop):
            yield _received(future, results)
            future.release()
    except BaseException:
        client.cancel(futures)
        client.run(remote.stop)
        raise
    finally:
        client.close()


def _received(future: Any, results: Results) -> Record:
    try:
        answer = future.result()
    except remote.Refused as why:
        raise CannotServe(f"a worker: {why}") from None
    remote.unpack(answer["files"], results.path)
    labs = results.meta.setdefault("labs", {})
    for name, lab in answer["labs"].items():
        labs.setdefault(name, lab)
    results.append(answer["record"])
    return answer["record"]


def schedule(words: list[str]) -> None:
    """Becomes the scheduler, one that can read our orders."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "dask", "scheduler", *words])


def work(address: str) -> None:
    """Becomes a worker until it is stopped: one run at a time, results kept nowhere."""
    need_root()
    name = f"{socket.gethostname()}-{os.getpid()}"
    words = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name]
    os.execv(sys.executable, [sys.executable, "-P", "-m", "dask", "worker", address, *words])
