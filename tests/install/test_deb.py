# SPDX-License-Identifier: MIT
"""`make deb`: two packages that lintian has no complaint about, and that leave nothing behind."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from install.__main__ import version
from install.programs import INSTALLED
from tests.install.test_install import BINARIES, OTHERS, TM3BPF, files_in, make
from tests.relay.programs import BUILD, ROOT, binary

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DEB = BUILD / "deb"
SOURCES = {"Kbuild", *(it.name for it in (ROOT / "kmod").glob("*.[ch]"))}
TOOLS = ("dpkg-buildpackage", "dh", "dh_dkms", "clang")
DKMS_PASSES_OVER = 77

# A second root, of which this machine's is the lower half: what is written there is gone with it.
ROOT_OF_ITS_OWN = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/written" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/written,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
"""


def why_no_root_of_its_own(folder: Path) -> str | None:
    if os.geteuid() != 0:
        return "needs root to install packages: sudo make test"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-ec", ROOT_OF_ITS_OWN, "sh", folder],
        capture_output=True,
        text=True,
    )
    return (
        f"no overlay of this machine's files: {tried.stderr.strip()}" if tried.returncode else None
    )


@pytest.fixture(scope="module")
def packages() -> dict[str, Path]:
    missing = [it for it in TOOLS if not shutil.which(it)]
    if missing:
        pytest.skip(f"no {missing[0]} on this machine: make setup LISTS=install/packages.debian")
    make("deb", seconds=500)
    found = {it.name.partition("_")[0]: it for it in DEB.glob("*.deb")}
    assert {"tm3-proxies", "tm3-dkms"} <= found.keys()
    return found


def dpkg_deb(*words: str | Path) -> str:
    return subprocess.run(["dpkg-deb", *words], capture_output=True, text=True, check=True).stdout


def unpacked(package: Path, folder: Path) -> set[str]:
    dpkg_deb("-x", package, folder)
    return files_in(folder)


def test_version_stands_in_one_place(packages: dict[str, Path]) -> None:
    for package in packages.values():
        assert dpkg_deb("-f", package, "Version").strip() == version()


def test_proxies_are_all_in_one(packages: dict[str, Path], tmp_path: Path) -> None:
    there = unpacked(packages["tm3-proxies"], tmp_path)
    told = {it for it in there if it.startswith("usr/share/doc/")}
    units = {it for it in there if "/systemd/" in it}
    assert {Path(it).name for it in units} == {"tm3-rp.service", "tm3-lp.service"}
    for unit in units:
        assert "\nExecStart=/usr/bin/tm3-" in (tmp_path / unit).read_text()
    wanted = {
        it.replace("site-functions", "vendor-completions") + (".gz" if "/man/" in it else "")
        for it in BINARIES | OTHERS | {TM3BPF}
        if "/doc/" not in it and "/systemd/" not in it
    }
    assert there - told - units == {f"usr/{it}" for it in wanted}
    examples = {Path(it).name for it in told if "/examples/" in it}
    assert examples == {"rp.conf", "lp.conf", "60-tm3.conf"}
    assert {"usr/share/doc/tm3-proxies/copyright"} <= told
    assert (tmp_path / "etc" / "tm3").is_dir()
    for name in ("tm3-rp", "tm3-lp"):
        done = subprocess.run([tmp_path / "usr/bin" / name, "--version"], capture_output=True)
        assert done.stdout.decode() == f"{INSTALLED[name].called} (TM3) {version()}\n"
        packaged = INSTALLED[name].told(tmp_path / "usr/bin" / name)
        built = INSTALLED[name].told(binary(INSTALLED[name].called, asan=False))
        assert packaged == built, "a library that the tree is built with was not there"


