# SPDX-License-Identifier: MIT
"""What is told of the processor's time: of each test, with its programs', from workers too."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spent import NAME, table, waits

ROOT = Path(__file__).parents[2]
SPINS = """
import subprocess, sys

def spins():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.6: pass"])

def test_one():
    spins()

def test_other():
    spins()

def test_idle():
    pass
"""
CONFTEST = """
import os, sys
sys.path.insert(0, os.environ["ROOT"])
from tests.conftest import pytest_configure
"""


def test_what_programs_took_is_told(tmp_path: Path) -> None:
    words = ["-n", "1"] if importlib.util.find_spec("xdist") else []
    (tmp_path / "room").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "room" / "test_it.py").write_text(SPINS)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, tmp_path]
    done = subprocess.run(
        argv,
        env={**environ, "ROOT": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.partition("processor time")[2].splitlines()[1:3]
    seconds, name = lines[0].split(" s  ")
    assert 1.1 < float(seconds) < 5
    assert name == "room, 3 tests"
    if words:
        assert (
            "    0.0 s  that gw0 waited at the end, after room/test_it.py::test_idle" in done.stdout
        )


def test_who_waited_longest_is_first() -> None:
    assert waits({"gw1": (40.0, "b"), "gw0": (52.5, "c"), "gw2": (10.0, "a")}) == [
        "   42.5 s  that gw2 waited at the end, after a",
        "   12.5 s  that gw1 waited at the end, after b",
        "    0.0 s  that gw0 waited at the end, after c",
    ]


def test_rooms_files_and_tests_are_in_order() -> None:
    def report(nodeid: str, when: str, seconds: float) -> pytest.TestReport:
        words = {"longrepr": None, "keywords": {}, "location": ("", None, "")}
        return pytest.TestReport(
            nodeid=nodeid,
            outcome="passed",
            when=when,
            user_properties=[(NAME, seconds)],
            **words,
        )  # type: ignore[arg-type]

    reports = [
        report("tests/a/test_x.py::test_1", "setup", 1.5),
        report("tests/a/test_x.py::test_1", "call", 0.5),
        report("tests/a/test_x.py::test_2", "call", 0.1),
        report("tests/a/test_w.py::test_4", "call", 0.9),
        report("tests/b/test_y.py::test_3", "call", 4.0),
    ]
    assert table(reports) == [
        "    4.0 s  tests/b, 1 tests",
        "    3.0 s  tests/a, 3 tests",
        "    4.0 s  tests/b/test_y.py, 1 tests",
        "    2.1 s  tests/a/test_x.py, 2 tests",
        "    4.0 s  tests/b/test_y.py::test_3",
        "    2.0 s  tests/a/test_x.py::test_1",
    ]
    assert table(reports[2:3]) == []
