# SPDX-License-Identifier: MIT
"""The application in a run, and the hands of its network manager, which turn the lab's links."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.sources import ROOT
from experiments.failure import RunFailed
from experiments.workloads import traffic
from experiments.workloads.rtapp.client import tell
from experiments.workloads.rtapp.server import READY
from topologies import manager, rssi
from topologies.addresses import SERVER, client_address
from topologies.lab import Lab
from topologies.manager import Act, Periods
from topologies.programs import Program, program
from topologies.rssi import Rssi

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORT = 7010
SEED = 1
BLUETOOTH, WIFI = client_address(0), client_address(1)
PATHS = ("--path", f"bluetooth,src={BLUETOOTH}", "--path", f"wifi,src={WIFI},backup")


@contextmanager
def server(lab: Lab) -> Iterator[Program]:
    argv = traffic.command("rtapp", "serve", SERVER, str(PORT), str(SEED))
    with program(lab.state, "server", "rtapp", argv, ready=READY) as running:
        yield running


@dataclass
class Hands:
    """`knows`: the application is told of networks; over lp it is not."""

    lab: Lab
    told: Path
    knows: bool
    discovery_cost: float
    _address: str | None = BLUETOOTH
    _discovered_on: str | None = None

    def __post_init__(self) -> None:
        self._links = {BLUETOOTH: self.lab.links["mile1"], WIFI: self.lab.links["mile2"]}
        self._rates = {at: link.mile for at, link in self._links.items()}
        self._tell(move=False)

    def _tell(self, *, move: bool) -> None:
        tell(self.told, self._address if self.knows else "", move=move)

    def do(self, act: Act) -> None:
        if act in (Act.BLUETOOTH_DIES, Act.BLUETOOTH_LIVES):
            self._links[BLUETOOTH].change(loss=float(act is Act.BLUETOOTH_DIES))
        elif act in (Act.WIFI_ON, Act.WIFI_OFF):
            self._links[WIFI].change(loss=float(act is Act.WIFI_OFF))
        elif act is Act.DISCOVER:
            self._discovered_on = self._address
            self._slow_down(self.discovery_cost)
        elif act is Act.DISCOVERED:  # another network may be in use by now
            self._slow_down(0.0)
        elif act is Act.END:
            for address in {BLUETOOTH, WIFI} - {self._address}:
                self.lab.client.inside("ss", "-K", "src", address, "dport", "=", f":{PORT}")
        elif act is Act.MOVE:
            self._tell(move=True)
        else:
            uses = {Act.USE_WIFI: WIFI, Act.USE_BLUETOOTH: BLUETOOTH, Act.USE_NONE: None}
            self._address = uses[act]
            self._tell(move=False)

    def _slow_down(self, cost: float) -> None:
        assert self._discovered_on is not None
        mile = self._rates[self._discovered_on]
        rates = {way: getattr(mile, way) * (1 - cost) for way in ("down_mbps", "up_mbps")}
        self._links[self._discovered_on].change(**rates)

    def as_before(self) -> None:
        for at, link in self._links.items():
            mile = self._rates[at]
            told = ("loss_down", "loss_up", "down_mbps", "up_mbps")
            link.change(**{name: getattr(mile, name) for name in told})


@dataclass(frozen=True)
class Management:
    """`policy` "": nobody manages anything, and WiFi is there from the start."""

    signal: Rssi
    policy: str
    periods: Periods
    discovery_s: float
    discovery_cost: float
    until_s: float

    @property
    def wifi(self) -> bool:
        return self.policy in ("h3", "")

    def follow(self, folder: Path, began: float, hands: Hands) -> None:
        """The manager in a process of its own, while the hands do what it says."""
        trace = folder / "signal"
        rssi.write(trace, self.signal)
        words = manager.words(
            trace, self.until_s, self.policy, self.periods, self.discovery_s, began
        )
        command = [sys.executable, *words]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    hands.do(Act(line.strip()))
            finally:
                process.kill()
        if process.returncode > 0:
            raise RunFailed(f"the network manager ended with {process.returncode}")


def over_networks(run: "LiveRun", how: Management) -> dict[str, Any]:
    """What the application saw, `began` among it."""
    run.kept("rtapp", lambda: server(run.lab))
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="rtapp-") as name:
        folder = Path(name)
        over = folder / "over"
        hands = Hands(run.lab, folder / "told", run.pair is None, how.discovery_cost)
        files = (str(hands.told), str(over), str(folder))
        words = ("ask", SERVER, str(PORT), str(SEED), *files)
        argv = run.lab.state.enter("client", traffic.command("rtapp", *words))
        try:
            if not how.wifi:
                hands.do(Act.WIFI_OFF)
            left_s = max(0.1, run.deadline - time.monotonic())
            with traffic.running(run, argv, "rtapp", left_s, folder) as client:
                how.follow(folder, run.went, hands)
                time.sleep(max(0.0, run.went + how.until_s - time.monotonic()))
                over.touch()
                return json.loads(client.result()) | {"began": run.went}
        finally:
            hands.as_before()


def longest_gap(came: Sequence[float], since: float, until: float) -> float:
    """Between two chunks, of which nothing came, within two times."""
    within = [it for it in came if since < it < until]
    return max(b - a for a, b in pairwise([since, *within, until]))
