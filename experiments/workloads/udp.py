# SPDX-License-Identifier: MIT
"""A game, a call and DNS at the same time, then objects by HTTP/3.

Alone, or beside a bulk transfer of the same user.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from experiments.workloads import association, http3, rates, traffic
from experiments.workloads.actors import Bulk, Way
from experiments.workloads.association import Entry
from experiments.workloads.datagrams import FLOWS_PORT, NAMES_PORT
from experiments.workloads.talk import Flow, Queries
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import Program, program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

GAME = {"size": 100, "rate": 60.0}
AUDIO = {"size": 160, "rate": 50.0}
LATE_S = 0.1  # what a receiver of audio can wait for, beyond the packet that took least
SETTLE_S = 3.0  # until the bulk has found its rate and filled whatever queues there are
ALONE_S = 0.3
BULKS: dict[str, Way] = {"download": "down", "upload": "up"}
PORTS = (NAMES_PORT, FLOWS_PORT, *http3.PORTS.values())


def forwards() -> list[str]:
    """lp's options where datagrams come by a port of its own for each of the server's."""
    return association.forwards(SERVER, PORTS)


@contextmanager
def server(lab: Lab) -> Iterator[Program]:
    argv = traffic.command("datagrams", SERVER)
    with program(lab.state, "server", "datagrams", argv, ready=r"^datagrams: ready") as running:
        yield running


def beside_bulk(run: "LiveRun", load: str, entry: Entry, seconds: float) -> dict[str, Any]:
    """`load`: alone, or one of BULKS. The bulk has a program of its own: its bytes, as they are
    compared, delay no packet of the others. Objects by HTTP/3 come after the packets, for as long:
    in their bursts a packet would wait, with pipes and without."""
    run.kept("datagrams", lambda: server(run.lab))
    bulk = BULKS.get(load)
    settle_s = SETTLE_S if bulk else ALONE_S
    common: dict[str, Any] = {
        "entry": entry,
        "after_s": settle_s,
        "seconds": seconds,
    }
    talking = {
        "game": Flow(port=FLOWS_PORT, **GAME, **common),
        "audio": Flow(port=FLOWS_PORT, **AUDIO, **common),
        "names": Queries(port=NAMES_PORT, **common),
    }
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        if bulk:
            actors = {"bulk": Bulk(way=bulk, **traffic.way(run))}
            found = stack.enter_context(traffic.beside(run, actors))
        began = run.went
        talked = traffic.play(run, talking)
        since = run.went - began + settle_s
        fetched = http3.fetch(run, entry, seconds)
    measures = of_flows(talked["game"], talked["audio"]) | of_queries(talked["names"])
    measures |= http3.measures_of(fetched)
    if bulk:
        measures["bulk_mbps"] = rates.mbps(found["bulk"]["bins"], since, since + seconds)
    return measures


def of_flows(game: dict[str, Any], audio: dict[str, Any]) -> dict[str, Any]:
    """Delays are of packets that came back, in milliseconds."""
    measures = {}
    for name, flow in (("game", game), ("audio", audio)):
        for way, key in (("", "took_s"), ("_up", "up_s"), ("_down", "down_s")):
            for share in (50, 99):
                delay_s = rates.quantile(flow[key], share / 100)
                measures[f"{name}{way}_p{share}_ms"] = delay_s * 1e3
        measures[f"{name}_loss"] = 1 - len(flow["took_s"]) / flow["sent"]
    in_time = sum(it <= min(audio["took_s"]) + LATE_S for it in audio["took_s"])
    return measures | {"audio_late": 1 - in_time / audio["sent"]}


def of_queries(names: dict[str, Any]) -> dict[str, Any]:
    p50, p99 = (rates.quantile(names["seconds"], share) for share in (0.5, 0.99))
    return {
        "completion_s": p50,
        "dns_p50_ms": p50 * 1e3,
        "dns_p99_ms": p99 * 1e3,
        "queries": len(names["seconds"]),
        "asked_again": names["again"],
        "dns_unanswered": names["unanswered"] / len(names["seconds"]),
    }
