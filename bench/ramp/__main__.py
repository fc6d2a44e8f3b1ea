# SPDX-License-Identifier: MIT
"""Raises the rate of DNS queries over many connections until the answers stay behind, straight to
unbound and over rp and lp; prints tables, writes ramp.json."""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench import blocks, machine, namespace, tools
from bench.arguments import names, positive, several
from bench.ramp import report
from bench.ramp.cases import BARE, CONNECTIONS, KINDS, WAYS, every
from bench.ramp.measure import Pace, measure
from bench.ramp.unbound import OWN_DESCRIPTORS
from bench.rivals import Place

FORMAT = 1
NORMAL = Pace(settle_s=0.3, step_s=1.0, hold_s=5.0)
QUICK = Pace(settle_s=0.2, step_s=0.5, hold_s=2.0)
BLOCKS = 3
QUICK_CONNECTIONS = (100, 1_000)
SEEDS = 1 << 31


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.ramp", description=__doc__)
    parser.add_argument(
        "--kinds", type=names(KINDS), default=list(KINDS), metavar="KIND,...", help=", ".join(KINDS)
    )
    parser.add_argument(
        "--ways",
        type=names(WAYS),
        default=list(WAYS),
        metavar="WAY,...",
        help=f"{', '.join(WAYS)}: {BARE} is a server that only answers, a number is of pipes",
    )
    parser.add_argument(
        "--connections",
        type=several,
        metavar="N,...",
        help="in all, each with a part of the queries (default: 100,1000,10000)",
    )
    parser.add_argument(
        "--rate",
        type=positive,
        help="times and processor time at so many queries a second (default: at 0.8 of the peak)",
    )
    blocks.add_options(parser, "ramp", BLOCKS)
    options = parser.parse_args(arguments)
    if options.connections is None:
        options.connections = list(QUICK_CONNECTIONS if options.quick else CONNECTIONS)
    most = namespace.descriptors_most() - OWN_DESCRIPTORS
    if max(options.connections) > most:
        parser.error(
            f"argument --connections: {max(options.connections)} are more than the {most} that "
            "a process may have here"
        )
    return options


def write(result: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "ramp.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "ramp.md").write_text(report.markdown(result))
    print(report.text(result))
    print(f"\nEvery figure: {out / 'ramp.json'}; as Markdown: {out / 'ramp.md'}")


def run(options: argparse.Namespace, command: str) -> int:
    namespace.furnish()
    cores = machine.two_cores()
    found = tools.find({"rp", "lp", "ramp", "unbound", "openssl"}, options.build)
    why = [*found.missing.values()] or [namespace.why_not(options.cc)]
    if any(why):
        print(f"bench.ramp: {why[0]}", file=sys.stderr)
        return 1
    namespace.set_congestion_control(options.cc)
    blocks.settle(options, BLOCKS)
    pace = dataclasses.replace(QUICK if options.quick else NORMAL, rate=options.rate)
    cases, missing = every(options.kinds, options.ways, options.connections)
    steps = blocks.plan(cases, options.reps, options.seed)
    result: dict[str, Any] = {"format": FORMAT}
    result |= blocks.record(options, command, pace, cores, found.paths)
    result["missing"] = missing
    print(
        f"{len(steps)} cases, seed {options.seed}, on cores {cores[0]} and {cores[1]}", flush=True
    )
    begin = time.monotonic()
    place = Place(namespace.RUN / "ramp", found.paths, cores, namespace.descriptors())
    result["figures"] = blocks.carry_out(
        steps,
        cores,
        options.patience,
        lambda number, case: measure(case, place, pace, (options.seed + number) % SEEDS),
    )
    result["seconds"] = round(time.monotonic() - begin, 1)
    write(result, options.out or options.build / "ramp")
    return 0


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    if namespace.inside():
        return run(options, " ".join(["python3 -m bench.ramp", *arguments]))
    tools.build_ramp(options.build)
    return namespace.run_inside(arguments, "bench.ramp")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
