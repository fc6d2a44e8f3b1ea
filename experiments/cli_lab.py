# SPDX-License-Identifier: MIT
"""tm3lab up: a lab to look around in. tm3lab clean: removes what a killed one left."""

import argparse
from contextlib import nullcontext
from typing import Any

from experiments import cli_run, cli_watch, options, parameters, preflight
from experiments.watch.server import Server
from topologies.cleaning import clean_and_tell
from topologies.parameter import ParameterError


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
    cli_watch.add_option(parser, "serve a page that shows the lab, with sliders for the last mile")
    options.add_groups(parser, [], without=("preset", "way", "warm", "idle_s", "client"))
    parser.set_defaults(do=_up)
    clean = commands.add_parser(
        "clean",
        help="remove the labs whose runner was killed, only them",
        description="Removes network namespaces and processes that labs left because whoever ran "
        "them was killed. Labs that run, and all else, stay.",
    )
    clean.add_argument("--all", action="store_true", help="living ones too, with their runner")
    clean.set_defaults(do=_clean)


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
    parameters.check_used((), [chosen], [params])
    preflight.check(None, [params])
    from experiments.up import up

    place = cli_watch.place(given)
    with Server(place) if place else nullcontext() as server:
        up(params, given.seed, server)
    return 0


def _clean(given: argparse.Namespace) -> int:
    preflight.need_root()
    preflight.check_registry()
    clean_and_tell(given.all)
    return 0
