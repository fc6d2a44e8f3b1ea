# SPDX-License-Identifier: MIT
"""An image is built once, whole or not at all: the disk, the kernel, the initial RAM disk."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from base.shell import CommandError, run
from vm import need, shelf
from vm.recipe import EXCLUDED, HERE, Recipe, Sources, cache, recipe

Say = Callable[[str], None]
SPACE_MIB = 3000
DISK_MIB = 2048  # sparse
EPOCH = 1735689600  # of files made here; packages bring their own times
# What the first program needs to reach the disk and the tree, and the port for the agent.
MODULES = ("virtio_pci", "virtio_blk", "ext4", "9p", "9pnet_virtio", "overlay", "virtio_console")
BUSYBOX = "bin/busybox"
UUID = "7f3c0a52-6d1e-4c0b-9a53-5e0d3f6b2a11"  # of the file systems


@dataclass(frozen=True)
class Image:
    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def release(self) -> str:
        """The kernel's, as uname tells it."""
        return (self.folder / "release").read_text().strip()


def image(say: Say, wanted: Recipe | None = None) -> Image:
    """The image of the recipe, built if it is not there."""
    wanted = wanted or recipe()
    found = Image(cache() / wanted.name)
    if found.folder.is_dir():
        return found
    need.root("making an image")
    need.programs(need.TO_BUILD)
    cache().mkdir(parents=True, exist_ok=True)
    with shelf.alone(cache()):
        if not found.folder.is_dir():
            kind = shelf.SERVICES if wanted.kind else shelf.GUESTS
            shelf.make_room(kind, found.folder, say)
            _build(wanted, found.folder, say)
    return found


def _build(wanted: Recipe, folder: Path, say: Say) -> None:
    need.space(folder.parent, SPACE_MIB)
    begun = time.monotonic()
    say(f"making a guest's image from {len(wanted.packages)} packages of {wanted.sources.suite}")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as scratch:
        tree, fresh = Path(scratch) / "root", Path(scratch) / "image"
        fresh.mkdir()
        bootstrap(tree, wanted.packages, wanted.sources, Path(scratch))
        say(f"packages are installed after {time.monotonic() - begun:.0f} s")
        release = kernel_of(tree)
        (fresh / "release").write_text(release + "\n")
        shutil.copy2(tree / "boot" / f"vmlinuz-{release}", fresh / "vmlinuz")
        initial(tree, release, fresh / "initrd")
        shutil.rmtree(tree / "boot")
        (tree / "boot").mkdir()
        disk(tree, fresh / "disk.img", DISK_MIB)
        fresh.chmod(0o755)
        fresh.rename(folder)
    say(f"the image was made in {time.monotonic() - begun:.0f} s: {folder}")


def bootstrap(
    tree: Path, packages: Sequence[str], sources: Sources, scratch: Path, *more: str
) -> None:
    """Debian in a folder. mmdebstrap's last words become the error."""
    given = []
    for name, text in (("list", sources.lines), ("sources", sources.stanzas)):
        if text:
            path = scratch / f"apt.{name}"
            path.write_text(text + "\n")
            given.append(str(path))
    argv = [
        *("mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory"),
        *("--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Retries 3"),
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED),
        *(f"--include={name}" for name in packages),
        *more,
        *(sources.suite, str(tree), *given),
    ]
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    done = subprocess.run(
        argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "Err:"))]
        why = "; ".join(lines[:3]) or done.stderr.strip()[-300:]
        raise need.GuestError(f"no packages: mmdebstrap failed: {why}")


def kernel_of(tree: Path) -> str:
    (modules,) = (tree / "lib" / "modules").iterdir()
    return modules.name


def module_paths(tree: Path, release: str, names: Sequence[str]) -> list[Path]:
    """Files of modules with what they depend on, in the order in which to load them."""
    found: dict[Path, None] = {}
    for name in names:
        text = run(["modprobe", "-d", tree, "-S", release, "--show-depends", name])
        for line in text.splitlines():
            if line.startswith("insmod "):
                found[Path(line.split()[1])] = None
    # Some need a checksum by name, which modprobe would find by an alias.
    return sorted(found, key=lambda path: "crc32c" not in path.name)


def initial(tree: Path, release: str, target: Path) -> None:
    """The initial RAM disk: busybox, a dozen modules, init."""
    paths = module_paths(tree, release, ("crc32c_generic", *MODULES))
    names = [f"/lib/{path.name}" for path in paths]
    with target.open("wb") as out:
        writer = Cpio(out.write)
        for folder in ("bin", "dev", "proc", "sys", "disk", "lib"):
            writer.add(folder, 0o040755, b"")
        writer.add(BUSYBOX, 0o100755, (tree / BUSYBOX).read_bytes())
        writer.add("init", 0o100755, (HERE / "guest" / "init").read_bytes())
        for name, path in zip(names, paths, strict=True):
            writer.add(name[1:], 0o100644, path.read_bytes())
        writer.add("modules", 0o100644, "\n".join(names).encode() + b"\n")
        writer.end()


class Cpio:
    """An archive in the format that the kernel unpacks, without this machine's times or owners."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._count = 0

    def add(self, name: str, mode: int, data: bytes) -> None:
        self._count += 1
        path = name.encode() + b"\0"
        fields = (self._count, mode, 0, 0, 1, EPOCH, len(data), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % value for value in fields) + path
        self._write(head + bytes(-len(head) % 4))
        self._write(data + bytes(-len(data) % 4))

    def end(self) -> None:
        self.add("TRAILER!!!", 0, b"")


def disk(tree: Path, target: Path, mib: int, extended: Sequence[str] = (), size: str = "") -> None:
    """The folder as a file system, without mounting anything; `size` where it is not all."""
    with target.open("wb") as out:
        out.truncate(mib << 20)
    try:
        run(
            [
                *("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0"),
                *("-U", UUID, "-E", ",".join((f"hash_seed={UUID},lazy_itable_init=0", *extended))),
                *("-d", tree, target, *([size] if size else [])),
            ],
            seconds=300,
        )
    except CommandError as why:
        raise need.GuestError(f"no disk: {why}") from None
