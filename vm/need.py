# SPDX-License-Identifier: MIT
"""What this machine must have before a guest can be made or run, said in one line if it has not."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

# The package that has a program, where it is called otherwise.
PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mke2fs": "e2fsprogs",
    "qemu-system-aarch64": "qemu-system-arm",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "modprobe": "kmod",
    "depmod": "kmod",
    "xz": "xz-utils",
    "setpriv": "util-linux",
    "cpio": "cpio",
    "dpkg-buildpackage": "dpkg-dev",
    "dh": "debhelper",
    "dh_dkms": "dh-dkms",
}
TO_RUN = ("qemu-system-x86_64", "setpriv")
TO_BUILD = ("mmdebstrap", "mke2fs", "modprobe")


class GuestError(RuntimeError):
    """No guest, and why; the first line alone says what to do."""


def programs(names: Sequence[str]) -> None:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        packages = " ".join(PACKAGES.get(name, name) for name in missing)
        raise GuestError(f"no {', '.join(missing)} here: sudo apt-get install {packages}")


def root(what: str) -> None:
    if os.geteuid() != 0:
        raise GuestError(f"{what} needs root: sudo make vm")


def space(folder: Path, mib: int) -> None:
    """`folder` must exist."""
    free = shutil.disk_usage(folder).free >> 20
    if free < mib:
        raise GuestError(f"no space in {folder}: {free} MiB free, {mib} MiB needed")
