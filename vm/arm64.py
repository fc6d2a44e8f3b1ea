# SPDX-License-Identifier: MIT
"""tm3.ko on another architecture: Debian's kernel for arm64, emulated, and one program in it.

The guest of the other groups is amd64 throughout; this one is an initial RAM disk and nothing else:

    /init          vm/arm64.init, run by busybox
    /exercise      vm/arm64.c, which loads the module, makes connections and removes it
    /tm3.ko        built for that kernel, as are the few modules of its own that it needs

What comes from packages lies in a folder kernel-arm64-HASH beside the images (vm/kernel.py).
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from base.pressure import OwnTime
from base.shell import CommandError, run
from base.sources import ROOT
from vm import image, kernel, need, shelf
from vm.image import Say
from vm.kernels import ARM64, Archive, crossed, mirror
from vm.need import GuestError
from vm.recipe import HERE, codename, kernel_home
from vm.watch import REPORT, USUAL

QEMU = "qemu-system-aarch64"
CROSS = "aarch64-linux-gnu-"
PROGRAMS = (QEMU, f"{CROSS}gcc", "setpriv", "depmod", "modprobe")
# What tm3.ko stands on, and an interface.
MODULES = ("crc32c_generic", "nf_nat", "dummy")
CHECKS = ("slub_debug=FZP", "page_poison=1")
SPACE_MIB = 1500
SECONDS = 300.0
LOOK_S = 1.0
WARNING = 4
# In the kernel's log, by vm/arm64.init.
BEGINS = "arm64: it begins"


class NoPackages(GuestError):
    """It cannot be tried here: a skip, with its reason."""


def test(results: Path, say: Say) -> bool:
    """Whether all is well; where it cannot be tried, it says why not."""
    begun = time.monotonic()
    try:
        home = fetched(say)
    except NoPackages as why:
        say(f"arm64: skipped: {why}")
        return True
    console = results / "arm64.console.log"
    with tempfile.TemporaryDirectory(prefix="tm3-arm64-") as name, shelf.in_use(home):
        disk = initial(home, Path(name))
        boot(home, disk, console)
    said = console.read_text(errors="replace")
    for line in re.findall(r"^arm64: (.*?)\r?$", said, re.MULTILINE):
        print(f"vm: arm64: {line}", flush=True)
    wrong = faults(said)
    for line in wrong:
        print(f"vm: arm64: {line}", file=sys.stderr)
    print(f"vm: arm64: took {time.monotonic() - begun:.0f} s", flush=True)
    return not wrong


def fetched(say: Say) -> Path:
    """The folder with what is in packages."""
    try:
        need.programs(PROGRAMS)
        need.root("making a kernel's folder")
        return kernel.made(ARM64, _fetch, say)
    except GuestError as why:
        raise NoPackages(str(why)) from None


def _fetch(scratch: Path, say: Say) -> Path:
    suite = codename()
    archive = Archive(mirror(suite), suite, scratch / "arm64", ARM64)
    tools = Archive(mirror(suite), suite, scratch / "amd64")
    package, *headers = archive.image(), *archive.headers()
    home = kernel_home(ARM64, (package, archive.version(package), *headers), ("arm64.py",))
    if home.is_dir():
        return home
    need.space(scratch, SPACE_MIB)
    begun = time.monotonic()
    say(f"fetching {package} for {ARM64}")
    tree, fresh = scratch / "tree", scratch / "fresh"
    for folder in (tree, fresh / "modules"):
        folder.mkdir(parents=True)
    archive.unpack([package, "busybox-static"], tree)
    release = image.kernel_of(tree)
    run(["depmod", "-b", tree, release], seconds=120)
    paths = image.module_paths(tree, release, MODULES)
    for path in paths:
        shutil.copy(path, fresh / "modules")
    (fresh / "order").write_text("".join(f"{path.name}\n" for path in paths))
    shutil.copy(tree / "boot" / f"vmlinuz-{release}", fresh / "vmlinuz")
    shutil.copy(tree / image.BUSYBOX, fresh / "busybox")
    crossed(archive, tools, fresh, home)
    fresh.rename(home)
    say(f"fetched in {time.monotonic() - begun:.0f} s: {home}")
    return home


def initial(home: Path, scratch: Path) -> Path:
    """The initial RAM disk, with the module and the program as they are in the tree now."""
    (headers,) = (home / "usr/src").glob(f"linux-headers-*-{ARM64}")
    cross = f"KARGS=ARCH={ARM64} CROSS_COMPILE={CROSS}"
    _built(["make", "-s", "-C", ROOT / "kmod", f"KDIR={headers}", f"OUT={scratch}", cross])
    flags = ("-O2", "-static", "-Wall", "-Wextra", "-Werror")
    exercise = scratch / "exercise"
    _built([f"{CROSS}gcc", *flags, "-o", exercise, HERE / "arm64.c"])
    names = (home / "order").read_text().split()
    target = scratch / "initrd"
    with target.open("wb") as out:
        writer = image.Cpio(out.write)
        for folder in ("bin", "dev", "proc", "sys", "lib"):
            writer.add(folder, 0o040755, b"")
        writer.add(image.BUSYBOX, 0o100755, (home / "busybox").read_bytes())
        writer.add("init", 0o100755, (HERE / "arm64.init").read_bytes())
        writer.add("exercise", 0o100755, exercise.read_bytes())
        writer.add("tm3.ko", 0o100644, (scratch / "tm3.ko").read_bytes())
        for name in names:
            writer.add(f"lib/{name}", 0o100644, (home / "modules" / name).read_bytes())
        writer.add("modules", 0o100644, "".join(f"/lib/{name}\n" for name in names).encode())
        writer.end()
    return target


def _built(argv: Sequence[str | Path]) -> None:
    try:
        run(argv, seconds=600)
    except CommandError as why:
        raise GuestError(f"for {ARM64} it cannot be built: {why}") from None


def boot(home: Path, disk: Path, console: Path) -> None:
    """Until it powers itself off; what it said is in `console`."""
    words = ("console=ttyAMA0", "panic=-1", "loglevel=5", *CHECKS)
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--", QEMU, "-M", "virt", "-cpu", "cortex-a72"),
        *("-m", "768", "-smp", "2", "-accel", "tcg,thread=multi", "-nodefaults"),
        *("-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"),
        *("-serial", f"file:{console}", "-kernel", home / "vmlinuz", "-initrd", disk),
        *("-append", " ".join(words)),
    ]
    console.write_bytes(b"")
    clock = OwnTime()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as qemu:
        try:
            while qemu.poll() is None:
                if clock.passed_s() > SECONDS:
                    raise GuestError(f"arm64: not done in {SECONDS:g} s, see {console}")
                time.sleep(LOOK_S)
        finally:
            qemu.kill()
        if qemu.returncode:
            said = qemu.stderr.read().decode(errors="replace").strip() if qemu.stderr else ""
            raise GuestError(f"arm64: qemu ended with {qemu.returncode}: {said}")


def faults(console: str) -> list[str]:
    """What is wrong with a guest that said this."""
    lines = [line.rstrip("\r") for line in console.splitlines()]
    if "arm64: passed" not in lines:
        return ["it did not come to its end:", *lines[-20:]]
    # What was said before the module came is Debian's own.
    _, _, log = console.partition("arm64: the log")[2].partition(BEGINS)
    found = re.findall(r"^<(\d+)>\[[^\]]*\] (.*?)\r?$", log, re.MULTILINE)
    if not found:
        return ["it did not show its kernel's log"]
    return [
        f"the kernel warns: {text}"
        for level, text in found
        if (int(level) & 7 <= WARNING or REPORT.search(text)) and not USUAL.search(text)
    ]
