# SPDX-License-Identifier: MIT
"""A splitting proxy in place of the pipes: HAProxy in TCP mode, where rp would be.

    client ══ last mile ══ HAProxy ── 4 ms, 1 Gbit/s ── server

Each connection of the client ends there, and one of the proxy's own goes on to the server: losses
of the last mile are mended over the last mile alone, and nothing else is done. So it is what of a
gain is due to splitting, and not to pipes. The client needs no proxy: rp's host redirects what
comes over a last mile, and HAProxy asks the kernel for the port that was meant.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from base.shell import run, until
from topologies.addresses import SERVER
from topologies.network import Network
from topologies.nodes import SettingRefused
from topologies.programs import Program, ProgramError, program

NAME = "haproxy"
PORT = 6020
TABLE = "tm3_split"
ENDS_S = 3.0  # what programs that are over may leave to be closed
# A server without a port is asked for the one that the client asked for.
CONFIGURATION = f"""\
global
  nbthread 1
  maxconn 4096
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen split
  bind :{PORT} backlog 4096
  server there {SERVER}
"""


@dataclass(frozen=True)
class Splitter:
    """A running one."""

    lab: Network
    program: Program

    def connections(self) -> int:
        """How many it was given since it runs: rules are asked once for each connection."""
        listed = self.lab.rp.inside("nft", "-j", "list", "table", "ip", TABLE)
        counts = [
            int(expression["counter"]["packets"])
            for item in json.loads(listed)["nftables"]
            for expression in item.get("rule", {}).get("expr", ())
            if "counter" in expression
        ]
        return sum(counts)


def version(path: str | Path) -> str:
    return run([path, "-v"]).splitlines()[0].strip()


def rules(miles: int) -> str:
    devices = ", ".join(f'"rp-eth{mile}"' for mile in range(miles))
    return (
        f"table ip {TABLE} {{\n"
        "\tchain prerouting {\n"
        "\t\ttype nat hook prerouting priority -100; policy accept;\n"
        f"\t\tiifname {{ {devices} }} ip daddr {SERVER} meta l4proto tcp counter "
        f"redirect to :{PORT}\n"
        "\t}\n"
        "}\n"
    )


@contextmanager
def _controlled(lab: Network, cc: str) -> Iterator[None]:
    """By route, for all connections of rp's host: only the machine itself may make any other
    congestion control than reno a namespace's default."""
    before = lab.rp.inside("ip", "route", "show").splitlines()
    for route in before:
        lab.rp.inside("ip", "route", "replace", *route.split(), "congctl", cc)
    try:
        told = lab.rp.inside("ip", "route", "show").splitlines()
        if not all(f"congctl {cc}" in route for route in told):
            raise SettingRefused(f"cc {cc}: {lab.rp.name} has routes without it: {told}")
        yield
    finally:
        for route in before:
            lab.rp.inside("ip", "route", "replace", *route.split())


@contextmanager
def _redirected(lab: Network) -> Iterator[None]:
    lab.rp.inside("nft", "-f", "-", stdin=rules(len(lab.links) - 1))
    try:
        yield
        with suppress(TimeoutError):  # somebody still uses one
            at_it = f"sport = :{PORT}"
            until("split connections to end", lambda: not lab.rp.connections(at_it), ENDS_S)
    finally:
        lab.rp.inside("nft", "delete", "table", "ip", TABLE)


@contextmanager
def splitting(lab: Network, cc: str) -> Iterator[Splitter]:
    """While the block runs. `cc`: of its connections to both sides, which it does not name."""
    found = shutil.which(NAME)
    if found is None:
        raise ProgramError(f"{NAME} is not installed: sudo make setup")
    configuration = lab.state.folder / f"{NAME}.cfg"
    configuration.write_text(CONFIGURATION)
    with (
        _controlled(lab, cc),
        program(lab.state, "rp", NAME, [found, "-db", "-f", configuration]) as started,
    ):
        _wait_until_it_listens(lab, started)
        with _redirected(lab):
            yield Splitter(lab, started)


def _wait_until_it_listens(lab: Network, started: Program) -> None:
    def listens() -> bool:
        if not started.running():
            raise ProgramError(f"{NAME} ended at once:\n{started.log[-4000:]}")
        return bool(lab.rp.inside("ss", "-Hltn", f"sport = :{PORT}").strip())

    until(f"{NAME} to listen", listens)
