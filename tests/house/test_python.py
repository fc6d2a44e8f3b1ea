# SPDX-License-Identifier: MIT
"""The rooms in Python: which way their arrows run, and what their READMEs copy from them.

base <- vm <- topologies <- experiments          bench          install
"""

import ast
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.house.test_house import ROOT, tracked

ROOMS = {
    "base": (),
    "vm": ("base",),
    "topologies": ("base", "vm"),
    "experiments": ("base", "vm", "topologies"),
    "bench": (),
    "install": (),
}


@cache
def modules() -> dict[str, Path]:
    """The rooms' files, by the names that they are imported by."""
    found = {}
    for path in tracked():
        where = path.relative_to(ROOT)
        if path.suffix == ".py" and where.parts[0] in ROOMS:
            found[".".join(where.with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """All that a file names in an import: at its top, in a function, for type checking only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (it.name for it in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: a relative import"
            for it in node.names:
                inner = f"{node.module}.{it.name}"
                yield inner if inner in modules() else node.module


def test_every_room_in_python_is_known() -> None:
    packages = {it.relative_to(ROOT).parts[0] for it in tracked() if it.name == "__init__.py"}
    assert packages - {"tests"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_between_rooms(room: str) -> None:
    for name, path in modules().items():
        if name.split(".")[0] != room:
            continue
        for other in imported(path):
            first = other.split(".")[0]
            assert first not in {"tests", *ROOMS} - {room, *ROOMS[room]}, f"{name} imports {other}"


def test_no_file_reaches_itself() -> None:
    """Whoever reads one can read first what it needs."""
    arrows = {
        name: {other for other in imported(path) if other in modules() and other != name}
        for name, path in modules().items()
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as found:
        pytest.fail(f"a circle: {' -> '.join(reversed(found.args[1]))}")


def test_readme_has_the_parameters_of_a_topology() -> None:
    """Each is written once, where it is declared; the table is made from that."""
    parameters = pytest.importorskip("topologies.parameters")
    told = (ROOT / "topologies" / "README.md").read_text()
    assert f"\n\n{parameters.table()}\n\n" in told, "python -m topologies parameters has another"


def test_bytecode_is_kept_under_make(tmp_path: Path) -> None:
    """In the build directory, whatever make was started with."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-s", "--eval", "what:; @env", f"BUILD={tmp_path}", "what"],
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert told["PYTHONPYCACHEPREFIX"] == f"{tmp_path}/pycache"
    assert "PYTHONDONTWRITEBYTECODE" not in told
