# SPDX-License-Identifier: MIT
"""Measures rp and lp beside other relays on loopback; prints tables, writes bench.json."""

import argparse
import dataclasses
import json
import os
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine, namespace, report, tools
from bench.measures import Bench, Size
from bench.rivals import BEFORE, BY_NAME, MEASURES, RIVALS, Place, Rival
from bench.run import carry_out, plan

FORMAT = 1
NORMAL = Size(bytes=1 << 30, connects=5_000, round_trips=10_000, idle=10_000, packets=41_667)
QUICK = Size(bytes=1 << 28, connects=1_000, round_trips=2_000, idle=2_000, packets=20_833)


def names(allowed: tuple[str, ...]) -> Any:
    def parse(text: str) -> list[str]:
        found = text.split(",")
        wrong = [name for name in found if name not in allowed]
        if wrong:
            known = ", ".join(allowed)
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {known}")
        return found

    return parse


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be positive")
    return number


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--only", type=names(MEASURES), default=list(MEASURES), metavar="MEASURE,..."
    )
    parser.add_argument(
        "--rivals",
        type=names(tuple(BY_NAME)),
        metavar="NAME,...",
        help=f"of {', '.join(BY_NAME)} (default: all; v2ray only where sing-box cannot be had)",
    )
    parser.add_argument("--reps", type=positive, help="blocks (default: 7, quick: 2)")
    parser.add_argument("--seed", type=int, help="of the order (default: drawn, and told)")
    parser.add_argument("--bytes", type=positive, help="of a bulk transfer (default: 1 GiB)")
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="to wait before each measurement for others to be quiet (default: 0)",
    )
    parser.add_argument("--quick", action="store_true", help="small and coarse")
    parser.add_argument(
        "--build",
        type=Path,
        default=Path(os.environ.get("TM3_BUILD") or "build"),
        help="where rp and lp are and helpers are built (default: build)",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="DIR",
        help=f"where the rp and lp of another build are: {BEFORE}, beside ours",
    )
    parser.add_argument("--out", type=Path, help="where results go (default: BUILD/bench)")
    return parser.parse_args(arguments)


def size_of(options: argparse.Namespace) -> Size:
    size = QUICK if options.quick else NORMAL
    return dataclasses.replace(size, bytes=options.bytes or size.bytes)


def default_rivals(build: Path, before: Path | None) -> list[str]:
    spare = {"v2ray" if tools.sing_box_path(build).exists() else "sing-box"}
    spare |= set() if before else {BEFORE}
    return [rival.name for rival in RIVALS if rival.name not in spare]


def choose(wanted: list[str], found: tools.Tools) -> tuple[list[Rival], dict[str, str]]:
    """The relays that can run, and why the others cannot."""
    chosen, skipped = [], {}
    for name in wanted:
        lacking = [found.missing[need] for need in BY_NAME[name].needs if need in found.missing]
        if lacking:
            skipped[name] = lacking[0]
        elif BY_NAME[name].root and not namespace.is_root():
            skipped[name] = "it needs root"
        else:
            chosen.append(BY_NAME[name])
    return chosen, skipped


def two_cores() -> tuple[int, int]:
    """The first two that we may use; the load is held to the same ones."""
    allowed = sorted(os.sched_getaffinity(0))
    cores = (allowed[0], allowed[min(1, len(allowed) - 1)])
    os.sched_setaffinity(0, set(cores))
    return cores


def write(result: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "bench.md").write_text(report.markdown(result))
    print(report.text(result))
    print(f"\nEvery figure: {out / 'bench.json'}; as Markdown: {out / 'bench.md'}")


def measure(options: argparse.Namespace, command: str) -> int:
    namespace.furnish()
    cores = two_cores()
    wanted = options.rivals or default_rivals(options.build, options.before)
    needs = {need for name in wanted for need in BY_NAME[name].needs}
    found = tools.find(needs, options.build, options.before)
    rivals, skipped = choose(wanted, found)
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    blocks = options.reps or (2 if options.quick else 7)
    steps = list(plan(rivals, options.only, blocks, seed))
    result: dict[str, Any] = {
        "format": FORMAT,
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "blocks": blocks,
        "size": dataclasses.asdict(size_of(options)),
        "machine": machine.facts(cores),
        "versions": {name: tools.version(name, path) for name, path in found.paths.items()},
        "rivals": [rival.name for rival in rivals],
        "skipped": skipped,
    }
    print(f"{len(steps)} measurements, seed {seed}, on cores {cores[0]} and {cores[1]}", flush=True)
    begin = time.monotonic()
    descriptors = namespace.descriptors()
    datagrams = "udp" in options.only
    place = Place(namespace.RUN / "bench", found.paths, cores, descriptors, datagrams)
    bench = Bench((options.build / "bench-load").resolve(), place, size_of(options))
    result["figures"] = carry_out(bench, steps, options.patience)
    result["seconds"] = round(time.monotonic() - begin, 1)
    write(result, options.out or options.build / "bench")
    return 0


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    if namespace.inside():
        return measure(options, " ".join(["python3 -m bench", *arguments]))
    tools.build_load(options.build)
    if options.rivals is None or "sing-box" in options.rivals:
        why = tools.build_sing_box(options.build)
        if why:
            print(f"no sing-box: {why}", flush=True)
    return namespace.run_inside(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
