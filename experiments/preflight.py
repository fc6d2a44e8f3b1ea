# SPDX-License-Identifier: MIT
"""Whether this machine can do what a plan wants; told before anything is begun."""

import os
import shutil
import socket
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from experiments import guest, parameters
from experiments.model import Experiment
from topologies import entry
from topologies.choice import choose
from topologies.parameter import Params, Value
from topologies.programs import built
from topologies.qdisc import why_no_netem

PROGRAMS = ("ip", "tc", "nft", "ss", "nsenter", "ethtool", "sysctl")
PACKAGES = "sudo .ci/setup experiments/packages.debian"


class CannotServe(RuntimeError):
    """The machine lacks something; the message says what, and what would serve instead."""


def need_root() -> None:
    if os.geteuid() != 0:
        raise CannotServe("runs need root, for network namespaces: sudo tm3lab ...")


def check(experiment: Experiment | None, configurations: Iterable[Params]) -> None:
    """Raises CannotServe, or ProgramError where a program of ours is not built."""
    need_root()
    check_registry()
    check_programs(experiment.packages if experiment else ())
    check_modules(experiment.modules if experiment else ())
    configurations = list(configurations)
    for cc in {
        params[name] for params in configurations for name in ("cc", "rival_cc") if name in params
    }:
        check_cc(cc)
    if any(params["way"] == "mptcp" for params in configurations):
        _check_mptcp()
    if any(params["way"] == "haproxy" for params in configurations):
        _check_haproxy()
    if any(params["transport"] in ("sctp", "mixed") for params in configurations):
        _check_sctp()
    if any(params["client"] == "vm" for params in configurations):
        _check_guest()
    for folder in {parameters.proxies_folder(params) for params in configurations}:
        for name in ("rp", "lp"):
            built(name, folder)
    for params in configurations:
        _check_link(params)


def check_registry() -> None:
    try:
        entry.check_registry()
    except entry.NotOurs as why:
        raise CannotServe(f"labs cannot be written down: {why}") from None


def check_programs(more: Iterable[str]) -> None:
    for name in ("rp", "lp", "linkem"):
        built(name)
    for names, remedy in ((PROGRAMS, "sudo make setup"), (more, PACKAGES)):
        missing = [name for name in names if shutil.which(name) is None]
        if missing:
            raise CannotServe(f"not installed: {', '.join(missing)}: {remedy}")


def check_modules(names: Iterable[str]) -> None:
    """Of Python packages that only programs of a run import."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise CannotServe(f"no {', '.join(missing)} in Python: sudo make setup")


def check_cc(cc: Value) -> None:
    """By asking for it: what is a module is loaded so."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, str(cc).encode())
        except OSError:
            there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
            raise CannotServe(
                f"cc {cc}: this kernel has {', '.join(there.split())}; sudo modprobe tcp_{cc} "
                "may load it"
            ) from None


def _check_mptcp() -> None:
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        raise CannotServe(
            "way mptcp: this kernel has no MPTCP (Linux 5.6 or later with CONFIG_MPTCP); "
            "--way pipes,direct would serve"
        )


def _check_haproxy() -> None:
    if shutil.which("haproxy") is None:
        raise CannotServe(
            "way haproxy: not installed: haproxy: sudo make setup; --way pipes,direct would serve"
        )


def _check_sctp() -> None:
    """By asking for a socket, which loads the module where there is one."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
    except OSError:
        raise CannotServe(
            "transport: this kernel has no SCTP; in a guest: sudo make vm && "
            "sudo build/venv/bin/python -m vm run --results DIR -- "
            "build/tm3lab run sctp --results /results"
        ) from None


def _check_guest() -> None:
    missing = guest.lacks()
    if missing:
        raise CannotServe(missing)


def _check_link(params: Params) -> None:
    missing = why_no_netem()
    if params["link"] == "netem" and missing:
        raise CannotServe(f"link netem: {missing}; --link linkem or --link auto would serve")
    chosen = choose(str(params["link"]), parameters.miles(params)).realisation
    if chosen == "linkem" and not Path("/dev/net/tun").exists():
        raise CannotServe(
            "link linkem: no /dev/net/tun: sudo modprobe tun, or a kernel with netem, would serve"
        )
