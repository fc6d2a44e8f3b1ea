# SPDX-License-Identifier: MIT
"""Commands run to their end, here or in a network namespace; waiting with a deadline."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from base.pressure import OwnTime

T = TypeVar("T")


class CommandError(RuntimeError):
    """A command failed; the message holds it and what it said."""

    def __init__(self, command: str, said: str) -> None:
        super().__init__(f"{command}: {said}")
        self.said = said


def run(argv: Sequence[str | Path], *, stdin: str = "", seconds: float = 30.0) -> str:
    """Runs a command and returns what it wrote; anything but success is an error.

    `seconds` are of the machine's own time: beside programs that go first, what takes half a second
    of a processor may take half a minute.
    """
    words = [str(word) for word in argv]
    try:
        done = _to_its_end(words, stdin, seconds)
    except FileNotFoundError:
        raise CommandError(words[0], "not installed") from None
    except subprocess.TimeoutExpired:
        raise CommandError(" ".join(words), f"no end within {seconds:g} s") from None
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        raise CommandError(" ".join(words), said or f"exit {done.returncode}")
    return done.stdout


def _to_its_end(words: list[str], stdin: str, seconds: float) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    clock = OwnTime()
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        given: str | None = stdin
        try:
            while True:
                try:
                    out, err = process.communicate(given, seconds - clock.passed_s())
                    return subprocess.CompletedProcess(words, process.returncode, out, err)
                except subprocess.TimeoutExpired:
                    given = None  # it goes on with what it was given
                    if clock.passed_s() >= seconds:
                        raise
        except BaseException:
            process.kill()
            raise


def enter(namespace: Path, argv: Sequence[str | Path]) -> list[str]:
    """`argv` as started in a network namespace; nsenter becomes the program, pid and all."""
    return ["nsenter", f"--net={namespace}", "--", *map(str, argv)]


def sleep_until(then: float) -> None:
    """Of time.monotonic()."""
    time.sleep(max(0.0, then - time.monotonic()))


def until(what: str, condition: Callable[[], T], seconds: float = 10.0) -> T:
    """The first true answer of `condition`; a TimeoutError names `what` after `seconds`.

    They are of the machine's own time: what others took of it is not held against a program.
    """
    clock = OwnTime()
    pause_s = 0.002
    while True:
        answer = condition()
        if answer:
            return answer
        if clock.went_s() > seconds and clock.passed_s() > seconds:
            by_all = f" ({clock.went_s():.0f} by the clock)"
            raise TimeoutError(f"waited {seconds:g} s{by_all} for {what}; last answer: {answer!r}")
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.05)
