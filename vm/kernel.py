# SPDX-License-Identifier: MIT
"""The guest under another kernel than its image's.

    backports   the newest that there are packages of for this Debian
    debug       the image's own with the kernel's checks on, built here (vm/debug.py)

It has a folder beside the images, kernel-NAME, in which it is made once:

    vmlinuz, initrd, release   as in an image
    lib/modules/               what the guest has at that path
    headers                    what modules are built with, or a link to it
    made                       what the folder was made of; there only when all of it is
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
from vm.recipe import EXCLUDED, cache, codename

SPACE_MIB = 1500
BUSYBOX = Path("/bin/busybox")  # of busybox-static
COMPRESSED = ".xz"


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
    home = cache() / f"kernel-{name}"
    home.mkdir(parents=True, exist_ok=True)
    with shelf.alone(home), shelf.in_use(home):
        MAKERS[name](home, say)
    return UnderKernel(found.folder, home)


def is_made(home: Path, wanted: str) -> bool:
    made = home / "made"
    return made.is_file() and made.read_text() == wanted


def _backports(home: Path, say: Say) -> None:
    suite = codename()
    with tempfile.TemporaryDirectory(dir=home, prefix=".new-") as name:
        archive = Archive(mirror(suite), f"{suite}-backports", Path(name) / "apt")
        package, *headers = archive.image(), *archive.headers()
        wanted = "\n".join((package, *headers, ""))
        if is_made(home, wanted):
            return
        need.space(home, SPACE_MIB)
        begun = time.monotonic()
        say(f"fetching {package}")
        fresh = Path(name) / "fresh"
        fresh.mkdir()
        archive.unpack([package], fresh)
        prune(fresh)
        bootable(fresh, fresh / "boot" / f"vmlinuz-{image.kernel_of(fresh)}")
        ours(archive, fresh, home)
        (found,) = (fresh / "usr/src").glob("linux-headers-*-amd64")
        (fresh / "headers").symlink_to(f"usr/src/{found.name}")
        replace(home, fresh, wanted)
    say(f"fetched in {time.monotonic() - begun:.0f} s: {home}")


def _debug(home: Path, say: Say) -> None:
    wanted = debug.made_of()
    if is_made(home, wanted):
        return
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=home, prefix=".new-") as name:
        fresh = Path(name) / "fresh"
        fresh.mkdir()
        bootable(fresh, debug.build(Path(name), fresh, say))
        replace(home, fresh, wanted)
    say(f"built in {time.monotonic() - begun:.0f} s: {home}")


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


def replace(home: Path, fresh: Path, wanted: str) -> None:
    made = home / "made"
    made.unlink(missing_ok=True)
    for path in fresh.iterdir():
        old = home / path.name
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
        path.rename(old)
    made.write_text(wanted)


MAKERS: dict[str, Callable[[Path, Say], None]] = {"backports": _backports, "debug": _debug}
