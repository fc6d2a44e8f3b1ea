# SPDX-License-Identifier: MIT
"""How exact linkem is on this machine, now: measured from outside and printed.

    python -m tests.net.calibrate [--quick] [--json FILE]

Timing error is what a UDP packet took one way (from just before it was sent until the receiving
kernel saw it) minus what the declared delay and rate say. So it holds the wake-up of linkem, its
work, and a little of the kernel's on both sides.

Ends with 1 where a goal was missed, and says which: timing, a loss that chance does not explain,
or throughput.
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from tests.net.lab import FULL, Bed, bed, measure, tcp_goodput_mbps
from tests.net.probe import rate_mbps
from tests.relay.netns import Namespace, namespace

HEADER = 14
SMALL = 500
P99_GOAL_MS = 0.5
RATE_GOAL_MBPS = 500
Ends = tuple[Namespace, Namespace]


@dataclass(frozen=True)
class Effort:
    timing_packets: int
    loss_packets: int
    load_s: float


FULL_EFFORT = Effort(timing_packets=1000, loss_packets=20000, load_s=4)
QUICK_EFFORT = Effort(timing_packets=200, loss_packets=4000, load_s=1.5)


@dataclass(frozen=True)
class Timing:
    delay_ms: float
    loss: float
    rate_mbps: float | None
    packets: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Loss:
    declared: float
    packets: int
    lost: int
    low: float
    high: float

    @property
    def good(self) -> bool:
        return self.low <= self.lost <= self.high


@dataclass(frozen=True)
class Queue:
    direction: str
    declared_mbps: float
    measured_mbps: float
    declared_ms: float
    measured_ms: float


@dataclass(frozen=True)
class Throughput:
    what: str
    goodput_mbps: float
    packets_per_s: float
    linkem_core: float
    unread: int


def quantile(values: Iterable[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def load() -> str:
    return Path("/proc/loadavg").read_text().split()[0]


# --- timing ---


def timing(lab: Bed, delay_ms: float, loss: float, mbps: float | None, packets: int) -> Timing:
    lab.link.set("ab", delay_ms=delay_ms, loss=loss, rate_mbps=mbps)
    sending_ms = 0.0 if mbps is None else (SMALL + HEADER) * 8 / mbps / 1000
    got = measure(lab, "ab", packets, 0.001, ip_bytes=SMALL)
    # What waits behind a late one is late by the rate, not by linkem: the exact service is known.
    errors, free_ms = [], -math.inf
    arrived = {arrival.number: arrival for arrival in got}
    for number in sorted(arrived):
        sent_ms = arrived[number].sent_ns / 1e6
        free_ms = max(sent_ms, free_ms) + sending_ms
        errors.append(arrived[number].received_ns / 1e6 - free_ms - delay_ms)
    return Timing(
        *(delay_ms, loss, mbps, len(got)),
        *(quantile(errors, 0.5), quantile(errors, 0.99), max(errors)),
    )


def timing_grid(ends: Ends, folder: Path, effort: Effort) -> list[Timing]:
    rows = []
    with bed(ends, folder, ab={"queue_ms": 1000}) as lab:
        timing(lab, 1, 0, None, 50)  # the first packets warm caches
        for delay_ms, loss, mbps in product((1, 25, 100), (0, 0.02), (None, 10, 100)):
            rows.append(timing(lab, delay_ms, loss, mbps, effort.timing_packets))
    return rows


# --- loss ---


def losses(ends: Ends, folder: Path, effort: Effort) -> list[Loss]:
    rows = []
    count = effort.loss_packets
    for seed, declared in enumerate((0.005, 0.01, 0.05), start=1):
        part = folder / f"loss-{seed}"
        part.mkdir()
        with bed(ends, part, ab={"loss": declared}, seed=seed) as lab:
            got = measure(lab, "ab", count, 0.00005, ip_bytes=100)
        reach = 3.29 * math.sqrt(count * declared * (1 - declared))  # 99.9 %
        middle = count * declared
        rows.append(Loss(declared, count, count - len(got), middle - reach, middle + reach))
    return rows


# --- rate and queue ---


def queues(ends: Ends, folder: Path, effort: Effort) -> list[Queue]:
    rows = []
    declared = (("ab", 2.286, 200.0), ("ba", 10.0, 100.0), ("ab", 50.0, 50.0))
    with bed(ends, folder) as lab:
        for direction, mbps, depth_ms in declared:
            lab.link.set(direction, rate_mbps=mbps, queue_ms=depth_ms, delay_ms=10)
            gap_s = (FULL + HEADER) * 8 / (1.1e6 * mbps)
            got = measure(lab, direction, int((effort.load_s + 11 * depth_ms / 1e3) / gap_s), gap_s)
            sending_ms = (FULL + HEADER) * 8 / mbps / 1000
            # What the last tenth waited: by then the queue has been full for long.
            waited = [a.delay_ms - 10 - sending_ms for a in got[-len(got) // 10 :]]
            measured_ms = quantile(waited, 0.5)
            rows.append(Queue(direction, mbps, rate_mbps(got), depth_ms, measured_ms))
    return rows


# --- throughput ---


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(ends: Ends, folder: Path, effort: Effort) -> list[Throughput]:
    rows = []
    kinds: list[tuple[str, dict[str, float]]] = [
        ("no limit", {}),
        ("1000 Mbit/s, 5 ms, queue 20 ms", {"rate_mbps": 1000, "delay_ms": 5, "queue_ms": 20}),
        ("500 Mbit/s, 5 ms, queue 20 ms", {"rate_mbps": 500, "delay_ms": 5, "queue_ms": 20}),
    ]
    for number, (what, declared) in enumerate(kinds):
        part = folder / f"throughput-{number}"
        part.mkdir()
        # One core, and no more: linkem is one thread.
        with bed(ends, part, ab=declared, ba=declared) as lab:
            started, before = time.monotonic(), cpu_s(lab.link.pid)
            goodput = tcp_goodput_mbps(lab, warm_s=1.5, seconds=effort.load_s)
            took_s = time.monotonic() - started
            used = (cpu_s(lab.link.pid) - before) / took_s
            truth = lab.link.truth()
        packets = sum(truth[way]["counters"]["out_packets"] for way in ("ab", "ba"))
        unread = truth["a"]["unread_dropped"] + truth["b"]["unread_dropped"]
        rows.append(Throughput(what, goodput, packets / took_s, used, unread))
    return rows


# --- printing ---


def table(title: str, head: Sequence[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [list(head), *rows]:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def print_timing(rows: list[Timing]) -> None:
    table(
        "timing error of one way, ms",
        ("delay ms", "loss", "Mbit/s", "packets", "p50", "p99", "max"),
        [
            [
                *(f"{r.delay_ms:g}", f"{r.loss:g}", f"{r.rate_mbps or '-'}", str(r.packets)),
                *(f"{r.p50_ms:.3f}", f"{r.p99_ms:.3f}", f"{r.max_ms:.3f}"),
            ]
            for r in rows
        ],
    )
    good = sum(row.p99_ms < P99_GOAL_MS for row in rows)
    print(f"  p99 under {P99_GOAL_MS} ms in {good} of {len(rows)} cells")


def print_losses(rows: list[Loss]) -> None:
    table(
        "independent loss",
        ("declared", "packets", "lost", "99.9 % interval", ""),
        [
            [
                *(f"{r.declared:g}", str(r.packets), str(r.lost), f"{r.low:.0f}-{r.high:.0f}"),
                "inside" if r.good else "OUTSIDE",
            ]
            for r in rows
        ],
    )


def print_queues(rows: list[Queue]) -> None:
    table(
        "rate and queue (in whole packets), UDP offered at 1.1 times the rate",
        ("way", "Mbit/s", "measured", "ratio", "queue ms", "measured", "ratio"),
        [
            [
                *(r.direction, f"{r.declared_mbps:g}", f"{r.measured_mbps:.3f}"),
                *(f"{r.measured_mbps / r.declared_mbps:.4f}", f"{r.declared_ms:g}"),
                *(f"{r.measured_ms:.2f}", f"{r.measured_ms / r.declared_ms:.4f}"),
            ]
            for r in rows
        ],
    )


def print_throughput(rows: list[Throughput]) -> None:
    table(
        "TCP in packets of 1500 bytes; linkem is one thread",
        ("link", "Mbit/s goodput", "packets/s", "of a core", "unread"),
        [
            [
                *(r.what, f"{r.goodput_mbps:.0f}", f"{r.packets_per_s:.0f}"),
                *(f"{r.linkem_core:.2f}", str(r.unread)),
            ]
            for r in rows
        ],
    )
    best = max(row.goodput_mbps for row in rows)
    verdict = "reached" if best >= RATE_GOAL_MBPS else "MISSED"
    print(f"  goal of {RATE_GOAL_MBPS} Mbit/s {verdict}: {best:.0f}")


def conditions() -> dict[str, str | int]:
    return {
        "kernel": platform.release(),
        "cores": os.cpu_count() or 0,
        "load_before": load(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def priority(ends: Ends, folder: Path) -> int:
    with bed(ends, folder) as lab:
        return int(lab.link.ready["fifo"])


# --- goals ---


def missed_timing(rows: Sequence[Timing]) -> list[str]:
    late = [row for row in rows if not row.p99_ms < P99_GOAL_MS]
    if not late:
        return []
    worst = max(late, key=lambda row: row.p99_ms)
    at = f"{worst.delay_ms:g} ms, loss {worst.loss:g}, {worst.rate_mbps or 'no'} Mbit/s"
    return [
        f"timing: p99 is {P99_GOAL_MS} ms or more in {len(late)} of {len(rows)} cells, "
        f"{worst.p99_ms:.3f} ms at {at}"
    ]


def missed_loss(rows: Sequence[Loss]) -> list[str]:
    return [
        f"loss: {row.lost} of {row.packets} packets at {row.declared:g}, "
        f"not {row.low:.0f} to {row.high:.0f}"
        for row in rows
        if not row.good
    ]


def missed_throughput(rows: Sequence[Throughput]) -> list[str]:
    best = max((row.goodput_mbps for row in rows), default=0.0)
    if best >= RATE_GOAL_MBPS:
        return []
    return [f"throughput: {best:.0f} Mbit/s at best, not {RATE_GOAL_MBPS}"]


def no_goal(_rows: Sequence[Queue]) -> list[str]:
    """Of rates and queues the table says how far off they are; tests/net holds them to bounds."""
    return []


def report(effort: Effort) -> dict:
    told: dict = conditions()
    missed: list[str] = []
    print(f"linkem on kernel {told['kernel']}, {told['cores']} cores, load {told['load_before']}")
    parts: list[tuple[str, Callable, Callable, Callable]] = [
        ("timing", timing_grid, print_timing, missed_timing),
        ("loss", losses, print_losses, missed_loss),
        ("queue", queues, print_queues, no_goal),
        ("throughput", throughput, print_throughput, missed_throughput),
    ]
    with tempfile.TemporaryDirectory() as name, namespace("a") as a, namespace("b") as b:
        (Path(name) / "first").mkdir()
        told["fifo"] = priority((a, b), Path(name) / "first")
        print(f"SCHED_FIFO priority {told['fifo'] or 'none'}")
        for part, run, show, misses in parts:
            folder = Path(name) / part
            folder.mkdir()
            rows = run((a, b), folder, effort)
            show(rows)
            told[part] = [asdict(row) for row in rows]
            missed += misses(rows)
    told["missed"] = missed
    told["load_after"] = load()
    print(f"\nload {told['load_before']} before, {told['load_after']} after")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(prog="make calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer packets, shorter loads")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("calibrate: needs root to make network namespaces", file=sys.stderr)
        return 2
    told = report(QUICK_EFFORT if arguments.quick else FULL_EFFORT)
    if arguments.json:
        arguments.json.write_text(json.dumps(told, indent=1) + "\n")
    for what in told["missed"]:
        print(f"calibrate: MISSED: {what}", file=sys.stderr)
    return 1 if told["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
