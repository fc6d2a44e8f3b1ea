# SPDX-License-Identifier: MIT
"""A measurement of several blocks: each thing to measure once in each block, in random order, so
that what changes on the machine meanwhile changes all of them. What bench.growth and bench.ramp
have in common, from the command line to the record of a run."""

import argparse
import dataclasses
import random
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from bench import machine, namespace, tools
from bench.arguments import add_common
from bench.run import await_quiet

T = TypeVar("T")
QUICK_BLOCKS = 1


def add_options(parser: argparse.ArgumentParser, name: str, blocks: int) -> None:
    """Those that every such measurement has."""
    parser.add_argument("--cc", default="cubic", help="congestion control of all (default: cubic)")
    add_common(parser, name, blocks, QUICK_BLOCKS)


def settle(options: argparse.Namespace, blocks: int) -> None:
    """What was left open: a seed, and how many blocks."""
    if options.seed is None:
        options.seed = random.randrange(1 << 30)
    options.reps = options.reps or (QUICK_BLOCKS if options.quick else blocks)


def plan(things: Sequence[T], blocks: int, seed: int) -> list[tuple[int, T]]:
    dice = random.Random(seed)
    return [(block, it) for block in range(blocks) for it in dice.sample(things, len(things))]


def record(
    options: argparse.Namespace,
    command: str,
    pace: Any,
    cores: Sequence[int],
    paths: dict[str, Path],
) -> dict[str, Any]:
    """How it was measured, and on what."""
    return {
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": options.seed,
        "blocks": options.reps,
        "pace": dataclasses.asdict(pace),
        "control": options.cc,
        "machine": machine.facts(cores),
        "versions": {name: tools.version(name, path) for name, path in paths.items()},
    }


def carry_out(
    steps: Sequence[tuple[int, Any]],
    cores: Sequence[int],
    patience: float,
    measure: Callable[[int, Any], dict[str, Any]],
) -> list[dict[str, Any]]:
    """`measure` gets the number of the step, from 1, and the thing: a dataclass."""
    figures = []
    for number, (block, it) in enumerate(steps, 1):
        print(f"{number}/{len(steps)} block {block + 1}: {it}", file=sys.stderr, flush=True)
        await_quiet(set(cores), patience)
        figures.append(dataclasses.asdict(it) | {"block": block} | measure(number, it))
        namespace.reap_orphans()
    return figures
