# SPDX-License-Identifier: MIT
"""Every tests/unit/test_*.c is a cmocka program; each is one test here, some of them twice.

Models in virtual time are held to their bounds by a program without sanitizers; with them, only
a part of their cases is run (part.h).
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.relay.waiting import until

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("TM3_BUILD") or HERE.parents[1] / "build")
PROGRAMS = (
    *(f"whole/test_{name}" for name in ("matrix", "rivals", "shared", "thin", "together")),
    *sorted(path.stem for path in HERE.glob("test_*.c")),
)


@pytest.mark.timeout(1000)  # by the clock; the limit below is of the machine's own time
@pytest.mark.parametrize("name", PROGRAMS)
def test_unit(name: str, tmp_path: Path) -> None:
    program = BUILD / "unit" / name
    assert program.exists(), f"{program} is not built: make {program}"
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
        )
    try:
        until(f"{name} to end", lambda: process.poll() is not None, 250)
    finally:
        process.kill()
        process.wait()
    said = log.read_text(errors="replace")
    assert process.returncode == 0, f"{name} ended with {process.returncode}\n{said}"
    assert "[  PASSED  ]" in said, f"{name} ran no test"
