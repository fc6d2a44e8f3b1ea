# SPDX-License-Identifier: MIT
"""The debug kernel as it is made, and the faults made in it. It runs by make test-vm-debug."""

import os
from pathlib import Path

import pytest

from vm import debug, faults

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


def test_a_configuration_that_a_kernel_does_not_take() -> None:
    wanted = "# why\nCONFIG_KASAN=y\nCONFIG_NR_CPUS=8\nCONFIG_EXPERT=n\nCONFIG_NONE=n\n"
    got = "CONFIG_KASAN=y\nCONFIG_NR_CPUS=8\n# CONFIG_EXPERT is not set\n"
    assert debug.unmet(wanted, got) == []
    assert debug.unmet(wanted, got.replace("KASAN=y", "KASAN=m")) == ["CONFIG_KASAN=y"]
    assert debug.unmet(wanted, got + "CONFIG_EXPERT=y\n") == ["CONFIG_EXPERT=n"]


def test_what_modules_are_built_with_stays(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in (
        *("Makefile", "Module.symvers", ".config", "arch/x86/Makefile", "arch/x86/kernel/x.c"),
        *("include/linux/x.h", "scripts/mod/modpost", "scripts/mod/modpost.c"),
        *("scripts/module.lds", "tools/objtool/objtool", "tools/objtool/check.o", "net/x.c"),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    debug.keep(tree, tmp_path / "headers")
    kept = {
        str(path.relative_to(tmp_path / "headers"))
        for path in (tmp_path / "headers").rglob("*")
        if path.is_file()
    }
    assert kept == {
        *("Makefile", "Module.symvers", ".config", "arch/x86/Makefile", "include/linux/x.h"),
        *("scripts/mod/modpost", "scripts/module.lds", "tools/objtool/objtool"),
    }


def test_every_fault_is_one_that_can_be_reported() -> None:
    """And each that the module knows is tried, lockdep's first: it then turns itself off."""
    source = faults.SOURCE.read_text()
    names = [line.split('"')[1] for line in source.splitlines() if line.startswith('\t{ "')]
    assert sorted(names) == sorted(faults.REPORTED)
    assert list(faults.REPORTED)[:2] == ["unguarded", "lock-order"]
