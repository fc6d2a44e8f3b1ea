# SPDX-License-Identifier: MIT
"""What words of a command line may be; argparse says what is wrong with one in a line."""

import argparse
from collections.abc import Callable


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
