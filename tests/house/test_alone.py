# SPDX-License-Identifier: MIT
"""Who asks to be alone waits for the other workers' tests, and none begins until it is done."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist")

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os, sys
sys.path.insert(0, os.environ["ROOT"])
from tests.conftest import pytest_configure
"""
# Four of the twelve want to be alone in the middle, one of them in two threads.
TESTS = """
import json, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import pytest
from tests.alone import alone

def told(what, number, since):
    with Path("told").open("a") as out:
        out.write(json.dumps([what, number, since, time.monotonic()]) + "\\n")

@pytest.mark.parametrize("number", range(12))
def test_one(number):
    since = time.monotonic()
    time.sleep(0.1)
    told("beside", number, since)
    def wants() -> None:
        with alone():
            since = time.monotonic()
            time.sleep(0.1)
            told("alone", number, since)

    if number == 4:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: wants(), range(2)))
    elif number % 3 == 1:
        wants()
    since = time.monotonic()
    time.sleep(0.1)
    told("beside", number, since)

def test_long():
    since = time.monotonic()
    time.sleep(3)
    told("beside", 99, since)

@pytest.mark.timeout(1)
def test_waits_longer_than_it_may_take():
    time.sleep(0.5)
    with alone():
        time.sleep(0.1)

@pytest.mark.timeout(1)
def test_is_timed_as_before_when_it_is_alone():
    with alone():
        time.sleep(30)
"""


def test_one_is_alone(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environ |= {"ROOT": str(ROOT), "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", tmp_path]
    done = subprocess.run(
        argv, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "1 failed, 14 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_is_timed_as_before" in done.stdout
    assert not list(tmp_path.glob("tm3-*")), "the locks are left behind"
    spans = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    alone = [span for span in spans if span[0] == "alone"]
    beside = [span for span in spans if span[0] == "beside"]
    assert len(alone) == 5

    def overlap(one: list[float], other: list[float]) -> bool:
        return one[2] < other[3] and other[2] < one[3]

    assert any(overlap(a, b) for a in beside for b in beside if a[1] != b[1])
    assert not any(overlap(a, b) for a in alone for b in spans if b[1] != a[1])
