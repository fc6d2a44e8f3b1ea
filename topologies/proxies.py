# SPDX-License-Identifier: MIT
"""lp and rp inside a lab: ready when they are ready, their logs, statistics and captures kept."""

import hashlib
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from base import jsonl
from base.shell import run, until
from topologies import dialect
from topologies.addresses import AT_EITHER, OF_PIPES, client_address, rp_address
from topologies.keyed import keyed
from topologies.network import Network
from topologies.nodes import LabNode, SettingRefused
from topologies.parameter import ParameterError, check_choice
from topologies.parameters import PIPES, TRANSPORT
from topologies.programs import Program, built, program

RP_READY = r"^rp: listening on "
LP_READY = r"^lp: \d+ pipes? to \S+ (over \S+ )?(are|is) up"
PATH_READY = r"^lp: \d+ pipes? to \S+ over {name} (are|is) up"
CAPTURES = ("pipes", "application")
SNAPLEN = 262144
# Of `ss -i`, the line below a socket: what it negotiated, then its congestion control.
CONTROL = re.compile(r"\s+(?:(?:ts|sack|ecn|ecnseen|fastopen) )*([a-z0-9_]+) ")
# Of tcpdump, when it is asked for them.
_COUNTS = re.compile(
    r"(\d+) packets? captured, (\d+) packets? received by filter, (\d+) packets? dropped"
)


@dataclass(frozen=True)
class Proxies:
    """A running pair. Files are in `folder`: rp.log, rp.stats.jsonl, ..., pipes.pcap."""

    pipes: int
    cc: str | None
    rp: Program
    lp: Program
    folder: Path
    captures: tuple[Path, ...] = field(default=())
    build: Path | None = None  # where rp and lp were built; None: where everything is
    control: Path | None = None  # lp's socket for commands

    def dialect(self) -> str:
        """What the latest session that was complete speaks: lp's log names the port."""
        return dialect.spoken(self.lp.log)

    def statistics(self, who: str) -> list[dict[str, Any]]:
        """What `rp` or `lp` wrote with --stats so far; complete once it has ended."""
        check_choice("who", who, ("rp", "lp"))
        return jsonl.records((self.folder / f"{who}.stats.jsonl").read_text())

    def program(self, who: str) -> list[tuple[str, str]]:
        """Which program it is: two builds of one version differ in their digests."""
        path = built(who, self.build)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return [("version", version(path)), ("sha256", digest)]

    def describe(self) -> dict[str, Any]:
        return {
            "pipes": self.pipes,
            "cc": self.cc,
            "dialect": self.dialect(),
            "rp": self.rp.argv,
            "lp": self.lp.argv,
            **{f"{who}_{name}": it for who in ("rp", "lp") for name, it in self.program(who)},
            "captures": [path.name for path in self.captures],
        }


def version(path: Path) -> str:
    return run([path, "--version"]).strip()


def pipe_controls(node: LabNode) -> list[str]:
    """The congestion control of each pipe that has an end here, from the kernel."""
    text = node.inside("ss", "-Htin", "state", "established", AT_EITHER)
    return re.findall(
        r"^\s+(?:ts |sack |ecn |ecnseen |fastopen )*([a-z0-9_]+) ", text, re.MULTILINE
    )


def check_controls(node: LabNode, pipes: int, wanted: str | None) -> None:
    """Every pipe is there and under the congestion control that was asked for."""
    found: list[str] = []

    def as_asked() -> bool:
        """A proxy may still be about to set what it has just accepted."""
        found[:] = pipe_controls(node)
        return len(found) >= pipes and (wanted is None or set(found) <= {wanted})

    try:
        until(f"{pipes} pipes in {node.name}", as_asked, 10.0)
    except TimeoutError:
        raise SettingRefused(
            f"{node.name}: {len(found)} pipes of {pipes}, under {sorted(set(found))}, "
            f"not {wanted or 'whatever'}"
        ) from None


def _catch_up(tcpdump: Program) -> None:
    """Waits until it has written all that came: what is still in the kernel when it ends is lost,
    and on a slow machine that may be much. On loopback it is told of everything twice: there it
    has all when nothing was added for a while."""
    begun = len(_COUNTS.findall(tcpdump.log))
    asked_at = 0.0

    def nothing_waits() -> bool:
        nonlocal asked_at
        told = [tuple(map(int, each)) for each in _COUNTS.findall(tcpdump.log)[begun:]]
        if told:
            captured, received, dropped = told[-1]
            if captured + dropped >= received or told[-1] in told[:-1]:
                return True
        if tcpdump.running() and time.monotonic() - asked_at > 0.1:
            asked_at = time.monotonic()
            tcpdump.process.send_signal(signal.SIGUSR1)  # it tells its counts
        return not tcpdump.running()

    until(f"{tcpdump.name} to have written what it received", nothing_waits, 5.0)


