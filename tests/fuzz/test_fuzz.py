# SPDX-License-Identifier: MIT
"""Every tests/fuzz/fuzz_*.c is a libFuzzer program; each runs its seeds here, for a second or more.

`make fuzz` runs them for longer. A failure here leaves its input beside the program. Most seeds are
what longer runs found, as far as they cover code that no other seed does.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("TM3_BUILD") or HERE.parents[1] / "build")
TARGETS = sorted(path.stem for path in HERE.glob("fuzz_*.c"))
SECONDS = 1  # all seeds are run, even if they take longer


@pytest.mark.parametrize("name", TARGETS)
def test_fuzz_briefly(name: str, tmp_path: Path) -> None:
    program = BUILD / "fuzz" / name
    assert program.exists(), f"{program} is not built: make {program}"
    seeds = HERE / "corpus" / name
    done = subprocess.run(
        [
            program,
            f"-max_total_time={SECONDS}",
            "-timeout=30",  # a busy machine stretches what takes a second
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            f"-artifact_prefix={program}.",
            tmp_path,
            *([seeds] if seeds.is_dir() else []),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=90,
    )
    assert done.returncode == 0, f"{name} found something\n{done.stderr[-8000:]}"
    units = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    assert units and int(units[1]) > 10, f"{name} hardly ran\n{done.stderr[-2000:]}"
