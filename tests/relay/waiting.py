# SPDX-License-Identifier: MIT
"""Waiting for something: polled, with a deadline that names what was waited for.

A deadline is of the machine's own time: what others took of it is not held against a program.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from base.pressure import OwnTime

T = TypeVar("T")


def until(what: str, condition: Callable[[], T], seconds: float = 10.0) -> T:
    """Returns the first true answer of `condition`; fails naming `what` after `seconds`."""
    clock = OwnTime()
    pause_s = 0.002
    while True:
        answer = condition()
        if answer:
            return answer
        if clock.went_s() > seconds and clock.passed_s() > seconds:
            by_all = f" ({clock.went_s():.0f} by the clock)"
            raise AssertionError(
                f"waited {seconds:g} s{by_all} for {what}; last answer: {answer!r}"
            )
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)


def equals(what: str, read: Callable[[], T], wanted: T, seconds: float = 10.0) -> None:
    """Waits until `read` answers `wanted`; the failure shows what it answered last."""
    last: list[T] = []

    def check() -> bool:
        last[:] = [read()]
        return last[0] == wanted

    try:
        until(what, check, seconds)
    except AssertionError:
        raise AssertionError(
            f"waited {seconds:g} s for {what} to be {wanted!r}; it is {last[0]!r}"
        ) from None
