# SPDX-License-Identifier: MIT
"""Measures what a message takes of rp and lp, as there are more connections, pipes, sessions, and
messages that wait for a missing one; prints tables, draws plots, writes growth.json."""

import argparse
import dataclasses
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine, namespace, tools
from bench.arguments import names, positive
from bench.growth import report
from bench.growth.axes import AXES, Point, points
from bench.growth.measure import Pace, measure
from bench.rivals import SPARE_DESCRIPTORS, Place
from bench.run import await_quiet

FORMAT = 1
NORMAL = Pace(settle_s=1.0, hold_s=5.0)
QUICK = Pace(settle_s=0.3, hold_s=1.0)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument(
        "--only",
        type=names(tuple(AXES)),
        default=list(AXES),
        metavar="AXIS,...",
        help=", ".join(AXES),
    )
    parser.add_argument("--cc", default="cubic", help="congestion control of all (default: cubic)")
    parser.add_argument("--reps", type=positive, help="blocks (default: 7, quick: 1)")
    parser.add_argument("--seed", type=int, help="of the order (default: drawn, and told)")
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="to wait before each point for others to be quiet (default: 0)",
    )
    parser.add_argument("--quick", action="store_true", help="small and coarse")
    parser.add_argument(
        "--build",
        type=Path,
        default=Path(os.environ.get("TM3_BUILD") or "build"),
        help="where rp and lp are and the helper is built (default: build)",
    )
    parser.add_argument("--out", type=Path, help="where results go (default: BUILD/growth)")
    return parser.parse_args(arguments)


def plan(found: Sequence[Point], blocks: int, seed: int) -> list[tuple[int, Point]]:
    """Each point once in each block, in random order."""
    dice = random.Random(seed)
    return [(block, point) for block in range(blocks) for point in dice.sample(found, len(found))]


def carry_out(
    steps: Sequence[tuple[int, Point]], place: Place, pace: Pace, patience: float
) -> list[dict[str, Any]]:
    figures = []
    for number, (block, point) in enumerate(steps, 1):
        say = f"{number}/{len(steps)} block {block + 1}: {point}"
        print(say, file=sys.stderr, flush=True)
        await_quiet(set(place.cores), patience)
        figure = dataclasses.asdict(point) | {"block": block}
        figures.append(figure | measure(point, place, pace, place.tools["load"]))
        namespace.reap_orphans()
    return figures


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
    seed = random.randrange(1 << 30) if options.seed is None else options.seed
    blocks = options.reps or (1 if options.quick else 7)
    pace = QUICK if options.quick else NORMAL
    descriptors = namespace.descriptors()
    # Sessions of one address may have three quarters of rp's.
    most = descriptors * 3 // 4 - SPARE_DESCRIPTORS
    every = points(options.only, options.quick, most)
    steps = plan(every, blocks, seed)
    result: dict[str, Any] = {
        "format": FORMAT,
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "blocks": blocks,
        "pace": dataclasses.asdict(pace),
        "control": options.cc,
        "machine": machine.facts(cores),
        "versions": {name: tools.version(name, path) for name, path in found.paths.items()},
    }
    print(f"{len(steps)} points, seed {seed}, on cores {cores[0]} and {cores[1]}", flush=True)
    begin = time.monotonic()
    place = Place(namespace.RUN / "growth", found.paths, cores, descriptors)
    result["figures"] = carry_out(steps, place, pace, options.patience)
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
