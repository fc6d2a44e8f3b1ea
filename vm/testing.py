# SPDX-License-Identifier: MIT
"""Tests that need another kernel than this machine's, run in guests: python -m vm test

    netem     tests/net where a link is netem's: every preset is what it declares
    kernel    tests/vm, and what tm3ctl --bpf redirects: tm3.ko, SCTP, Open vSwitch; with the
              kernel's own checks on
    services  Debian packages and units, in a guest with systemd (vm/services.py)

and, where they are named, under other kernels (vm/kernel.py):

    backports   the tests of tm3.ko
    debug       the same, with every check on that finds what a test cannot see; then faults made on
                purpose, which those checks have to report
    arm64       tm3.ko on that architecture, where one program exercises it (vm/arm64.py)

Each in a fresh guest, with Debian's pytest, whose last line is the result. Groups that do not
measure run two at a time, if there are two processors, and beside one that does. A warning of the
kernel is a failure, whatever the tests say.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from base.pressure import OwnTime
from base.sources import ROOT
from vm import arm64, faults, kernel, services
from vm.accel import KVM, TCG, TCG_COUNTED, TCG_IN_TURN, Accel, accel
from vm.beside import beside
from vm.image import Image, Say
from vm.kernels import ARM64
from vm.machine import (
    OWN_THREADS,
    READY_S,
    Machine,
    Share,
    may_run_promptly,
    to_stderr,
    to_stdout,
)
from vm.need import GuestError
from vm.watch import Watch

SOAK = "TM3_SOAK_SECONDS"
BUILD = Path(os.environ.get("TM3_BUILD") or ROOT / "build")
PRESSURE = Path("/proc/pressure")
PRESSURE_THERE = Path("/run/host/pressure")
THREADS_THERE = Path("/run/host/threads")
PYTEST = ("python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfEs", "--durations=5")
# What the stock kernel can check of itself: freed and overrun memory.
CHECKS = ("slub_debug=FZP", "page_poison=1")
# Each report of KASAN, not only the first.
DEBUG_CHECKS = (*CHECKS, "kasan_multi_shot")
RESULTS = Path("/results")
# Of the build directory, what a laboratory starts.
PROGRAMS = ("lp", "rp", "linkem", "tm3lab", "tm3bpf", "tm3.ko")
LOOK_S = 5.0
AT_ONCE = 2  # guests that do not measure: each needs most of a processor
# Of the machine that runs guests.
HOST = (
    *("agent", "arm64", "beside", "debug", "kernels"),
    *("machine", "services", "shelf", "vmhost", "watch"),
)
# Of the guest with systemd.
SERVICES = ("packages", "units")
ELSEWHERE = tuple(f"--ignore=tests/vm/test_{name}.py" for name in (*HOST, *SERVICES))
# What another kernel may do otherwise; the rest is seen on the machine that runs guests.
BPF = tuple(
    f"tests/bpf/test_redirect.py::test_{name}"
    for name in (
        "a_command_goes_through_lp_and_nobody_else",
        "ipv6_too",
        "many_at_once_arrive_where_they_wanted",
        "mptcp_and_fast_open",
        "another_network_namespace_is_left_alone",
    )
)
MODULE = ("tests/vm", *ELSEWHERE, "-k", "test_tm3")


@dataclass(frozen=True)
class Group:
    name: str
    what: tuple[str, ...]  # pytest's words
    seconds: float  # of the machine's own time
    kernel_words: tuple[str, ...] = ()
    measures: bool = False  # what takes the guest's time away makes it wrong
    kernel: str = ""  # not the image's own; then the group runs only where it is named
    systemd: bool = False  # the image with it, and packages made of the tree
    memory_mib: int = 2048
    ready_s: float = READY_S
    debug: bool = False  # that kernel has checks of its own, which are asked
    emulated: Accel = TCG  # where KVM does not work


GROUPS = {
    group.name: group
    for group in (
        Group(
            "netem",
            ("tests/net", "-k", "netem", "--timeout=900"),
            3600.0,
            measures=True,
            emulated=TCG_COUNTED,
        ),
        Group("kernel", ("tests/vm", *BPF, *ELSEWHERE, "--timeout=300"), 2400.0, CHECKS),
        Group(
            "services",
            (*(f"tests/vm/test_{name}.py" for name in SERVICES), "--timeout=300"),
            1200.0,
            services.KERNEL_WORDS,
            systemd=True,
        ),
        Group(
            "backports",
            (*MODULE, "--timeout=300"),
            1200.0,
            CHECKS,
            kernel="backports",
            emulated=TCG_IN_TURN,
        ),
        Group(
            "debug",
            (*MODULE, "--timeout=900"),
            3600.0,
            DEBUG_CHECKS,
            kernel="debug",
            memory_mib=4096,
            ready_s=300.0,
            debug=True,
        ),
    )
}

# By which they are named.
NAMES = (*GROUPS, ARM64)


@contextmanager
def booted(image: Image, group: Group, results: Path) -> Iterator[Machine]:
    by = accel(image, group.emulated)
    shares = [Share(results, RESULTS, writable=True)]
    # The guest cannot see that others take its time. The host's pressure tells that somebody waits,
    # which is always so where guests run beside: it would excuse each wrong figure.
    if by is TCG_COUNTED:
        pass  # it waits for nobody
    elif group.measures:
        shares.append(Share(OWN_THREADS, THREADS_THERE))
    elif PRESSURE.is_dir():
        shares.append(Share(PRESSURE, PRESSURE_THERE))
    console = results / f"{group.name}.console.log"
    with Machine(
        image,
        shares=shares,
        kernel_words=group.kernel_words,
        console=console,
        memory_mib=group.memory_mib,
        ready_s=group.ready_s,
        by=by,
    ) as guest:
        if guest.accel is TCG_COUNTED:
            guest.move_in(*PROGRAMS)
        # Up, it needs one core in the mean, but that at once: a timer 2 ms late is a wrong rate.
        # While it boots it would have both.
        elif group.measures:
            guest.run_promptly()
        if group.systemd:
            services.settled(guest)
        yield guest


def environment(guest: Machine, group: Group) -> dict[str, str]:
    """What the tests know the guest by."""
    env = {"TM3_DEB": str(BUILD / "deb")}
    if soak := os.environ.get(SOAK):
        env[SOAK] = soak
    if guest.accel is TCG_COUNTED:
        pass
    elif group.measures:
        threads = (THREADS_THERE / str(it) / "schedstat" for it in guest.processors())
        env["TM3_HOST_THREADS"] = ":".join(map(str, threads))
    elif PRESSURE.is_dir():
        env["TM3_HOST_PRESSURE"] = str(PRESSURE_THERE)
    if isinstance(guest.image, kernel.UnderKernel):
        env["TM3_KO"] = str(guest.image.tm3(BUILD / guest.image.home.name))
    return env


def run(image: Image, group: Group, words: list[str], results: Path) -> bool:
    """One group in one guest; whether all is well."""
    begun = time.monotonic()
    on_purpose = _faults(image) if group.debug else None
    with booted(image, group, results) as guest:
        up = f"Linux {image.release} is up after {guest.boot_s:.0f} s by {guest.accel.name}"
        print(f"vm: {group.name}: {up}", flush=True)
        watch = Watch(guest, checks=group.debug)
        junit = f"--junitxml={RESULTS}/{group.name}.xml"
        argv = [*PYTEST, junit, *group.what, *words]
        remote = guest.start(argv, to_stdout, to_stderr, env=environment(guest, group))
        remote.end_of_input()
        clock = OwnTime()
        while not remote.ended(within=LOOK_S):
            if clock.passed_s() < group.seconds:
                continue
            remote.send_signal(9)
            raise GuestError(f"{group.name}: not done in {group.seconds:g} s\n{guest.tail()}")
        status = remote.wait()
        said = watch.complaints()
        missed = faults.unseen(guest, on_purpose) if on_purpose else []
    print(f"vm: {group.name}: took {time.monotonic() - begun:.0f} s", flush=True)
    for line in said:
        print(f"vm: {group.name}: the kernel warns: {line}", file=sys.stderr)
    for fault in missed:
        print(f"vm: {group.name}: nobody reported the fault {fault}", file=sys.stderr)
    if on_purpose and not missed:
        print(f"vm: {group.name}: {len(faults.REPORTED)} faults made on purpose were all reported")
    return status == 0 and not said and not missed


def _faults(image: Image) -> Path:
    """Built before the guest looks: it would not see what comes later."""
    assert isinstance(image, kernel.UnderKernel)
    return faults.built(image, BUILD / image.home.name / "faults")


def under(image: Image, group: Group, say: Say) -> Image:
    if group.systemd:
        return services.services(BUILD, say)
    return kernel.under(image, group.kernel, say) if group.kernel else image


def passes(image: Image, name: str, words: list[str], results: Path, say: Say) -> bool:
    if name == ARM64:
        return arm64.test(results, say)
    try:
        there = under(image, GROUPS[name], say)
    except services.NoTools as why:
        say(f"{name}: skipped: {why}")
        return True
    return run(there, GROUPS[name], words, results)


def turns(names: list[str], processors: int, *, undisturbed: bool) -> list[list[str]]:
    """The groups that run at the same time, in turn.

    Those beside one that measures do not disturb it where it has a clock of its own, or can be had
    to run promptly (booted()). Two that measure would disturb each other.
    """
    measuring = [name for name in names if name in GROUPS and GROUPS[name].measures]
    others = [name for name in names if name not in measuring]
    if processors < AT_ONCE:
        return [[name] for name in (*measuring, *others)]
    beside = [others[at : at + AT_ONCE] for at in range(0, len(others), AT_ONCE)]
    if not undisturbed:
        return [*([name] for name in measuring), *beside]
    pairs = zip_longest(([name] for name in measuring), beside, fillvalue=())
    return [[*alone, *some] for alone, some in pairs]


def test(image: Image, names: list[str], words: list[str], results: Path, say: Say) -> int:
    results.mkdir(parents=True, exist_ok=True)
    results = results.resolve()
    failed = []
    undisturbed = accel(image) is not KVM or may_run_promptly()
    for first, *others in turns(names, os.cpu_count() or 1, undisturbed=undisturbed):
        with ExitStack() as stack:
            running = [stack.enter_context(beside(it, results, words)) for it in others]
            if not passes(image, first, words, results, say):
                failed.append(first)
            failed += [it.name for it in running if not it.passes()]
    say(f"failed: {', '.join(failed)}" if failed else f"passed: {', '.join(names)}")
    return 1 if failed else 0
