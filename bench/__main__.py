# SPDX-License-Identifier: MIT
"""Measures rp and lp beside other relays on loopback; prints tables, writes bench.json."""

import argparse
import dataclasses
import json
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine, namespace, report, tools
from bench.arguments import add_common, names, positive
from bench.kinds import MEASURES, MORE
from bench.measures import Bench, Size
from bench.rivals import BEFORE, BY_NAME, RIVALS, Place, Rival
from bench.run import NOISY, Run, plan

FORMAT = 3
EVERY = "all"
NORMAL = Size(
    bytes=1 << 30,
    connects=5_000,
    round_trips=10_000,
    idle=10_000,
    packets=41_667,
    churn_rate=1_000,
    churn_seconds=60,
)
QUICK = Size(
    bytes=1 << 28,
    connects=1_000,
    round_trips=2_000,
    idle=2_000,
    packets=20_833,
    churn_rate=1_000,
    churn_seconds=3,
)

BLOCKS, QUICK_BLOCKS = 7, 2


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--only",
        type=names(MEASURES),
        default=[it for it in MEASURES if it not in MORE],
        metavar="MEASURE,...",
        help=f"of {', '.join(MEASURES)} (default: all but {', '.join(MORE)})",
    )
    parser.add_argument(
        "--rivals",
        type=names((*BY_NAME, EVERY)),
        metavar="NAME,...",
        help=f"of {', '.join(BY_NAME)}; or {EVERY} (default: all but "
        f"{', '.join(it.name for it in RIVALS if it.extra)}, and v2ray only where sing-box cannot "
        "be had)",
    )
    parser.add_argument(
        "--cc",
        type=names(namespace.CONTROLS),
        default=list(namespace.CONTROLS),
        metavar="NAME,...",
        help="congestion control of all sockets: each of them (default: cubic,bbr)",
    )
    add_common(parser, "bench", BLOCKS, QUICK_BLOCKS)
    parser.add_argument("--bytes", type=positive, help="of a bulk transfer (default: 1 GiB)")
    parser.add_argument(
        "--churn-rate",
        type=positive,
        metavar="N",
        help="connections a second that `churn` opens (default: 1000)",
    )
    parser.add_argument(
        "--churn-seconds", type=positive, metavar="N", help="for so long (default: 60, quick: 3)"
    )
    parser.add_argument(
        "--again",
        type=int,
        metavar="N",
        help=f"times to repeat, with all that it is compared with, what was measured while others "
        f"had over {NOISY * 100:g} %% of the cores; the quietest counts (default: 2, quick: 0)",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="DIR",
        help=f"where the rp and lp of another build are: {BEFORE}, beside ours",
    )
    parser.add_argument(
        "--no-build",
        action="store_true",
        help=f"leave out {', '.join(tools.WITH_GO)} where they are not built yet",
    )
    return parser.parse_args(arguments)


def size_of(options: argparse.Namespace) -> Size:
    size = QUICK if options.quick else NORMAL
    given = {
        "bytes": options.bytes,
        "churn_rate": options.churn_rate,
        "churn_seconds": options.churn_seconds,
    }
    return dataclasses.replace(size, **{name: value for name, value in given.items() if value})


def default_rivals(build: Path, before: Path | None) -> list[str]:
    spare = {"v2ray" if tools.sing_box_path(build).exists() else "sing-box"}
    spare |= set() if before else {BEFORE}
    spare |= {rival.name for rival in RIVALS if rival.extra}
    return [rival.name for rival in RIVALS if rival.name not in spare]


def wanted_rivals(options: argparse.Namespace) -> list[str]:
    if options.rivals is None:
        return default_rivals(options.build, options.before)
    if EVERY in options.rivals:
        return [rival.name for rival in RIVALS if options.before or rival.name != BEFORE]
    return options.rivals


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


def write(result: dict[str, Any], out: Path) -> None:
    """After each block, so that who interrupts a run has the blocks before."""
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("bench.json", json.dumps(result, indent=1) + "\n"),
        ("bench.md", report.markdown(result)),
    ):
        new = out / f"{name}.new"
        new.write_text(text)
        new.replace(out / name)


def show(result: dict[str, Any], out: Path) -> None:
    print(report.text(result))
    print(f"\nEvery figure: {out / 'bench.json'}; as Markdown: {out / 'bench.md'}")


def measure(options: argparse.Namespace, command: str) -> int:
    namespace.furnish()
    cores = machine.two_cores()
    wanted = wanted_rivals(options)
    needs = {need for name in wanted for need in BY_NAME[name].needs}
    found = tools.find(needs, options.build, options.before)
    rivals, skipped = choose(wanted, found)
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    blocks = options.reps or (QUICK_BLOCKS if options.quick else BLOCKS)
    reasons = {name: namespace.why_not(name) for name in options.cc}
    controls = [name for name, why in reasons.items() if not why]
    skipped |= {name: why for name, why in reasons.items() if why}
    if not controls:
        print("\n".join(f"{name}: {why}" for name, why in skipped.items()), file=sys.stderr)
        return 1
    steps = list(plan(rivals, options.only, blocks, seed, controls))
    result: dict[str, Any] = {
        "format": FORMAT,
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "blocks": 0,
        "planned": blocks,
        "size": dataclasses.asdict(size_of(options)),
        "machine": machine.facts(cores),
        "versions": {name: tools.version(name, path) for name, path in found.paths.items()},
        "rivals": [rival.name for rival in rivals],
        "controls": controls,
        "skipped": skipped,
    }
    print(f"{len(steps)} measurements, seed {seed}, on cores {cores[0]} and {cores[1]}", flush=True)
    begin = time.monotonic()
    descriptors = namespace.descriptors()
    datagrams = "udp" in options.only
    place = Place(namespace.RUN / "bench", found.paths, cores, descriptors, datagrams)
    bench = Bench((options.build / tools.LOAD).resolve(), place, size_of(options))
    again = (0 if options.quick else 2) if options.again is None else options.again
    run = Run(bench, options.patience, again)
    out = options.out or options.build / "bench"

    def save(whole: int) -> None:
        seconds = round(time.monotonic() - begin, 1)
        result.update(blocks=whole, figures=run.figures, repeated=run.repeated, seconds=seconds)
        write(result, out)

    run.carry_out(steps, save)
    show(result, out)
    return 0


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    if namespace.inside():
        return measure(options, " ".join(["python3 -m bench", *arguments]))
    tools.build_load(options.build)
    tools.build_copyloop(options.build)
    needs = {need for name in wanted_rivals(options) for need in BY_NAME[name].needs}
    builders = (tools.build_sing_box, tools.build_muxes, tools.build_xray)
    for name, build in zip(tools.WITH_GO, builders, strict=True):
        # By default sing-box is wanted where it can be had.
        if options.no_build or not (name in needs or options.rivals is None):
            continue
        why = build(options.build)
        if why:
            print(f"no {name}: {why}", flush=True)
    return namespace.run_inside(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
