# SPDX-License-Identifier: MIT
"""An attack as it is seen by who has it made: a program that attacks when it is told to."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from experiments.workloads.attacks.attack import READY

ENDS_S = 30.0


class AttackFailed(RuntimeError):
    """The attacker's program did not do what it should."""


@dataclass
class Besieger:
    process: "subprocess.Popen[str]"

    def go(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # `end` tells of it
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def end(self) -> dict[str, int]:
        """What it counted. Raises AttackFailed."""
        out, err = self.process.communicate(timeout=ENDS_S)
        if self.process.returncode:
            raise AttackFailed(f"the attacker ended with {self.process.returncode}: {err[-2000:]}")
        return json.loads(out)


@contextmanager
def besieger(argv: Sequence[str], env: dict[str, str] | None = None) -> Iterator[Besieger]:
    """Ready, and gone with the block. `argv`: the program with its scene, inside rp's namespace."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != READY:
            _, err = process.communicate(timeout=ENDS_S)
            raise AttackFailed(f"the attacker was not ready: {err[-2000:]}")
        yield Besieger(process)
    finally:
        process.kill()
        process.communicate()
