# SPDX-License-Identifier: MIT
"""tm3lab: the laboratory's command."""

import argparse
import sys
from typing import NoReturn

from base.sources import ROOT
from experiments import (
    cli_folder,
    cli_lab,
    cli_list,
    cli_oracle,
    cli_run,
    cli_spread,
    cli_trace,
    cli_watch,
)
from experiments.catalogue import UnknownExperiment
from experiments.definition import DefinitionError
from experiments.folder import FolderError
from experiments.options import flag
from experiments.preflight import CannotServe
from experiments.trace.capture import CaptureError
from experiments.watch.server import PortTaken
from topologies.parameter import ParameterError
from topologies.programs import ProgramError

DESCRIPTION = """\
Experiments on pipes over last miles that are what they say. A run needs root:
it makes network namespaces, and removes them.
"""
EPILOG = """\
  tm3lab list                                   the experiments
  tm3lab run download                           one of them, as it is defined
  tm3lab run download --pipes 1,2,4,8 --preset lossy --size 300KB --reps 30
  tm3lab run all --quick                        of all that are short what 90 minutes hold
  tm3lab up lte --pipes 8                       a prompt in a lab
  tm3lab trace FILE.pcap --plots DIR            what a capture tells
  tm3lab watch DIR                              a page that shows it, live or again
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
    cli_lab.add(commands)
    cli_oracle.add(commands)
    cli_spread.add(commands)
    cli_trace.add(commands)
    cli_watch.add(commands)
    return found


def main(argv: list[str]) -> int:
    try:
        return _do(argv)
    except (ParameterError, UnknownExperiment, DefinitionError, PortTaken) as wrong:
        return _complain(2, str(wrong))
    except (CannotServe, CaptureError, FolderError, ProgramError) as wrong:
        return _complain(1, str(wrong))
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("base", "experiments", "topologies", "vm"):
            raise
        return _complain(1, f"no {missing.name} in Python: {_remedy(missing.name)}")


def _do(argv: list[str]) -> int:
    options, extra = parser(argv).parse_known_args(argv)
    if extra:
        known = ", ".join(map(flag, getattr(options, "known", ())))
        told = f"; there are {known}" if known else ""
        return _complain(2, f"{options.command}: {extra[0]}: no such argument{told}")
    return options.do(options)


def _remedy(module: str | None) -> str:
    if module in ("dask", "distributed"):
        return f"{sys.executable} -m pip install -r {ROOT}/experiments/requirements-spread.txt"
    return "sudo make setup"


def _complain(status: int, text: str) -> int:
    print(f"tm3lab: {text}", file=sys.stderr)
    return status
