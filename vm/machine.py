# SPDX-License-Identifier: MIT
"""A guest that runs: `with Machine(image) as guest: guest.run(["uname", "-r"])`.

    the tree      /tm3, read-only over 9p below a writable layer of RAM
    what comes out   shares that are named writable
    commands      the agent (vm/guest/agent.py) on a virtio-serial port
    networks      none but the TAP devices that it is given

The disk is the image's; what the guest writes to it is forgotten with it.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from base.processes import renice
from base.scope import Scope
from base.shell import until
from base.sources import ROOT
from vm import need, shelf
from vm.accel import Accel, accel
from vm.channel import Channel, Remote, Sink
from vm.image import Image
from vm.kernel import UnderKernel
from vm.need import GuestError

READY_S = 120.0
OFF_S = 10.0
MOVE_IN_S = 900.0
# What 9p has cached of a file does not spare it the host: each open() is one there. Of the build
# directory, which may lie in the tree, only what is named.
MOVE_IN = """
tree=$1 build=$2; shift 2
case $build in
"$tree"/*) inside=${build#"$tree"/}; from=/tm3/$inside to=/run/moved/tree/$inside ;;
*) inside=build; from=$build to=/run/moved/build ;;
esac
mkdir /run/moved; mount -t tmpfs -o mode=755,size=80% moved /run/moved; mkdir /run/moved/tree
tar -C /tm3 -c --exclude="./$inside" --exclude=./.git --exclude=./results/curated . |
	tar -C /run/moved/tree -x
mkdir -p "$to"
for it; do [ ! -e "$from/$it" ] || tar -C "$from" -c "$it" | tar -C "$to" -x; done
mount --bind /run/moved/tree /tm3
umount "$tree"; mount --bind /run/moved/tree "$tree"
[ ! -d /run/moved/build ] || mount --bind /run/moved/build "$build"
find /usr /etc -xdev -type f -exec cat {} + >/dev/null
"""
TAIL_LINES = 20
SHORT_OF_SPACE_MIB = 500
# Threads of a guest, as its qemu sees them: shared, the guest sees how long its processors waited.
OWN_THREADS = Path("/proc/self/task")


@dataclass(frozen=True)
class Share:
    """A folder of this machine at a path of the guest."""

    host: Path
    guest: Path
    writable: bool = False


@dataclass(frozen=True)
class Nic:
    """A network card on a TAP device that is there already, in the namespace where qemu runs."""

    tap: str
    mac: str
    mtu: int = 1500


@dataclass(frozen=True)
class Done:
    """A command that ran to its end."""

    status: int
    out: str
    err: str


class CommandFailed(GuestError):
    """A command in the guest failed; the message holds what it said."""


def may_run_promptly() -> bool:
    """Whether this machine lets us give a guest real-time priority."""
    return subprocess.run(["chrt", "--rr", "1", "true"], capture_output=True).returncode == 0


class Machine(Scope):
    def __init__(
        self,
        image: Image,
        *,
        shares: Sequence[Share] = (),
        nics: Sequence[Nic] = (),
        memory_mib: int = 2048,
        cpus: int = 2,
        kernel_words: Sequence[str] = (),
        within: Sequence[str] = (),  # the words that bring qemu into its namespace
        environment: Mapping[str, str] | None = None,
        console: Path | None = None,  # kept where one names it
        tree: Path = ROOT,
        ready_s: float = READY_S,
        nice: int = 0,
        by: Accel | None = None,  # else KVM, or emulated where that does not work
    ) -> None:
        self.image, self.nics, self.tree = image, tuple(nics), tree
        self.shares = (*shares, *build_elsewhere(tree), *other_modules(image))
        self.accel = by or accel(image)
        self.memory_mib, self.cpus = memory_mib, cpus
        self.kernel_words, self.within = tuple(kernel_words), tuple(within)
        self.environment = dict(environment or os.environ)
        self.ready_s, self.nice = ready_s, nice
        self._console = console
        self._stack = ExitStack()

    def open(self) -> None:
        need.programs(need.TO_RUN)
        begun = time.monotonic()
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tm3-vm-")))
            need.space(scratch, SHORT_OF_SPACE_MIB)
            stack.enter_context(shelf.in_use(self.image.folder))
            if isinstance(self.image, UnderKernel):
                stack.enter_context(shelf.in_use(self.image.home))
            self.console = self._console or scratch / "console.log"
            self.console.write_bytes(b"")
            self._boot(stack, scratch)
            self._wait()
            self._bind_tree()
            for number, share in enumerate(self.shares):
                self._mount(number, share)
            self._stack = stack.pop_all()
        self.boot_s = time.monotonic() - begun

    def close(self, error: BaseException | None) -> None:
        self._stack.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _boot(self, stack: ExitStack, scratch: Path) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [*self.within, *self.command(theirs.fileno())]
            with (scratch / "qemu.log").open("wb") as log:
                self.process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**self.environment, "TMPDIR": str(scratch)},
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        if self.nice:
            renice(self.pid, self.nice)
        self._qemu_log = scratch / "qemu.log"
        self._channel = Channel(ours)
        stack.callback(self._stop)

    def run_promptly(self) -> None:
        """From now on it runs when it wants to, whatever else runs here; where that is allowed."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(1))

    def processors(self) -> list[int]:
        """The threads that run the guest's processors."""
        found = []
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # one of qemu's others may just have ended
                if "CPU" in (task / "comm").read_text():
                    found.append(int(task.name))
        return sorted(found)

    def command(self, port: int) -> list[str]:
        """qemu's, which ends with this process whatever ends that."""
        words = ["setpriv", "--pdeathsig", "KILL", "--", "qemu-system-x86_64"]
        words += [*self.accel.arguments, "-M", "q35", "-nodefaults", "-no-user-config"]
        words += ["-m", str(self.memory_mib), "-display", "none"]
        words += ["-smp", str(min(self.cpus, self.accel.most or self.cpus))]
        words += ["-no-reboot", "-nic", "none", "-device", "virtio-rng-pci"]
        words += ["-name", "guest,debug-threads=on"]  # names for processors()
        words += ["-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd)]
        words += ["-append", " ".join(self._kernel_words())]
        words += ["-chardev", f"file,id=console,path={_escaped(self.console)}"]
        words += ["-serial", "chardev:console"]
        words += ["-drive", f"file={_escaped(self.image.disk)},if=virtio,format=raw,snapshot=on"]
        words += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={port}"]
        words += ["-device", "virtserialport,chardev=agent,name=tm3"]
        words += _shared("tree", self.tree, writable=False)
        for number, share in enumerate(self.shares):
            words += _shared(f"share{number}", share.host, writable=share.writable)
        for number, nic in enumerate(self.nics):
            words += _plugged(f"nic{number}", nic)
        return words

    def _kernel_words(self) -> list[str]:
        # Names of cards stay eth0, eth1, ...; a warning must not scroll by: panic ends the guest.
        fixed = ["console=ttyS0", "panic=-1", "net.ifnames=0", "loglevel=5", "random.trust_cpu=on"]
        return [*fixed, *self.accel.kernel_words, *self.kernel_words]

    def _wait(self) -> None:
        def ready() -> bool:
            if self.process.poll() is not None or self._channel.gone:
                raise GuestError(f"the guest ended before it was up\n{self.tail()}")
            return self._channel.ready is not None

        try:
            until("the guest", ready, self.ready_s)
        except TimeoutError:
            never = f"the guest did not come up within {self.ready_s:g} s"
            raise GuestError(f"{never}\n{self.tail()}") from None

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The console's last lines, and what qemu itself said."""
        console = self.console.read_text(errors="replace").splitlines()[-lines:]
        said = self._qemu_log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"console: {line}" for line in console] + [f"qemu: {ln}" for ln in said])

    def _mount(self, number: int, share: Share) -> None:
        mode = "rw" if share.writable else "ro"
        options = f"trans=virtio,version=9p2000.L,msize=262144,cache=none,{mode}"
        self.run(["mkdir", "-p", share.guest])
        self.run(["mount", "-t", "9p", "-o", options, f"share{number}", share.guest])

    def _bind_tree(self) -> None:
        """The tree at its path here too: a command line means the same on both sides."""
        self.run(["mkdir", "-p", self.tree])
        self.run(["mount", "--bind", "/tm3", self.tree])

    def move_in(self, *built: str) -> None:
        """The tree, with these of its build directory, into the guest's memory; and what is on the
        disk is read once. From then on programs start without waiting for the host."""
        build = os.environ.get("TM3_BUILD") or self.tree / "build"
        script = ["bash", "-o", "pipefail", "-ec", MOVE_IN, "bash"]
        self.run([*script, self.tree, build, *built], seconds=MOVE_IN_S)
        self.run(["date", "-s", f"@{time.time():.0f}"])  # meanwhile its clock went on for hours

    def start(
        self,
        argv: Sequence[str | Path],
        out: Sink,
        err: Sink,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        tty: tuple[int, int] | None = None,
    ) -> Remote:
        """A command that goes on; `out` and `err` take what it writes."""
        return self._channel.start(argv, out, err, cwd=cwd, env=env, tty=tty)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        stdin: str = "",
        seconds: float = 60.0,
        check: bool = True,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """A command to its end; failing is an error unless `check` is False."""
        out, err = bytearray(), bytearray()
        remote = self.start(argv, out.extend, err.extend, cwd=cwd, env=env)
        try:
            remote.write(stdin.encode(), seconds)
            remote.end_of_input()
            status = remote.wait(seconds)
        except subprocess.TimeoutExpired:
            remote.send_signal(9)
            raise CommandFailed(f"{' '.join(remote.argv)}: not done in {seconds:g} s") from None
        done = Done(status, out.decode(errors="replace"), err.decode(errors="replace"))
        if check and status:
            said = (done.err + done.out).strip()[-4000:]
            raise CommandFailed(f"{' '.join(remote.argv)}: {said or f'exit {status}'}")
        return done

    def _stop(self) -> None:
        """Asks it to go, makes it go if it does not."""
        if self.process.poll() is None:
            self._channel.off()
            try:
                self.process.wait(OFF_S if self._channel.ready else 0.1)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._channel.close()


def build_elsewhere(tree: Path) -> tuple[Share, ...]:
    """Programs that were built outside the tree are at the same path in the guest."""
    built = os.environ.get("TM3_BUILD")
    if not built or Path(built).resolve().is_relative_to(tree.resolve()):
        return ()
    return (Share(Path(built), Path(built)),)


def other_modules(image: Image) -> tuple[Share, ...]:
    """The disk has those of the image's own kernel."""
    if not isinstance(image, UnderKernel):
        return ()
    return (Share(image.modules, Path("/lib/modules") / image.release),)


def _escaped(path: Path) -> str:
    """A comma would end the value."""
    return str(path).replace(",", ",,")


def _shared(name: str, folder: Path, *, writable: bool) -> list[str]:
    what = f"local,id={name},path={_escaped(folder)},security_model=none,multidevs=remap"
    return [
        *("-fsdev", what + ("" if writable else ",readonly=on")),
        *("-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"),
    ]


def _plugged(name: str, nic: Nic) -> list[str]:
    """Without offloads: a packet in the topology is one that a wire would carry."""
    off = ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo")
    off += ("host_tso4", "host_tso6", "host_ecn", "host_ufo", "mrg_rxbuf")
    features = ",".join(f"{feature}=off" for feature in off)
    return [
        *("-netdev", f"tap,id={name},ifname={nic.tap},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev={name},mac={nic.mac},{features}"),
    ]


def to_stdout(data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def to_stderr(data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
