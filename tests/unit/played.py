# SPDX-License-Identifier: MIT
"""What the engine's own decisions make of a scene: a unit test's program that plays it and prints.

Leaks are looked for where the program runs its tests (test_c_unit.py), not at each of hundreds of
scenes: that takes as much of the processor as a scene.
"""

import os
import subprocess

from tests.unit.test_c_unit import BUILD


def played(name: str, *words: object) -> str:
    """What build/unit/NAME prints for these arguments."""
    program = BUILD / "unit" / name
    assert program.exists(), f"{program} is not built: make {program}"
    done = subprocess.run(
        [program, *map(str, words)],
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout
