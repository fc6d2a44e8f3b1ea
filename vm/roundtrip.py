# SPDX-License-Identifier: MIT
"""`vagrant up`, `vagrant ssh -c`, `vagrant destroy`, with the box made here: python -m vm.roundtrip

A copy of the tree, a Vagrant home and, where none runs, a libvirt of its own: nothing of the
user's is touched. The machine reaches no network but this computer.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from base.shell import CommandError, run, until
from base.sources import ROOT
from vm import accel, need, shelf
from vm.box import box
from vm.image import image
from vm.need import GuestError

NAME = "tm3/lab"
UP_S, SSH_S, DESTROY_S = 2400.0, 120.0, 120.0
SOCKET = Path("/run/libvirt/libvirt-sock")
LOGD = Path("/run/libvirt/virtlogd-sock")
PROGRAMS = ("vagrant", "libvirtd", "virtlogd", "dnsmasq", "rsync", "ssh", "unshare")


def say(text: str) -> None:
    print(f"vagrant: {text}", file=sys.stderr, flush=True)


@contextmanager
def daemon(argv: Sequence[str], ready: Path, log: Path) -> Iterator[None]:
    """Until the block ends; its socket says that it is up."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        until(f"{ready} of {argv[-1]}", lambda: ready.exists() or process.poll() is not None, 30.0)
        if process.poll() is not None:
            raise GuestError(f"{' '.join(argv)} ended: {log.read_text()[-500:]}")
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def libvirt(with_kvm: bool, folder: Path) -> Iterator[None]:
    """The machine's own if it runs, one of ours if not.

    Where /dev/kvm is of no use it is out of sight: libvirt would try it before every question.
    """
    try:
        run(["virsh", "-c", "qemu:///system", "version"], seconds=20)
    except Exception:  # no libvirt that answers, whatever the reason
        for left in (SOCKET, LOGD):
            left.unlink(missing_ok=True)
    else:
        yield
        return
    hide = "true" if with_kvm else "test ! -e /dev/kvm || mount --bind /dev/null /dev/kvm"
    within = ["unshare", "--mount", "--", "sh", "-c", f'{hide} && exec "$0"']
    with daemon(["virtlogd"], LOGD, folder / "virtlogd.log"):
        with daemon([*within, "libvirtd"], SOCKET, folder / "libvirtd.log"):
            yield


def copy_of_the_tree(target: Path) -> None:
    """What git knows, as it lies here."""
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
    names = run([*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


class Vagrant:
    def __init__(self, folder: Path, home: Path, with_kvm: bool) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "VAGRANT_HOME": str(home),
            "VAGRANT_CHECKPOINT_DISABLE": "1",
            "VAGRANT_DEFAULT_PROVIDER": "libvirt",
            "TM3_BOX": NAME,
            "TM3_DRIVER": "kvm" if with_kvm else "qemu",
            "TM3_NETWORK": "none",
        }

    def __call__(self, *words: str, seconds: float) -> str:
        """Says what it does as it goes; what it said."""
        begun, lines = time.monotonic(), []
        process = subprocess.Popen(
            ["vagrant", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                print(f"  {line}", end="", file=sys.stderr, flush=True)
                if time.monotonic() - begun > seconds:
                    raise GuestError(f"vagrant {words[0]}: not done in {seconds:g} s")
            status = process.wait(seconds)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if status:
            raise GuestError(f"vagrant {' '.join(words)}: exit {status}")
        say(f"{words[0]} took {time.monotonic() - begun:.0f} s")
        return "".join(lines)


def expect(what: str, condition: object, said: object = "") -> None:
    if not condition:
        raise GuestError(f"{what}: {said}")
    say(f"{what}: yes")


def domains() -> list[str]:
    return run(["virsh", "-c", "qemu:///system", "list", "--all", "--name"]).split()


def networks() -> list[str]:
    return run(["virsh", "-c", "qemu:///system", "net-list", "--all", "--name"]).split()


def remove_networks(before: set[str]) -> None:
    """Those that came with the machine, and would come back with libvirt."""
    for name in set(networks()) - before:
        with contextlib.suppress(CommandError):  # it is not active
            run(["virsh", "-c", "qemu:///system", "net-destroy", name])
        run(["virsh", "-c", "qemu:///system", "net-undefine", name])


def trip(vagrant: Vagrant, made: Path) -> None:
    vagrant("box", "add", "--name", NAME, str(made), seconds=600)
    said = vagrant("up", seconds=UP_S)
    expect("it says what to type next", "vagrant ssh" in said and "make demo" in said, said[-500:])
    smoke = vagrant.folder / "results" / "smoke" / "smoke.json"
    expect("results came back", smoke.exists(), list(smoke.parent.parent.glob("*")))
    expect("the link was netem", json.loads(smoke.read_text())["download"]["link"] == "netem")
    said = vagrant("ssh", "-c", "cd tm3 && build/rp --version && ls build/tm3.ko", seconds=SSH_S)
    expect("rp and tm3.ko are built", "rp " in said and "build/tm3.ko" in said, said)
    said = vagrant("ssh", "-c", "tc -V && sudo modprobe -v sch_netem && id -un", seconds=SSH_S)
    expect("tc is in a user's path", "tc utility" in said and "vagrant" in said, said)
    vagrant("ssh", "-c", "echo later >tm3/results/later", seconds=SSH_S)
    later = vagrant.folder / "results" / "later"
    expect("results come back after vagrant ssh -c", later.exists())


def main() -> int:
    try:
        need.root("the round trip")
        need.programs(PROGRAMS)
        made = box(say)
        with_kvm = accel.accel(image(say)).name == "kvm"
        with ExitStack() as stack:
            stack.enter_context(shelf.in_use(made.parent))
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tm3-vagrant-")))
            tree = folder / "tree"
            copy_of_the_tree(tree)
            stack.enter_context(libvirt(with_kvm, folder))
            before = set(domains()), set(networks())
            vagrant = Vagrant(tree, folder / "home", with_kvm)
            try:
                trip(vagrant, made)
            finally:
                vagrant("destroy", "-f", seconds=DESTROY_S)
                remove_image()
                remove_networks(before[1])
            left = set(domains()) - before[0]
            expect("nothing is left", not left, left)
    except GuestError as why:
        say(str(why))
        return 1
    say("the round trip is done")
    return 0


def remove_image() -> None:
    """vagrant-libvirt keeps the box's disk in libvirt's pool."""
    virsh = ["virsh", "-c", "qemu:///system"]
    for line in run([*virsh, "vol-list", "default"]).splitlines():
        words = line.split()
        if words and words[0].startswith(NAME.replace("/", "-VAGRANTSLASH-")):
            run([*virsh, "vol-delete", "--pool", "default", words[0]])


if __name__ == "__main__":
    sys.exit(main())
