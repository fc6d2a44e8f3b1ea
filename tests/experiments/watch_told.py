# SPDX-License-Identifier: MIT
"""Statistics made up for tests of the page: shaped as proxies write them, told by nobody."""

import json
import os
import time
from pathlib import Path
from typing import Any

from base.jsonl import records

Record = dict[str, Any]
NAUGHTY = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
WAITS = ("connecting", "missing", "taking", "credit", "sending", "ending", "idle", "flows")


def start(program: str, at: float) -> Record:
    words = {"transport": "tcp", "binding": "late", "pipe_policy": "soonest", "conn_policy": "las"}
    return {
        "type": "start",
        "program": program,
        "version": "9",
        "time": at,
        "pipes": 2,
        **words,
    } | {"aggregate": "delay"}


def session(at: float, event: str = "begin", reason: str | None = None) -> Record:
    told = {"type": "session", "event": event, "time": at, "session": 1}
    return told | {"peer": "10.0.1.1", "reason": reason}


def pipe(number: int, at: float, tick: int, **more: Any) -> Record:
    sent = 100_000 * tick * (number + 1)
    return {
        "type": "pipe", "time": at, "session": 1, "pipe": number, "state": "up",
        "transport": "tcp", "cc": "cubic", "rtt_ms": 40.25 + tick + 10 * number, "rttmin_ms": 40.0,
        "cwnd": 20 + number, "mss": 1448, "unsent": 1448 * (tick % 3), "in_flight": 1000 * tick + 7,
        "allowance": 2896, "tx_bytes": sent, "rx_bytes": 50 * tick, "tx_messages": tick,
        "rx_messages": tick, "tx_acks": 0, "tx_ack_bytes": 0, "tx_copies": 0,
        "retransmits": tick // 4, "segments": 70 * tick, **more,
    }  # fmt: skip


def aggregate(at: float, tick: int, state: str = "bound") -> Record:
    told = {"type": "aggregate", "time": at, "session": 1, "mode": "delay", "state": state}
    told |= {"limit": 90_000 + tick, "held": 60_000 + tick, "rate_mbps": 9.5, "base_ms": 40.0}
    return told | {"rtt_ms": 44.0, "rounds": tick, "refusals": 0, "yields": 0}


def queues(at: float, tick: int) -> Record:
    each = {name: place + tick for place, name in enumerate(WAITS)}
    told = {"type": "queues", "time": at, "session": 1, "sender": "limit"}
    told |= {"connections": sum(each.values()), **each}
    return told | {"queued": 3000 + tick, "early": 4000 + tick, "kept": 5000 + tick}


def conn(ident: int, closed: float, dst: str = "192.0.2.1:80") -> Record:
    return {
        "type": "conn", "session": 1, "id": ident, "protocol": "tcp", "dst": dst,
        "opened": closed - 0.15, "connected": closed - 0.1, "closed": closed, "tx_bytes": 1000,
        "rx_bytes": 2500, "tx_messages": 3, "rx_messages": 4,
        "reorder_ms": {"p50": 0.0, "p75": 0.0, "p99": 1.5, "max": 2.5}, "reorder_max_messages": 0,
        "reorder_max_bytes": 0, "end": "peer-fin",
    }  # fmt: skip


def sample(at: float, tick: int, pipes: int = 2, state: str = "bound") -> list[Record]:
    each = [pipe(it, at + it * 1e-5, tick) for it in range(pipes)]
    return [*each, aggregate(at, tick, state), queues(at, tick)]


def write(folder: Path, who: str, told: list[Record]) -> None:
    """At the end of what is there, as a proxy does: at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{who}.stats.jsonl").open("a") as file:
        file.write("".join(f"{json.dumps(it)}\n" for it in told))


def read(folder: Path, who: str) -> list[Record]:
    return records((folder / f"{who}.stats.jsonl").read_text())


def record(folder: Path, ticks: int = 40, begun: float | None = None) -> float:
    """Both proxies, ten samples a second, ended long ago unless `begun` says when."""
    at = time.time() - 1000 if begun is None else begun
    for who in ("rp", "lp"):
        told = [start(who, at), session(at + 0.01)]
        for tick in range(ticks):
            told += sample(at + 0.1 * (tick + 1), tick)
            told.append(conn(tick + 1, at + 0.1 * tick + 0.15))
        write(folder, who, told)
        if begun is None:
            os.utime(folder / f"{who}.stats.jsonl", (at, at))
    return at
