# SPDX-License-Identifier: MIT
"""python -m topologies: what there is, what runs, and removing what a killed runner left."""

import argparse
import os
import sys
import time

from topologies import parameters
from topologies.cleaning import clean_and_tell
from topologies.entry import NotOurs, entries
from topologies.presets import table
from topologies.qdisc import why_no_netem


def _list() -> None:
    for entry in entries():
        state = "runs" if entry.running() else "left behind"
        made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.made))
        print(f"{entry.folder.name}: {state}, made {made}: {', '.join(entry.namespaces)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m topologies", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    cleaning = commands.add_parser("clean", help="remove labs whose runner is gone (root)")
    cleaning.add_argument("--all", action="store_true", help="living ones too, with their runner")
    commands.add_parser("list", help="the labs of this machine")
    commands.add_parser("presets", help="the last miles by name")
    commands.add_parser("parameters", help="what a topology takes, as README.md has it")
    commands.add_parser("probe", help="whether this kernel has netem")
    options = parser.parse_args()
    try:
        return _do(options)
    except NotOurs as why:
        print(f"topologies: not believed: {why}", file=sys.stderr)
        return 1


def _do(options: argparse.Namespace) -> int:
    if options.command == "clean":
        if os.geteuid() != 0:
            print("topologies: clean needs root", file=sys.stderr)
            return 1
        clean_and_tell(options.all)
    elif options.command == "list":
        _list()
    elif options.command == "presets":
        print(table())
    elif options.command == "parameters":
        print(parameters.table())
    else:
        print(why_no_netem() or "netem: there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