@contextmanager
def capture(lab: Network, node: LabNode, name: str, device: str, what: str) -> Iterator[Path]:
    """tcpdump on a device until the block ends; it listens before the block begins.

    In immediate mode: else the kernel holds packets back for up to a second, and the last are lost.
    """
    path = lab.state.log_folder / f"{name}.pcap"
    argv = ["tcpdump", "-n", "-U", "--immediate-mode", "-Z", "root", "-s", str(SNAPLEN)]
    argv += ["-i", device, "-w", str(path), what]
    with program(
        lab.state,
        node.name,
        f"tcpdump-{name}",
        argv,
        ready=r"listening on",
        stop=signal.SIGINT,
    ) as tcpdump:
        yield path
        with suppress(TimeoutError):  # there may be traffic all the time
            _catch_up(tcpdump)


def _captures(lab: Network, wanted: Sequence[str], stack: ExitStack) -> tuple[Path, ...]:
    for name in wanted:
        check_choice("capture", name, CAPTURES)
    places = []
    if "pipes" in wanted:
        places += [
            (lab.client, f"pipes-{intf.name}", intf.name, OF_PIPES)
            for intf in lab.client.intfList()
        ]
    if "application" in wanted:
        places += [
            (lab.client, "application-client", "lo", "tcp"),
            (lab.server, "application-server", "server-eth0", "tcp"),
        ]
    return tuple(stack.enter_context(capture(lab, *place)) for place in places)


def _command(
    lab: Network, program_: Path, cc: str | None, interval_s: float, options: Sequence[str]
) -> list[str | Path]:
    stats = lab.state.log_folder / f"{program_.name}.stats.jsonl"
    argv: list[str | Path] = [program_, "--stats", stats, "--stats-interval", f"{interval_s:g}"]
    if cc is not None:
        argv += ["--cc", cc]
    return [*argv, *options]


def made_of(transport: str, pipes: int) -> tuple[int, tuple[str, ...]]:
    """How many of the pipes are SCTP's, which has no congestion control to name; the option."""
    TRANSPORT.check(transport)
    if transport == "mixed":
        replace(PIPES, low=2).check(pipes)
        return pipes // 2, ("--pipe", f"tcp:{pipes - pipes // 2},sctp:{pipes // 2}")
    words = () if transport == "tcp" else ("--pipe", transport)
    return (pipes if transport == "sctp" else 0), words


def over_miles(lab: Network, names: Sequence[str]) -> list[str]:
    """lp's options for a path over each last mile."""
    if len(names) != len(lab.topo.miles):
        raise ParameterError("paths", f"{len(names)} for {len(lab.topo.miles)} last miles")
    return [
        word
        for number, name in enumerate(names)
        for word in ("--path", f"{name},src={client_address(number)}")
    ]


@contextmanager
def proxies(
    lab: Network,
    pipes: int = 4,
    *,
    cc: str | None = "cubic",
    transport: str = "tcp",
    extend: str = "auto",
    key: bool = False,
    rp: Sequence[str] = (),
    lp: Sequence[str] = (),
    capture: Sequence[str] = (),
    stats_interval_s: float = 1.0,
    build: Path | None = None,
    paths: Sequence[str] = (),
    control: bool = False,
) -> Iterator[Proxies]:
    """Starts rp and lp in the lab and stops them with the block.

    `rp`, `lp`: further options. `capture`: "pipes" (the client's end of the last mile) and
    "application" (the client's loopback and the server). `cc` None leaves it to the kernel.
    `transport` "mixed": half of the pipes TCP, half SCTP. `extend`: see dialect.py. `key`: both
    show one, and pipes are encrypted. `build`: a folder with another rp and lp. `paths`: names, one
    for each last mile; lp has as many pipes over each of these then. `control`: lp takes commands.
    """
    PIPES.check(pipes)
    all_pipes = pipes * max(1, len(paths))
    if paths:
        lp = (*lp, *over_miles(lab, paths))
    # A UNIX socket's path is short, and that of the logs may not be.
    commands = lab.state.folder / "lp.sock" if control else None
    if commands:
        lp = (*lp, "--control", str(commands))
    over_sctp, words = made_of(transport, pipes)
    serves, asks = dialect.options(extend, built("rp", build), built("lp", build))
    if lab.state.logs is None and capture:
        raise ParameterError("capture", "needs a lab with logs=FOLDER")
    with ExitStack() as stack, ExitStack() as starting:
        captures = _captures(lab, capture, stack)
        if key:
            words += starting.enter_context(keyed(lab.state.log_folder))
        rp, lp = (*words, *serves, *rp), (*words, *asks, *lp)
        rp_argv = [*_command(lab, built("rp", build), cc, stats_interval_s, rp), str(pipes)]
        remote = stack.enter_context(program(lab.state, "rp", "rp", rp_argv, ready=RP_READY))
        lp_argv = [
            *_command(lab, built("lp", build), cc, stats_interval_s, lp),
            rp_address(),
            str(pipes),
        ]
        local = stack.enter_context(
            program(lab.state, "client", "lp", lp_argv, ready=LP_READY, seconds=30.0)
        )
        for name in paths:
            local.expect(PATH_READY.format(name=name))
        starting.close()
        check_controls(lab.client, all_pipes - over_sctp, cc)
        check_controls(lab.rp, all_pipes - over_sctp, cc)
        logs = lab.state.log_folder
        pair = Proxies(all_pipes, cc, remote, local, logs, captures, build, commands)
        dialect.check(extend, pair.dialect())
        yield pair
