# SPDX-License-Identifier: MIT
"""The guest under another kernel than its image's.

    backports   the newest that there are packages of for this Debian
    debug       the image's own with the kernel's checks on, built here (vm/debug.py)

It has a folder beside the images, kernel-NAME-HASH, in which it is made once. The hash is that of
what it is made of, so that whoever runs one never finds another in its place:

    vmlinuz, initrd, release   as in an image
    lib/modules/               what the guest has at that path
    headers                    what modules are built with, or a link to it
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from base.shell import CommandError, run
from base.sources import ROOT
from vm import debug, image, need, shelf
from vm.image import Image, Say
from vm.kernels import Archive, mirror, ours
from vm.recipe import EXCLUDED, cache, codename, kernel_home

SPACE_MIB = 1500
BUSYBOX = Path("/bin/busybox")  # of busybox-static
COMPRESSED = ".xz"
# What makes the folder, and is in its initial RAM disk.
CODE = ("kernel.py", "image.py", "guest/init")
# Where the kernel is, made in the scratch folder if it is not there.
Make = Callable[[Path, Say], Path]


@dataclass(frozen=True)
class UnderKernel(Image):
    """The image's disk, and a kernel from elsewhere."""

    home: Path

    @property
    def kernel(self) -> Path:
        return self.home / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.home / "initrd"

    @property
    def release(self) -> str:
        return (self.home / "release").read_text().strip()

    @property
    def modules(self) -> Path:
        return self.home / "lib/modules" / self.release

    def tm3(self, out: Path) -> Path:
        """tm3.ko, built for this kernel."""
        argv = ["make", "-s", "-C", ROOT / "kmod", f"KDIR={self.home / 'headers'}", f"OUT={out}"]
        try:
            run(argv, seconds=600)
        except CommandError as why:
            raise need.GuestError(f"tm3.ko cannot be built for it: {why}") from None
        return out / "tm3.ko"


def under(found: Image, name: str, say: Say) -> UnderKernel:
    """The image under that kernel, which is made if it is not there."""
    need.root("making a kernel's folder")
    need.programs((*need.TO_BUILD, "xz", "depmod"))
    return UnderKernel(found.folder, made(name, MAKERS[name], say))


def made(name: str, make: Make, say: Say) -> Path:
    """The folder of the kernel. Those that it takes the place of go, unless somebody uses them."""
    cache().mkdir(parents=True, exist_ok=True)
    with shelf.alone(cache()):
        with tempfile.TemporaryDirectory(dir=cache(), prefix=".new-") as scratch:
            home = make(Path(scratch), say)
        shelf.make_room(shelf.kernels(name), home, say)
    return home


def _backports(scratch: Path, say: Say) -> Path:
    suite = codename()
    archive = Archive(mirror(suite), f"{suite}-backports", scratch / "apt")
    package, *headers = archive.image(), *archive.headers()
    home = kernel_home("backports", (package, archive.version(package), *headers), CODE)
    if home.is_dir():
        return home
    need.space(scratch, SPACE_MIB)
    begun = time.monotonic()
    say(f"fetching {package}")
    fresh = scratch / "fresh"
    fresh.mkdir()
    archive.unpack([package], fresh)
    prune(fresh)
    bootable(fresh, fresh / "boot" / f"vmlinuz-{image.kernel_of(fresh)}")
    ours(archive, fresh, home)
    (found,) = (fresh / "usr/src").glob("linux-headers-*-amd64")
    (fresh / "headers").symlink_to(f"usr/src/{found.name}")
    fresh.rename(home)
    say(f"fetched in {time.monotonic() - begun:.0f} s: {home}")
    return home


def _debug(scratch: Path, say: Say) -> Path:
    home = kernel_home("debug", debug.made_of(), CODE)
    if home.is_dir():
        return home
    begun = time.monotonic()
    fresh = scratch / "fresh"
    fresh.mkdir()
    bootable(fresh, debug.build(scratch, fresh, say))
    fresh.rename(home)
    say(f"built in {time.monotonic() - begun:.0f} s: {home}")
    return home


def prune(tree: Path) -> None:
    """Drivers that the guest has no use for."""
    for pattern in EXCLUDED:
        for path in tree.glob(pattern.lstrip("/").removesuffix("/*")):
            shutil.rmtree(path)


def bootable(tree: Path, vmlinuz: Path) -> None:
    """From modules in `tree`, and a kernel, what qemu is given."""
    release = image.kernel_of(tree)
    (tree / "release").write_text(release + "\n")
    shutil.copy2(vmlinuz, tree / "vmlinuz")
    (tree / "bin").mkdir(exist_ok=True)
    shutil.copy2(BUSYBOX, tree / image.BUSYBOX)
    run(["depmod", "-b", tree, release], seconds=120)
    # The first program of the guest cannot unpack them.
    needed = image.module_paths(tree, release, ("crc32c_generic", *image.MODULES))
    packed = [path for path in needed if path.suffix == COMPRESSED]
    if packed:
        run(["xz", "-d", *packed], seconds=120)
        run(["depmod", "-b", tree, release], seconds=120)
    image.initial(tree, release, tree / "initrd")


MAKERS: dict[str, Make] = {"backports": _backports, "debug": _debug}
