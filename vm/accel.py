# SPDX-License-Identifier: MIT
"""Whether the processor's virtualisation runs this guest here: tried, not asked.

/dev/kvm may be there, may even run a few instructions, and yet not boot a kernel. So the guest's
own kernel is booted up to its first program, once for each boot of this machine and each image.
"""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vm.image import Image

DEVICE = Path("/dev/kvm")
SECONDS = 10.0
SAYS = "guest: it runs"


@dataclass(frozen=True)
class Accel:
    name: str
    arguments: tuple[str, ...]  # qemu's
    kernel_words: tuple[str, ...] = ()
    most: int | None = None  # processors, if there is a limit


KVM = Accel("kvm", ("-accel", "kvm", "-cpu", "host"))
# Emulated counters of two processors pass for unsynchronised, and all else is slow to read. And on
# a busy machine ticks come so late that the kernel panics: "IO-APIC + timer doesn't work". A
# processor that says that `rep movsb` is fast is believed: emulated it takes a byte at a time, and
# loopback carries 21 MB/s instead of 90.
EMULATED = ("-cpu", "max,-erms,-fsrm")
TCG = Accel("tcg", ("-accel", "tcg,thread=multi", *EMULATED), ("tsc=reliable", "no_timer_check"))
# The same, one processor after the other. With a thread for each, qemu 7.2 may go on running what
# it translated of an instruction that the kernel has changed since. Seen with Linux 6.12, twice:
# "Oops: int3" on both at once, at a jump that depends on whether there are netfilter hooks.
TCG_IN_TURN = Accel("tcg", ("-accel", "tcg,thread=single", *EMULATED), TCG.kernel_words)
# A processor whose clock counts instructions, a nanosecond each, and goes to the next timer at
# once where there is nothing to run: whatever else its host does, it is never late. But what it
# waits for outside takes any time, in a read of the disk minutes may pass, so what measures has its
# files in memory (Machine.move_in). qemu 7.2 does not begin to boot with two of these.
TCG_COUNTED = Accel(
    "tcg",
    ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", *EMULATED),
    (*TCG.kernel_words, "sysctl.kernel.hung_task_timeout_secs=0"),
    most=1,
)


def accel(image: Image, emulated: Accel = TCG) -> Accel:
    """KVM where it works, else `emulated`. TM3_VM_ACCEL=kvm or tcg decides without a try."""
    chosen = os.environ.get("TM3_VM_ACCEL", "")
    if chosen in ("kvm", "tcg"):
        return KVM if chosen == "kvm" else emulated
    return KVM if _tried(image) else emulated


def _tried(image: Image) -> bool:
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = image.folder / f"kvm-{boot}"
    try:
        return known.read_text() == "runs\n"
    except FileNotFoundError:
        pass
    answer = runs(image, KVM)
    with contextlib.suppress(OSError):  # somebody else's image: tried again the next time
        known.write_text("runs\n" if answer else "does not run\n")
    return answer


def runs(image: Image, by: Accel, seconds: float = SECONDS) -> bool:
    """Whether the guest's kernel reaches its first program."""
    argv = [
        *("qemu-system-x86_64", *by.arguments, "-M", "q35", "-m", "256", "-smp", "2"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd)),
        *("-append", "console=ttyS0 panic=-1 tm3.probe"),
    ]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return False
    return SAYS.encode() in done.stdout
