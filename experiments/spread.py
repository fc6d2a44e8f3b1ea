# SPDX-License-Identifier: MIT
"""Runs spread over machines by Dask distributed, an extra: experiments/requirements-spread.txt.

    tm3lab scheduler --host HOST                  on one machine
    sudo tm3lab worker --as-root tcp://HOST:8786  on each that does runs, one at a time
    tm3lab run ... --spread tcp://HOST:8786

All have the same commit of the sources. What a worker is asked to do it does as root: with TLS
(tls.py), or in a network that you trust. Dask's pages about scheduler and workers, which it serves
on all addresses by default, are on loopback.
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
from urllib.parse import urlsplit

from distributed import Client, Security, as_completed

from base.sources import commit
from experiments import remote
from experiments.folder import Results
from experiments.plan import Run
from experiments.preflight import CannotServe, need_root
from experiments.runner import Keep, Record
from experiments.tls import Tls

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
        "again": results.meta.get("again"),
    }


Where = tuple[str, Tls | None]  # a scheduler's address, and what it lets in


def _connect(where: Where) -> Client:
    address, tls = where
    told = {"security": _security(tls)} if tls else {}
    if address.startswith("tls://") != bool(tls):
        raise CannotServe(f"{address}: tls:// is with TLS's files, and only so")
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False, **told)
    except (OSError, ValueError) as why:
        raise CannotServe(f"no Dask scheduler at {address}: {why}") from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise CannotServe(f"{address} has no workers: sudo tm3lab worker --as-root {address}")
    return client


def _security(tls: Tls) -> Security:
    return Security(
        require_encryption=True,
        tls_ca_file=str(tls.tls_ca_file),
        tls_client_cert=str(tls.tls_cert),
        tls_client_key=str(tls.tls_key),
    )


def over(
    where: Where, results: Results, left: list[Run], keep: Keep, until: float = math.inf
) -> Iterator[Record]:
    """Each record when its run is finished, wherever that was.

    No block is begun after `until`, by time.monotonic(), but the first.
    """
    client = _connect(where)
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


NO_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


def schedule(words: list[str]) -> None:
    """Becomes the scheduler, one that can read our orders."""
    argv = ["-P", "-m", "dask", "scheduler", *NO_PAGES, *words]
    os.execv(sys.executable, [sys.executable, *argv])


def work(address: str, tls: Tls | None) -> None:
    """Becomes a worker until it is stopped: one run at a time, results kept nowhere."""
    need_root()
    name = f"{socket.gethostname()}-{os.getpid()}"
    words = ["--no-nanny", "--nthreads", "1", *NO_PAGES, "--name", name]
    words += ["--host", own_address(address), *(tls.words() if tls else [])]
    argv = ["-P", "-m", "dask", "worker", address, *words]
    os.execv(sys.executable, [sys.executable, *argv])


def own_address(scheduler: str) -> str:
    """The one from which it is reached; a worker listens on that alone."""
    try:
        there = urlsplit(scheduler)
        found = socket.getaddrinfo(there.hostname, there.port, type=socket.SOCK_DGRAM)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as sock:
            sock.connect(address)  # which sends nothing
            return str(sock.getsockname()[0])
    except (OSError, ValueError, TypeError) as why:
        raise CannotServe(f"no way to a scheduler at {scheduler}: {why}") from None
