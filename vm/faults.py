# SPDX-License-Identifier: MIT
"""Faults made on purpose: that nothing was reported means something only where faults are.

The module faults.c makes one fault of each kind in the guest, and each has to be reported by
those who watch the guest's kernel (vm/watch.py), in the kernel's own words.
"""

import re
import shutil
from pathlib import Path

from base.shell import CommandError, run
from vm import need, watch
from vm.kernel import UnderKernel
from vm.machine import Machine

SOURCE = Path(__file__).with_name("faults.c")
# By name. Lockdep turns itself off with its first report, and with KASAN's: its own come first.
REPORTED = {
    "unguarded": r"suspicious RCU usage",
    "lock-order": r"possible circular locking dependency",
    "use-after-free": r"KASAN: slab-use-after-free|KASAN: use-after-free",
    "out-of-bounds": r"KASAN: slab-out-of-bounds",
    "double-free": r"KASAN: (double-free|invalid-free)",
    "freed-while-it-waits": r"ODEBUG: free active",
    "underflow": r"refcount_t: addition on 0",
    "sleep-in-atomic": r"sleeping function called from invalid context",
    "leak": r"unreferenced object",
}


def built(kernel: UnderKernel, out: Path) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shutil.copy(SOURCE, out)
    (out / "Kbuild").write_text("obj-m := faults.o\n")
    try:
        run(["make", "-s", "-C", kernel.home / "headers", f"M={out}", "modules"], seconds=600)
    except CommandError as why:
        raise need.GuestError(f"the module with faults cannot be built: {why}") from None
    return out / "faults.ko"


def unseen(guest: Machine, module: Path) -> list[str]:
    """The faults that nobody reported, each with what was said instead."""
    missed = []
    for name, wanted in REPORTED.items():
        before = len(watch.log(guest))
        guest.run(["insmod", module, f"fault={name}"])
        guest.run(["rmmod", "faults"])
        found = list(watch.reports(watch.log(guest)[before:]))
        found += watch.leaks(guest) if name == "leak" else []
        if not any(re.search(wanted, text) for text in found):
            missed.append(f"{name}: {found or 'nothing'}")
    return missed
