# SPDX-License-Identifier: MIT
"""Each file's tests are dealt out over the run, long ones over its first half; one worker runs
those that measure, and those that share a fixture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import order

ROOT = Path(__file__).parents[2]


def test_modules_that_are_named_are_there() -> None:
    for name in (*order.MEASURING, *order.LONGEST, *order.SHARING):
        assert (ROOT / name).is_file()


def test_who_has_a_fixture_for_its_module_is_named() -> None:
    scope = 'scope="' + 'module"'
    modules = [path for top in ("tests", "bench") for path in (ROOT / top).rglob("test_*.py")]
    found = {str(path.relative_to(ROOT)) for path in modules if scope in path.read_text()}
    assert found == set(order.SHARING)


def test_files_are_dealt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "MEASURING", ("m.py",))
    monkeypatch.setattr(order, "LONGEST", ("long.py",))
    monkeypatch.setattr(order, "SHARING", ("one.py", "two.py"))
    files = {"a.py": 4, "b.py": 1, "long.py": 2, "m.py": 2, "one.py": 2, "two.py": 1}
    nodeids = [f"{name}::test_{n}" for name, count in files.items() for n in range(count)]
    found = dict(zip(nodeids, order.places(nodeids), strict=True))
    assert [found[f"a.py::test_{n}"] for n in range(4)] == [0.125, 0.375, 0.625, 0.875]
    assert found["b.py::test_0"] == 0.5, "one alone is in the middle"
    assert [found[f"long.py::test_{n}"] for n in range(2)] == [0.125, 0.375]
    assert found["m.py::test_0"] == found["m.py::test_1"] == 0
    assert found["one.py::test_0"] == found["one.py::test_1"] == 0.25
    assert found["two.py::test_0"] == 0.75


TRIED = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    with Path(os.environ["WHO"]).open("a") as who:
        who.write(f"{Path(__file__).stem} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""
CONFTEST = """
import os, sys
sys.path.insert(0, os.environ["ROOT"])
from tests import order
from tests.conftest import pytest_collection_modifyitems, pytest_xdist_make_scheduler
order.LONGEST, order.MEASURING, order.SHARING = (), ("test_c.py",), ("test_b.py", "test_c.py")
"""


def test_workers_take_them_so(tmp_path: Path) -> None:
    """Of three modules the last measures, and two share a fixture."""
    pytest.importorskip("xdist")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(TRIED)
    who = tmp_path / "who"
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", tmp_path]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        argv,
        env={**environ, "WHO": str(who), "ROOT": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    ran = [line.split() for line in who.read_text().splitlines()]
    assert len(ran) == 12
    firsts = {worker: module for module, worker in reversed(ran)}
    assert "test_c" in firsts.values(), "what measures is begun at once"
    for name in ("test_b", "test_c"):
        assert len({worker for module, worker in ran if module == name}) == 1
    assert len({worker for _, worker in ran}) == 2
