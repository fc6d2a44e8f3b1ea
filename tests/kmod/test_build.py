# SPDX-License-Identifier: MIT
"""The module builds for every kernel whose headers are here, and no tool has a complaint.

Besides installed ones those that `make kernels` has fetched.
"""

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KMOD = ROOT / "kmod"
KERNELS = Path(os.environ.get("TM3_BUILD") or ROOT / "build") / "kernels"
HEADERS = "usr/src/linux-headers-*-amd64"
SOURCES = sorted([*KMOD.glob("*.c"), *KMOD.glob("*.h"), KMOD / "Kbuild"])
CROSS = "aarch64-linux-gnu-"
COMPLAINT = re.compile(r"(warning|error): |undefined", re.IGNORECASE)
# compat.h compares versions, which the kernel's own tree must not; the words of the parameters are
# those of the course's script.
CHECKPATCH_IGNORES = {
    "compat.h": "LINUX_VERSION_CODE,CONSTANT_COMPARISON",
    "main.c": "CAMELCASE",
}


def headers() -> list[Path]:
    """Of kernels of which a module can be built here: Debian's, and the one that runs."""
    found = [*Path("/usr/src").glob("linux-headers-*"), *KERNELS.glob(f"*/{HEADERS}")]
    running = Path(f"/lib/modules/{os.uname().release}/build").resolve()
    kept = {path for path in (*found, running) if (path / ".config").exists()}
    return sorted(path for path in kept if folder_of(path) is None)


def headers_elsewhere() -> list[Path]:
    """Of kernels that need a newer compiler, each in a folder with one."""
    return sorted(path for path in KERNELS.glob(f"*/{HEADERS}") if folder_of(path))


def folder_of(kernel: Path) -> Path | None:
    root = kernel.parents[2]
    return root if (root / "usr/bin/gcc").exists() and root != Path("/") else None


def build(out: Path, kernel: Path | None, *kernel_args: str) -> str:
    """`make -C kmod`; what it said."""
    argv = ["make", "-C", KMOD, f"OUT={out}", f"KARGS={' '.join(kernel_args)}"]
    if kernel:
        argv.append(f"KDIR={kernel}")
    return finished(argv)


