# SPDX-License-Identifier: MIT
"""The guest's kernel with every check that finds what a test cannot see: built here, once.

From the source of the kernel that the guest runs otherwise (Debian's linux-source), configured by
debug.config. What is built for it later, tm3.ko, needs headers and scripts: the rest goes.
"""

import os
import re
import shutil
from pathlib import Path

from base.shell import CommandError, run
from vm import need
from vm.image import Say
from vm.recipe import HERE, kernel_version

CONFIG = HERE / "debug.config"
PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "xz")
SPACE_MIB = 5000
BUILD_S = 2 * 3600.0
# What modules are built with.
KEPT = ("Makefile", "Module.symvers", ".config", "arch/x86", "include", "scripts", "tools/objtool")
SOURCES = (".c", ".o", ".a", ".S", ".cmd", ".rst", ".dts", ".lds")


def source() -> str:
    """The package with the source of the guest's own kernel."""
    found = re.match(r"\d+\.\d+", kernel_version())
    assert found, kernel_version()
    return f"linux-source-{found[0]}"


def made_of() -> tuple[str, ...]:
    """Another one of these is another kernel."""
    compiler = run(["gcc", "--version"]).splitlines()[0]
    return source(), kernel_version(), compiler, CONFIG.read_text()


def build(scratch: Path, fresh: Path, say: Say) -> Path:
    """The kernel's modules and `headers` in `fresh`; the kernel itself is what it returns."""
    need.programs(PROGRAMS)
    need.space(scratch, SPACE_MIB)
    tree = unpacked(scratch)
    configure(tree)
    jobs = f"-j{os.cpu_count() or 1}"
    say(f"building {tree.name} {kernel_version()}, once: 20 minutes of processor time")
    make(tree, jobs, "bzImage", "modules")
    make(tree, f"INSTALL_MOD_PATH={fresh}", "modules_install")
    (modules,) = (fresh / "lib/modules").iterdir()
    for name in ("build", "source"):
        (modules / name).unlink(missing_ok=True)
    kernel = shutil.copy2(tree / "arch/x86/boot/bzImage", scratch / "bzImage")
    keep(tree, fresh / "headers")
    return kernel


def unpacked(scratch: Path) -> Path:
    name = source()
    # Into the folder in which it is run.
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name]
    run(["env", "-C", scratch, *apt], seconds=600)
    (package,) = scratch.glob(f"{name}_*.deb")
    run(["dpkg-deb", "-x", package, scratch / "package"], seconds=300)
    archive = scratch / "package/usr/src" / f"{name}.tar.xz"
    run(["tar", "-C", scratch, "-xf", archive], seconds=600)
    return scratch / name


def configure(tree: Path) -> None:
    """A line of debug.config that the kernel does not take is an error."""
    make(tree, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig")
    wrong = unmet(CONFIG.read_text(), (tree / ".config").read_text())
    if wrong:
        raise need.GuestError(f"this kernel does not take {', '.join(wrong)}")


def unmet(wanted: str, got: str) -> list[str]:
    """Lines of the one that are not so in the other."""
    lines = set(got.splitlines())
    names = {line.partition("=")[0] for line in lines if line.startswith("CONFIG_")}
    return [
        line
        for line in wanted.splitlines()
        if line.startswith("CONFIG_")
        and (line.removesuffix("=n") in names if line.endswith("=n") else line not in lines)
    ]


def make(tree: Path, *words: str) -> None:
    try:
        run(["make", "-s", "-C", tree, *words], seconds=BUILD_S)
    except CommandError as why:
        raise need.GuestError(f"the debug kernel cannot be built: {why}") from None


def keep(tree: Path, into: Path) -> None:
    """What modules are built with, without what the kernel itself was built from."""
    for name in KEPT:
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (tree / name).rename(target)
    lds = into / "scripts/module.lds"
    for path in into.rglob("*"):
        if path.suffix in SOURCES and path != lds and path.is_file():
            path.unlink()
