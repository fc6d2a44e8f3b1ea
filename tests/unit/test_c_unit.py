# SPDX-License-Identifier: MIT
"""Every tests/unit/test_*.c is a cmocka program; each is one test here."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("TM3_BUILD") or HERE.parents[1] / "build")
PROGRAMS = sorted(path.stem for path in HERE.glob("test_*.c"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_unit(name: str) -> None:
    program = BUILD / "unit" / name
    assert program.exists(), f"{program} is not built: make {program}"
    done = subprocess.run(
        [program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
    )
    assert done.returncode == 0, f"{name} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    assert "[  PASSED  ]" in done.stdout + done.stderr, f"{name} ran no test"
