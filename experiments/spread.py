# SPDX-License-Identifier: MIT
"""Runs spread over machines by Dask distributed, an extra: experiments/requirements-spread.txt.

    tm3lab scheduler                    on one machine
    sudo tm3lab worker tcp://HOST:8786  on each that does runs, one at a time
    tm3lab run ... --spread tcp://HOST:8786

All have the same commit of the sources. What a worker is asked to do it does as root: only in a
network that you trust.
"""

import itertools
import math
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

from distributed import Client, as_completed

from experiments import remote
from experiments.folder import Results
from experiments.plan import Run
from experiments.preflight import CannotServe, need_root
from experiments.runner import Keep, Record
from topologies.sources import commit

CONNECT_S = 10
AHEAD = 2  # runs that wait at each worker beside the one that it does


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


def over(
    address: str, results: Results, left: list[Run], keep: Keep, until: float = math.inf
) -> Iterator[Record]:
    """Each record when its run is finished, wherever that was.

    No block is begun after `until`, by time.monotonic(), but the first.
    """
    client = _connect(address)
    sweep = uuid.uuid4().hex
    waiting = _begun_before(until, left)

    def submit(count: int) -> list[Any]:
        return [
            client.submit(
                remote.attempt,
                {**_order(results, run, keep), "sweep": sweep},
                key=f"{sweep}-{run.id}",
                pure=False,
            )
            for run in itertools.islice(waiting, count)
        ]

    futures = set(submit(AHEAD * len(client.scheduler_info()["workers"])))
    try:
        coming = as_completed(futures, loop=client.loop)
        for future in coming:
            yield _received(future, results, future.key.removeprefix(f"{sweep}-"))
            futures.discard(future)
            future.release()
            for more in submit(1):
                futures.add(more)
                coming.add(more)
    except BaseException:
        client.cancel(list(futures))
        client.run(remote.stop, sweep)
        raise
    finally:
        client.close()


def _begun_before(until: float, left: list[Run]) -> Iterator[Run]:
    """The runs in order, until one begins a block too late."""
    block = left[0].rep if left else 0
    for run in left:
        if run.rep != block and time.monotonic() > until:
            return
        block = run.rep
        yield run


def _received(future: Any, results: Results, run: str) -> Record:
    try:
        answer = future.result()
        if answer["record"]["id"] != run:
            raise remote.Refused(f"it answers {answer['record']['id']!r}, asked for {run}")
        remote.unpack(answer["files"], results.path, run)
    except remote.Refused as why:
        raise CannotServe(f"a worker: {why}") from None
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