def finished(argv: list[str | Path]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@pytest.fixture(
    scope="module",
    params=headers() or [None],
    ids=lambda path: path.name if path else "none",
)
def kernel(request: pytest.FixtureRequest) -> Path:
    if request.param is None:
        pytest.skip("no kernel headers on this machine: apt-get install linux-headers-amd64")
    return request.param


@dataclass(frozen=True)
class Built:
    module: Path
    said: str


@pytest.fixture(scope="module")
def built(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """With all that the compiler can say and, if there is one here, sparse."""
    out = tmp_path_factory.mktemp("built")
    checked = ["C=2", "CF=-Wno-unknown-attribute"] if shutil.which("sparse") else []
    return Built(out / "tm3.ko", build(out, kernel, "W=1", *checked))


@pytest.mark.timeout(300)
def test_builds_without_a_warning(built: Built) -> None:
    assert not COMPLAINT.search(built.said), built.said
    assert built.module.stat().st_size > 10_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "kernel", headers_elsewhere() or [None], ids=lambda path: path.name if path else "none"
)
def test_builds_without_a_warning_for_kernels_to_come(kernel: Path | None, tmp_path: Path) -> None:
    """In their own Debian, from a copy of the sources."""
    if kernel is None or os.geteuid():
        pytest.skip(
            "headers of the next Debian: sudo make kernels, and root to build in its folder"
        )
    root = folder_of(kernel)
    assert root
    work = root / "tmp" / tmp_path.name
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(KMOD, work / "source")
    there = Path("/") / work.relative_to(root)
    argv = ["chroot", root, "make", "-C", there / "source", f"OUT={there}", "KARGS=W=1"]
    argv += [f"KDIR=/{kernel.relative_to(root)}"]
    said = finished(
        ["unshare", "--mount", "sh", "-c", f'mount -t proc proc {root}/proc && "$@"', "sh", *argv]
    )
    assert not COMPLAINT.search(said), said
    assert (work / "tm3.ko").stat().st_size > 10_000
    shutil.rmtree(work)


@pytest.mark.timeout(300)
def test_builds_without_a_warning_for_arm64(tmp_path: Path) -> None:
    found = sorted(KERNELS.glob("*-arm64/usr/src/linux-headers-*-arm64"))
    if not found or not shutil.which(f"{CROSS}gcc"):
        pytest.skip("headers of arm64 and a cross compiler: sudo make kernels")
    said = build(tmp_path, found[-1], "W=1", "ARCH=arm64", f"CROSS_COMPILE={CROSS}")
    assert not COMPLAINT.search(said), said
    machine = (tmp_path / "tm3.ko").read_bytes()[18:20]  # e_machine of ELF
    assert int.from_bytes(machine, "little") == 183, "not for arm64"


@pytest.mark.timeout(300)
def test_sparse_has_nothing_to_say(built: Built) -> None:
    if not shutil.which("sparse"):
        pytest.skip("no sparse on this machine: apt-get install sparse")
    assert built.said.count("CHECK ") == len(list(KMOD.glob("*.c"))), built.said
    assert not COMPLAINT.search(built.said), built.said


@pytest.mark.timeout(300)
def test_what_the_module_says_of_itself(built: Built) -> None:
    if not shutil.which("modinfo"):
        pytest.skip("no modinfo on this machine: apt-get install kmod")
    done = subprocess.run(["modinfo", built.module], capture_output=True, text=True)
    info = done.stdout
    assert re.search(r"^license:\s+GPL$", info, re.MULTILINE), info
    for name in ("remoteProxyIP", "fwdInterface", "portList", "localPort"):
        assert re.search(rf"^parm:\s+{name}:.*\(charp\)$", info, re.MULTILINE), info
    depends = re.search(r"^depends:\s+(\S*)$", info, re.MULTILINE)
    assert depends and set(depends[1].split(",")) == {"nf_nat", "nf_conntrack"}, info


@pytest.mark.timeout(300)
def test_make_kmod_leaves_the_module_and_no_trace_in_the_sources(
    kernel: Path, tmp_path: Path
) -> None:
    before = sorted(KMOD.rglob("*"))
    argv = ["make", "-C", ROOT, "kmod", f"BUILD={tmp_path}", f"KDIR={kernel}"]
    first = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    built = (tmp_path / "tm3.ko").stat().st_mtime_ns
    second = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert "CC [M]" in first.stdout and "CC [M]" not in second.stdout, second.stdout
    assert (tmp_path / "tm3.ko").stat().st_mtime_ns == built
    assert sorted(KMOD.rglob("*")) == before


def test_without_headers_it_says_what_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "-s", "-C", KMOD, f"OUT={tmp_path}", f"KDIR={tmp_path}/none"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no kernel headers" in done.stderr and "linux-headers-amd64" in done.stderr


def checkpatch(folder: Path) -> Path | None:
    """The kernel's own, where one is named, fetched, or its source installed."""
    named = os.environ.get("CHECKPATCH")
    if named:
        return Path(named)
    if (KERNELS / "checkpatch/checkpatch.pl").exists():
        return KERNELS / "checkpatch/checkpatch.pl"
    for archive in sorted(Path("/usr/src").glob("linux-source-*.tar.xz"), reverse=True):
        top = archive.name.removesuffix(".tar.xz")
        with tarfile.open(archive) as source:
            for member in source:
                if member.name == f"{top}/scripts/checkpatch.pl":
                    source.extract(member, folder, filter="data")
                    return folder / member.name
    return None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_checkpatch_has_nothing_to_say(tmp_path: Path) -> None:
    script = checkpatch(tmp_path)
    if script is None:
        pytest.skip("no checkpatch.pl: sudo make kernels, or CHECKPATCH=FILE")
    for path in SOURCES:
        argv = ["perl", script, "--no-tree", "--strict", "--terse", "--max-line-length=80"]
        ignores = CHECKPATCH_IGNORES.get(path.name)
        argv += [f"--ignore={ignores}"] if ignores else []
        done = subprocess.run([*argv, "-f", path], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_one_file_knows_the_versions_of_the_kernel() -> None:
    knows = [path.name for path in SOURCES if "VERSION" in path.read_text()]
    assert knows == ["compat.h"]