def test_dkms_has_the_module_s_source(packages: dict[str, Path], tmp_path: Path) -> None:
    there = unpacked(packages["tm3-dkms"], tmp_path)
    folder = f"usr/src/tm3-{version()}"
    sources = {it for it in there if not it.startswith("usr/share/doc/")}
    assert sources == {f"{folder}/{it}" for it in SOURCES | {"dkms.conf"}}
    for name in SOURCES:
        assert (tmp_path / folder / name).read_bytes() == (ROOT / "kmod" / name).read_bytes()
    conf = (tmp_path / folder / "dkms.conf").read_text()
    assert f'PACKAGE_VERSION="{version()}"' in conf and "#MODULE_VERSION#" not in conf
    assert "dkms" in dpkg_deb("-f", packages["tm3-dkms"], "Depends")


def test_dkms_passes_over_kernels_older_than_6_1(packages: dict[str, Path], tmp_path: Path) -> None:
    """It would try each whose headers are there, and the package would not be configured."""
    if os.geteuid() or not shutil.which("dkms"):
        pytest.skip("needs root, and dkms: make setup LISTS=install/packages.debian")
    unpacked(packages["tm3-dkms"], tmp_path / "files")
    (tmp_path / "tree").mkdir()
    folders = ["--sourcetree", tmp_path / "files/usr/src", "--dkmstree", tmp_path / "tree"]

    def says(release: str) -> tuple[bool, str]:
        """Whether it passes over that kernel, none of whose headers are here."""
        argv = ["dkms", "build", "-m", "tm3", "-v", version(), "-k", release, *folders]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        return done.returncode == DKMS_PASSES_OVER, done.stdout + done.stderr

    for release in ("4.19.0-27-amd64", "5.10.0-30-amd64", "5.15.0-1-generic", "6.0.19"):
        passes, said = says(release)
        assert passes and "BUILD_EXCLUSIVE" in said, said
    for release in ("6.1.0-none", "6.12.9-none", "7.3.0-none", "10.1.0-none"):
        passes, said = says(release)
        assert not passes and "kernel headers" in said, said


def test_lintian_has_no_complaint(packages: dict[str, Path]) -> None:
    if not shutil.which("lintian"):
        pytest.skip("no lintian on this machine: make setup LISTS=install/packages.debian")
    changes = next(DEB.glob("*.changes"))
    argv = ["lintian", "--allow-root", "--fail-on", "error,warning", changes]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_installed_and_removed(packages: dict[str, Path], tmp_path: Path) -> None:
    """In a root of its own, with this machine's packages and headers, for which tm3.ko is built."""
    why = why_no_root_of_its_own(tmp_path)
    if why:
        pytest.skip(why)
    if not shutil.which("dkms"):
        pytest.skip("no dkms on this machine: make setup LISTS=install/packages.debian")
    script = f"""{ROOT_OF_ITS_OWN}
        inside() {{ chroot "$1/root" /bin/sh -ec "$2"; }}
        cp {packages["tm3-proxies"]} {packages["tm3-dkms"]} "$1/root"
        inside "$1" 'dpkg -i /*.deb; rm /*.deb' >&2
        inside "$1" 'tm3-rp --config /usr/share/doc/tm3-proxies/examples/rp.conf --check
            tm3ctl --bpf --help | head -n 1
            find /etc/systemd /lib/modules -name "tm3*"
            dkms status tm3'
        inside "$1" 'dpkg -P tm3-dkms tm3-proxies' >&2
        echo left: $(find "$1/written" -name "*tm3*" ! -type c)
    """
    argv = ["unshare", "-m", "sh", "-ec", script, "sh", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, *others, left = done.stdout.splitlines()
    assert first == "rp: all is right"
    assert second.startswith("Usage: tm3ctl --bpf")
    assert left == "left:", left
    modules = [it for it in others if it.startswith("/lib/modules/")]
    status = [it for it in others if it.startswith(f"tm3/{version()}, ")]
    kernels = [it for it in Path("/lib/modules").glob("*/build") if (it / "Makefile").exists()]
    if kernels:
        assert modules and all(it.endswith("/updates/dkms/tm3.ko") for it in modules), others
        assert status and all(re.search(r", \w+: installed$", it) for it in status), others
    assert set(others) == {*modules, *status}, "a service was enabled, or DKMS said more"
