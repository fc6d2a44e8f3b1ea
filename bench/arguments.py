# SPDX-License-Identifier: MIT
"""What words of a command line may be; argparse says what is wrong with one in a line. And those
that all measurements take."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path


def names(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
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


def several(text: str) -> list[int]:
    """Positive numbers."""
    for word in text.split(","):
        if not word.isdecimal() or int(word) < 1:
            raise argparse.ArgumentTypeError(f"{word!r} is not a positive number")
    return [int(word) for word in text.split(",")]


def add_common(parser: argparse.ArgumentParser, name: str, blocks: int, quick: int) -> None:
    parser.add_argument(
        "--reps",
        type=positive,
        help=f"blocks (default: {blocks}, quick: {quick})",
    )
    parser.add_argument("--seed", type=int, help="of all that is drawn (default: drawn, and told)")
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
    parser.add_argument("--out", type=Path, help=f"where results go (default: BUILD/{name})")
