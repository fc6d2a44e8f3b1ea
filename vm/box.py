# SPDX-License-Identifier: MIT
"""The box for Vagrant, made here: the whole lab's packages, nothing to be fetched later.

A tar of metadata.json and box.img, a qcow2 disk that boots by itself. Root, the loop device or a
mount are not needed to make the disk: the file system is written from a folder, GRUB's two
files are copied to where its installer would put them.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from base.shell import CommandError, run
from vm import image, need, shelf
from vm.image import Say
from vm.recipe import HERE, ROOT, Recipe, cache, codename, kernel_version, names_in, sources

NAME = "tm3.box"
DISK_MIB = 8192  # sparse
FIRST_MIB = 1  # where the file system begins; GRUB lies before it
SPACE_MIB = 9000
UUID = image.UUID
GRUB = "usr/lib/grub/i386-pc"
GRUB_MODULES = ("biosdisk", "part_msdos", "ext2", "linux", "normal", "echo")
SECTOR = 512
BOOT_CODE = 440  # bytes of the first sector that are not the partition table
# What an initial RAM disk with everything would take half a minute to unpack.
INITRAMFS = ("virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "ahci", "ext4")
BOX_TOOLS = ("mmdebstrap", "mke2fs", "sfdisk", "qemu-img")


def packages() -> tuple[str, ...]:
    """Of alternatives the first that apt has."""
    lists = (ROOT / ".ci" / "packages.debian", HERE / "lab.debian", HERE / "box.debian")
    lines = [line for path in lists for line in names_in(path)]
    words = {word.strip() for line in lines for word in line.split("|")}
    told = run(["apt-cache", "madison", *sorted(words)], seconds=120)
    there = {line.partition("|")[0].strip() for line in told.splitlines()}
    return tuple(sorted({_choose(line, there) for line in lines}))


def _choose(line: str, there: set[str]) -> str:
    for name in (word.strip() for word in line.split("|")):
        if name in there:
            return name
    raise need.GuestError(f"no packages: apt knows none of {line}")


def recipe() -> Recipe:
    guest = sorted((HERE / "box-files").rglob("*"))
    code = (HERE / name for name in ("box.py", "image.py", "vagrant.pub"))
    parts = [*code, ROOT / ".ci" / "requirements.txt", *guest]
    return Recipe(
        packages=packages(),
        sources=sources(codename()),
        kernel=kernel_version(),
        code=b"\0".join(path.read_bytes() for path in parts if path.is_file()),
    )


def box(say: Say) -> Path:
    """The box of the recipe, made if it is not there."""
    need.root("making a box")
    need.programs(BOX_TOOLS)
    wanted = recipe()
    folder = cache() / f"box-{wanted.name}"
    cache().mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        with shelf.alone(cache()):
            if not folder.is_dir():
                shelf.make_room(shelf.BOXES, folder, say)
                _make(wanted, folder, say)
    return folder / NAME


def _make(wanted: Recipe, folder: Path, say: Say) -> None:
    need.space(folder.parent, SPACE_MIB)
    begun = time.monotonic()
    say(f"making the box from {len(wanted.packages)} packages of {wanted.sources.suite}")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as name:
        scratch, tree = Path(name), Path(name) / "root"
        fresh = scratch / "box"
        fresh.mkdir()
        _install(tree, wanted, scratch)
        say(f"packages are installed after {time.monotonic() - begun:.0f} s")
        _wheels(tree)
        _settle(tree)
        _pack(_disk(tree, scratch), fresh / NAME, scratch)
        fresh.chmod(0o755)
        fresh.rename(folder)
    say(f"the box was made in {time.monotonic() - begun:.0f} s: {folder / NAME}")


def _install(tree: Path, wanted: Recipe, scratch: Path) -> None:
    modules = scratch / "modules"
    modules.write_text("\n".join(INITRAMFS) + "\n")
    conf = scratch / "tm3.conf"
    conf.write_text("MODULES=list\n")
    image.bootstrap(
        tree,
        wanted.packages,
        wanted.sources,
        scratch,
        "--essential-hook=mkdir -p $1/etc/initramfs-tools/conf.d",
        f"--essential-hook=copy-in {modules} /etc/initramfs-tools",
        f"--essential-hook=copy-in {conf} /etc/initramfs-tools/conf.d",
    )


def _wheels(tree: Path) -> None:
    """Python's packages too: `make setup` in the box needs no network."""
    wheels = tree / "usr/share/tm3/wheels"
    wheels.mkdir(parents=True)
    argv = ["/usr/bin/python3", "-m", "pip", "download", "-q", "--no-input", "--only-binary=:all:"]
    argv += ["--disable-pip-version-check", "-d", str(wheels)]
    argv += ["-r", str(ROOT / ".ci" / "requirements.txt")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise need.GuestError(f"no Python packages: {done.stderr.strip().splitlines()[-1]}")
    (tree / "etc/pip.conf").write_text(
        "[global]\nno-index = true\nfind-links = /usr/share/tm3/wheels\n"
    )


def _settle(tree: Path) -> None:
    """What makes a Debian a box: a user, a key, a network, a boot loader's menu."""
    shutil.copytree(HERE / "box-files", tree, dirs_exist_ok=True, symlinks=True)
    chroot = ["chroot", str(tree)]
    run([*chroot, "useradd", "-m", "-s", "/bin/bash", "-p", "*", "vagrant"])
    home = tree / "home/vagrant"
    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    shutil.copy(HERE / "vagrant.pub", ssh / "authorized_keys")
    (ssh / "authorized_keys").chmod(0o600)
    run([*chroot, "chown", "-R", "vagrant:vagrant", "/home/vagrant"])
    sudo = tree / "etc/sudoers.d/vagrant"
    sudo.write_text("vagrant ALL=(ALL) NOPASSWD: ALL\n")
    sudo.chmod(0o440)
    (tree / "etc/fstab").write_text(f"UUID={UUID} / ext4 noatime 0 1\n")
    (tree / "etc/hostname").write_text("tm3\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost tm3\n")
    for name in (tree / "etc/ssh").glob("ssh_host_*"):  # each machine makes its own
        name.unlink()
    for unit in ("nginx", "openvswitch-switch"):
        verb = "disable" if unit == "nginx" else "enable"
        run([*chroot, "systemctl", verb, unit])
    run([*chroot, "systemctl", "enable", "tm3-keys.service"])
    release = image.kernel_of(tree)
    (tree / "boot/grub").mkdir(exist_ok=True)
    (tree / "boot/grub/grub.cfg").write_text(
        f"linux /boot/vmlinuz-{release} root=UUID={UUID} ro quiet net.ifnames=0 tsc=reliable\n"
        f"initrd /boot/initrd.img-{release}\nboot\n"
    )


def _disk(tree: Path, scratch: Path) -> Path:
    """A disk with one partition, and GRUB before it."""
    core, raw = tree / "core.img", scratch / "disk.raw"
    run(
        [
            *("chroot", tree, "grub-mkimage", "-O", "i386-pc", "-o", "/core.img"),
            *("-p", "(hd0,msdos1)/boot/grub", *GRUB_MODULES),
        ]
    )
    loader, code = core.read_bytes(), (tree / GRUB / "boot.img").read_bytes()
    core.unlink()
    if len(loader) > (FIRST_MIB << 20) - SECTOR:
        raise need.GuestError(f"no box: GRUB takes {len(loader)} bytes")
    offset = f"offset={FIRST_MIB << 20}"
    size = f"{DISK_MIB - FIRST_MIB - 1}M"
    image.disk(tree, raw, DISK_MIB, [offset], size)
    table = f"label: dos\nstart={FIRST_MIB}MiB, size={size}iB, type=83, bootable\n"
    run(["sfdisk", "-q", "--no-reread", "--no-tell-kernel", raw], stdin=table)
    with raw.open("r+b") as out:
        out.write(code[:BOOT_CODE])
        out.seek(SECTOR)
        out.write(loader)
    return raw


def _pack(raw: Path, target: Path, scratch: Path) -> None:
    disk = scratch / "box.img"
    try:
        run(["qemu-img", "convert", "-O", "qcow2", raw, disk], seconds=600)
    except CommandError as why:
        raise need.GuestError(f"no box: {why}") from None
    meta = scratch / "metadata.json"
    meta.write_text(
        json.dumps({"provider": "libvirt", "format": "qcow2", "virtual_size": DISK_MIB >> 10})
    )
    with tarfile.open(target, "w") as out:
        out.add(meta, "metadata.json")
        out.add(disk, "box.img")


if __name__ == "__main__":
    print(box(lambda text: print(f"vm: {text}", file=sys.stderr, flush=True)))
