# SPDX-License-Identifier: MIT
"""tm3lab up: a lab to look around in; clean: what a killed one left. scheduler, worker: runs
spread over machines."""

import argparse
from typing import Any

from experiments import cli_run, options, parameters, preflight
from topologies.cleaning import clean_and_tell
from topologies.mile import ParameterError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "up",
        usage="tm3lab up [PRESET] [OPTION]... [--PARAMETER VALUE]...",
        help="Mininet's prompt in a lab with both proxies running",
        description="A lab to look around in, gone with its prompt.",
        allow_abbrev=False,
    )
    parser.add_argument("preset", nargs="?", metavar="PRESET", help="the last mile (wired)")
    parser.add_argument("--seed", type=int, default=cli_run.SEED, metavar="N", help="of losses (1)")
    options.add_groups(parser, [], without=("preset", "way", "warm", "client"))
    parser.set_defaults(do=_up)
    clean = commands.add_parser("clean", help="remove the labs whose runner was killed, only them")
    clean.add_argument("--all", action="store_true", help="living ones too, with their runner")
    clean.set_defaults(do=_clean)
    scheduler = commands.add_parser(
        "scheduler", help="a Dask scheduler that workers and `run --spread` connect to"
    )
    scheduler.add_argument("--host", default="", metavar="ADDRESS", help="to listen on (all)")
    scheduler.add_argument("--port", type=int, default=8786, metavar="N", help="(8786)")
    scheduler.add_argument("--scheduler-file", metavar="FILE", help="where its address is written")
    scheduler.set_defaults(do=_schedule)
    worker = commands.add_parser(
        "worker",
        help="do runs for others, by Dask: tm3lab run --spread",
        description="One run at a time, as root, for whoever reaches the scheduler: only in a "
        "network that you trust.",
    )
    worker.add_argument("address", metavar="tcp://HOST:8786", help="of the Dask scheduler")
    worker.set_defaults(do=_work)


def _up(given: argparse.Namespace) -> int:
    known = parameters.by_name()
    chosen = {}
    for name, text in options.given(given).items():
        values = options.values(known[name], text)
        if len(values) != 1:
            raise ParameterError(name, f"{text!r}: one value for one lab")
        chosen[name] = values[0]
    if given.preset:
        chosen["preset"] = given.preset
    params = parameters.complete((), chosen)
    preflight.check(None, [params])
    from experiments.up import up

    up(params, given.seed)
    return 0


def _clean(given: argparse.Namespace) -> int:
    preflight.need_root()
    preflight.check_registry()
    clean_and_tell(given.all)
    return 0


def _schedule(given: argparse.Namespace) -> int:
    from experiments import spread

    words = ["--no-dashboard", "--port", str(given.port)]
    words += ["--host", given.host] if given.host else []
    words += ["--scheduler-file", given.scheduler_file] if given.scheduler_file else []
    spread.schedule(words)
    return 0


def _work(given: argparse.Namespace) -> int:
    preflight.need_root()
    from experiments import spread

    spread.work(given.address)
    return 0
