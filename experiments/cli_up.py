# SPDX-License-Identifier: MIT
"""tm3lab up: a lab to look around in."""

import argparse
from typing import Any

from experiments import cli_run, options, parameters, preflight
from topologies.mile import ParameterError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "up",
        help="Mininet's prompt in a lab with both proxies running",
        description=__doc__,
        allow_abbrev=False,
    )
    parser.add_argument("preset", nargs="?", metavar="PRESET", help="the last mile (wired)")
    parser.add_argument("--seed", type=int, default=cli_run.SEED, metavar="N", help="of losses (1)")
    options.add_groups(parser, [], without=("preset", "way", "warm"))
    parser.set_defaults(do=_up)


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
