# SPDX-License-Identifier: MIT
"""tm3lab: the laboratory's command."""

import argparse
import sys
from typing import NoReturn

from experiments import cli_folder, cli_list, cli_run
from experiments.catalogue import UnknownExperiment
from experiments.folder import FolderError
from experiments.stand import CannotServe
from experiments.stopping import Stopped
from topologies.mile import ParameterError

DESCRIPTION = """\
Experiments on pipes over last miles that are what they say. A run needs root:
it makes network namespaces, and removes them.
"""
EPILOG = """\
  tm3lab list                                   the experiments
  tm3lab run download                           one of them, as it is defined
  tm3lab run download --pipes 1,2,4,8 --preset lossy --size 300KB --reps 30
  tm3lab run all --quick                        all of them, in under 90 minutes
  tm3lab up lte --pipes 8                       a prompt in a lab
"""


class Parser(argparse.ArgumentParser):
    """A wrong command line is told in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"tm3lab: {message}", file=sys.stderr)
        sys.exit(2)


def parser(argv: list[str]) -> Parser:
    found = Parser(
        prog="tm3lab",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = found.add_subparsers(dest="command", metavar="COMMAND", required=True)
    cli_list.add(commands)
    cli_run.add(commands, argv)
    cli_folder.add(commands)
    return found


def main(argv: list[str]) -> int:
    options = parser(argv).parse_args(argv)
    try:
        return options.do(options)
    except (ParameterError, UnknownExperiment) as wrong:
        print(f"tm3lab: {wrong}", file=sys.stderr)
        return 2
    except (CannotServe, FolderError, PermissionError) as wrong:
        print(f"tm3lab: {wrong}", file=sys.stderr)
        return 1
    except Stopped:
        return 130
