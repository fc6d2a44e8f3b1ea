# SPDX-License-Identifier: MIT
"""The guest with systemd: what `make deb` makes is installed, run and removed there.

Its image has the packages of vm/services.debian. There is no network in it, so all that tm3-proxies
and tm3-dkms depend on is among them, the headers of its kernel too.
"""

import os
import subprocess
from pathlib import Path

from base.sources import ROOT
from vm import need
from vm.image import Image, Say, image
from vm.machine import Machine
from vm.need import GuestError
from vm.recipe import recipe

KIND = "services"
TO_PACKAGE = ("make", "dpkg-buildpackage", "dh", "dh_dkms", "clang")
PACKAGES = ("tm3-proxies", "tm3-dkms")
DEB_S = 900.0
UP_S = 180.0
# Of no use here. The first two are slow where a processor is emulated; the last starts what belongs
# to a time of the day, such as a copy of dpkg's database at midnight, beside the tests.
MASKED = ("e2scrub_reap.service", "getty.target", "timers.target")
KERNEL_WORDS = tuple(f"systemd.mask={unit}" for unit in MASKED)


class NoTools(GuestError):
    """It cannot be tried here: a skip, with its reason."""


def services(build: Path, say: Say) -> Image:
    """The image, made if it is not there; and the packages, made anew of the tree."""
    try:
        need.programs(TO_PACKAGE)
    except GuestError as why:
        raise NoTools(str(why)) from None
    packaged(build, say)
    return image(say, recipe(KIND))


def packaged(build: Path, say: Say) -> None:
    say("making the Debian packages")
    argv = ["make", "--no-print-directory", "-C", str(ROOT), f"BUILD={build}", "deb"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=DEB_S)
    except subprocess.TimeoutExpired:
        raise GuestError(f"no packages: make deb was not done in {DEB_S:g} s") from None
    if done.returncode:
        raise GuestError(f"no packages: make deb failed\n{(done.stdout + done.stderr)[-4000:]}")
    for name in PACKAGES:
        if not list((build / "deb").glob(f"{name}_*.deb")):
            raise GuestError(f"no packages: make deb made no {name}")


def settled(guest: Machine) -> None:
    """What starts with the machine has started: the agent is one of the first to do so."""
    guest.run(["udevadm", "settle"], seconds=UP_S)
    said = guest.run(["systemctl", "is-system-running", "--wait"], seconds=UP_S, check=False)
    if said.out.strip() != "running":
        failed = guest.run(["systemctl", "--failed", "--plain", "--no-legend"]).out
        raise GuestError(f"the guest's systemd is {said.out.strip()}: {failed}\n{guest.tail()}")
