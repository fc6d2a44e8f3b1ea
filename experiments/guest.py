# SPDX-License-Identifier: MIT
"""A client with a kernel of its own, where tm3.ko redirects: what it needs, what is told of it."""

import hashlib
import re
from typing import TYPE_CHECKING, Any

from base.sources import ROOT
from experiments.failure import RunFailed
from vm import need
from vm.image import Image
from vm.machine import READY_S
from vm.need import GuestError
from vm.recipe import cache as images
from vm.recipe import recipe

if TYPE_CHECKING:
    from topologies.lab import Lab

MODULE = ROOT / "build" / "tm3.ko"
BOOT_S = READY_S + 60.0  # then it mounts, and takes its settings


def lacks() -> str | None:
    """All that is missing here, in one line; None if nothing is."""
    missing, targets = [], []
    try:
        need.programs(need.TO_RUN)
        image = Image(images() / recipe().name)
    except GuestError as why:
        return str(why).splitlines()[0]
    if not image.folder.is_dir():
        missing.append("the guest's image")
        targets.append("vm")
    if not MODULE.exists():
        missing.append(f"build/{MODULE.name}")
        targets.append("kmod")
    elif image.folder.is_dir() and module()["for_kernel"] != image.release:
        missing.append(f"a build/{MODULE.name} for the guest's kernel {image.release}")
        targets.append("kmod")
    if not missing:
        return None
    return f"client vm: {' and '.join(missing)} must be made first: sudo make {' '.join(targets)}"


def module() -> dict[str, Any]:
    """Which build of the module it is."""
    data = MODULE.read_bytes()
    magic = re.search(rb"\0?vermagic=([^\0]*)\0", data)
    return {
        "redirected_by": MODULE.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "vermagic": magic[1].decode().strip() if magic else None,
        "for_kernel": magic[1].decode().split()[0] if magic else None,
    }


def gone(lab: "Lab") -> str | None:
    """That the client's machine ended by itself, and its last word."""
    machine = getattr(lab.client, "machine", None)
    if machine is None or machine.process.poll() is None:
        return None
    said = machine.tail(1).splitlines()
    return f"the guest ended during the run; {said[-1] if said else 'it said nothing'}"


def redirected(lab: "Lab") -> dict[str, int]:
    """How many connections the module redirected in this run, which loaded it."""
    text = lab.client.inside("cat", "/proc/net/tm3")
    count = re.search(r"^redirected (\d+)$", text, re.MULTILINE)
    if count is None or not int(count[1]):
        raise RunFailed(f"{MODULE.name} redirected nothing: {' '.join(text.split())}")
    return {"redirected": int(count[1])}
