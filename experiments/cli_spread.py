# SPDX-License-Identifier: MIT
"""tm3lab scheduler, worker: runs spread over machines.

Whoever reaches a Dask scheduler or worker has it run any code, and workers are root. So all listen
on loopback unless told otherwise, and no worker begins before its user said that root is meant.
"""

import argparse
import ipaddress
import os
from typing import Any

from experiments import campaign, preflight, tls
from experiments.preflight import CannotServe
from topologies.parameter import ParameterError

LOOPBACK = "127.0.0.1"
PORT = 8786


def add(commands: Any) -> None:
    scheduler = commands.add_parser(
        "scheduler", help="a Dask scheduler that workers and `run --spread` connect to"
    )
    scheduler.add_argument(
        "--host", default=LOOPBACK, metavar="ADDRESS", help=f"to listen on ({LOOPBACK})"
    )
    scheduler.add_argument("--port", type=int, default=PORT, metavar="N", help=f"({PORT})")
    scheduler.add_argument("--scheduler-file", metavar="FILE", help="where its address is written")
    tls.add(scheduler)
    scheduler.set_defaults(do=_schedule)
    worker = commands.add_parser(
        "worker",
        help="do runs for others, by Dask: tm3lab run --spread",
        description="One run at a time, as root, for whoever reaches the scheduler or this worker, "
        "who can have it do anything else as well: only with TLS, or in a network that you trust.",
    )
    worker.add_argument("address", metavar=f"tcp://HOST:{PORT}", help="of the scheduler; or tls://")
    worker.add_argument(
        "--as-root", action="store_true", help="yes: who reaches it may do anything here"
    )
    tls.add(worker)
    worker.set_defaults(do=_work)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _schedule(given: argparse.Namespace) -> int:
    if not 0 <= given.port <= 65535:
        raise ParameterError("port", f"{given.port} is not from 0 to 65535")
    secured = tls.given(given)
    if os.geteuid() == 0:
        campaign.say("note: a scheduler needs no root; whoever reaches it acts as root here")
    if not is_loopback(given.host) and secured is None:
        campaign.say(
            f"warning: whoever reaches {given.host}:{given.port} can run any code on the workers, "
            "as root, and all of it can be read on its way; --tls-ca-file, --tls-cert and "
            "--tls-key let in only those who have a certificate"
        )
    from experiments import spread

    words = ["--port", str(given.port), "--host", given.host]
    words += ["--scheduler-file", given.scheduler_file] if given.scheduler_file else []
    spread.schedule([*words, *(secured.words() if secured else [])])
    return 0


def _work(given: argparse.Namespace) -> int:
    secured = tls.given(given)
    if given.address.startswith("tls://") != (secured is not None):
        raise ParameterError("address", f"{given.address}: tls:// is with TLS's files, and only so")
    preflight.need_root()
    if not given.as_root:
        raise CannotServe(
            "whoever reaches this worker or its scheduler can run any code here as root; "
            "--as-root says that this is meant"
        )
    from experiments import spread

    spread.work(given.address, secured)
    return 0
