# SPDX-License-Identifier: MIT
"""iperf3: throughput down, up, and both at once.

iperf3 sends what it likes and compares nothing, so this measures rates and no correctness. Its
server must end by itself or a run that fails would leave it busy: each run has its own.
"""

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from base.shell import enter, until
from experiments.failure import RunFailed
from experiments.workloads.traffic import finished
from topologies.addresses import SERVER
from topologies.programs import program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PORT = 5201
WHOLE = 0.9  # of a second, to be one of the series
DIRECTIONS = {"down": ("--reverse",), "up": (), "both": ("--bidir",)}


@dataclass(frozen=True)
class OneWay:
    """What the receiving end had, and what its sender sent again."""

    mbps: float
    retransmits: int
    series_mbps: tuple[float, ...]  # each second, at the receiver


def throughput(run: "LiveRun", direction: str, seconds: int) -> dict[str, OneWay]:
    """By `down` and `up`, those that were asked for. Raises RunFailed. Whole seconds only."""
    argv = ["iperf3", "--server", "--bind", SERVER, "--port", str(PORT), "--json"]
    with program(run.lab.state, "server", "iperf3", argv) as server:
        _wait_for_port(run, server.pid)
        words = ["--client", SERVER, "--port", str(PORT), "--time", str(seconds)]
        words += ["--json", "--get-server-output"]
        words += ["--congestion", str(run.params["cc"]), *DIRECTIONS[direction]]
        client = enter(run.lab.client.namespace, ["iperf3", *words])
        report = json.loads(finished(run, client, "iperf3", run.deadline - time.monotonic()))
    return parsed(report, direction)


def _wait_for_port(run: "LiveRun", pid: int) -> None:
    def listening() -> str:
        return run.lab.server.inside("ss", "-Hltn", f"sport = :{PORT}").strip()

    until(f"iperf3 ({pid}) on port {PORT}", listening, 10.0)


def parsed(report: dict[str, Any], direction: str) -> dict[str, OneWay]:
    """iperf3's JSON, which holds the server's own; --bidir tells the second way by a suffix."""
    if "error" in report:
        raise RunFailed(f"iperf3: {report['error']}")
    server = report["server_output_json"]
    if direction == "down":
        return {"down": _one(report, report, "")}
    found = {"up": _one(report, server, "")}
    if direction == "both":
        found["down"] = _one(report, report, "_bidir_reverse")
    return found


def _one(report: dict[str, Any], receiver: dict[str, Any], suffix: str) -> OneWay:
    received, sent = report["end"][f"sum_received{suffix}"], report["end"][f"sum_sent{suffix}"]
    parts = [part[f"sum{suffix}"] for part in receiver["intervals"]]
    # The last one may be a few milliseconds in which a queue runs dry, at no rate of the link's.
    series = [it["bits_per_second"] / 1e6 for it in parts if it["seconds"] >= WHOLE]
    return OneWay(received["bits_per_second"] / 1e6, int(sent.get("retransmits", 0)), tuple(series))
