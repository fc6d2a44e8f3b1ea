# SPDX-License-Identifier: MIT
"""Measures what a message takes of rp and lp, as there are more connections, pipes, sessions, and
messages that wait for a missing one; prints tables, draws plots, writes growth.json."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench import blocks, machine, namespace, tools
from bench.arguments import names
from bench.growth import report
from bench.growth.axes import AXES, points
from bench.growth.measure import Pace, measure
from bench.rivals import SPARE_DESCRIPTORS, Place

FORMAT = 1
NORMAL = Pace(settle_s=1.0, hold_s=5.0)
QUICK = Pace(settle_s=0.3, hold_s=1.0)
BLOCKS = 7


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument(
        "--only",
        type=names(tuple(AXES)),
        default=list(AXES),
        metavar="AXIS,...",
        help=", ".join(AXES),
    )
    blocks.add_options(parser, "growth", BLOCKS)
    return parser.parse_args(arguments)


def write(result: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "growth.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "growth.md").write_text(report.markdown(result))
    for name, drawn in report.plots(result).items():
        (out / f"{name}.svg").write_text(drawn)
    print(report.text(result))
    print(f"\nEvery figure: {out / 'growth.json'}; as Markdown: {out / 'growth.md'}; plots beside")


def run(options: argparse.Namespace, command: str) -> int:
    namespace.furnish()
    cores = machine.two_cores()
    found = tools.find({"rp", "lp", "load"}, options.build)
    why = [*found.missing.values()] or [namespace.why_not(options.cc)]
    if any(why):
        print(f"bench.growth: {why[0]}", file=sys.stderr)
        return 1
    namespace.set_congestion_control(options.cc)
    blocks.settle(options, BLOCKS)
    pace = QUICK if options.quick else NORMAL
    descriptors = namespace.descriptors()
    # Sessions of one address may have three quarters of rp's.
    most = descriptors * 3 // 4 - SPARE_DESCRIPTORS
    every = points(options.only, options.quick, most)
    steps = blocks.plan(every, options.reps, options.seed)
    result: dict[str, Any] = {"format": FORMAT}
    result |= blocks.record(options, command, pace, cores, found.paths)
    print(
        f"{len(steps)} points, seed {options.seed}, on cores {cores[0]} and {cores[1]}", flush=True
    )
    begin = time.monotonic()
    place = Place(namespace.RUN / "growth", found.paths, cores, descriptors)
    load = place.tools["load"]
    result["figures"] = blocks.carry_out(
        steps, cores, options.patience, lambda _, point: measure(point, place, pace, load)
    )
    result["seconds"] = round(time.monotonic() - begin, 1)
    write(result, options.out or options.build / "growth")
    return 0


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    if namespace.inside():
        return run(options, " ".join(["python3 -m bench.growth", *arguments]))
    tools.build_load(options.build)
    return namespace.run_inside(arguments, "bench.growth")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
