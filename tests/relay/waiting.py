# SPDX-License-Identifier: MIT
"""Waiting for something: polled, with a deadline that names what was waited for."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from base import shell

T = TypeVar("T")


def until(what: str, condition: Callable[[], T], seconds: float = 10.0) -> T:
    """As base.shell's; here, who waits in vain is a test that fails."""
    try:
        return shell.until(what, condition, seconds)
    except TimeoutError as late:
        raise AssertionError(str(late)) from None


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


def at_once(jobs: dict[str, Callable[[], object]]) -> None:
    """Does them all at the same time, where each mostly waits; fails as the first that failed."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        done = {name: pool.submit(job) for name, job in jobs.items()}
    for name, job in done.items():
        error = job.exception()
        if error is not None:
            error.add_note(f"this was: {name}")
            raise error
