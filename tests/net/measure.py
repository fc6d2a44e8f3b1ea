# SPDX-License-Identifier: MIT
"""Measurements across a link of a lab, and why one may have been disturbed.

Somebody else's load must not decide a test, and a retry must not hide a fault: a measurement is
taken again only if it can be shown that the machine was late.
"""

import json
import math
import re
import statistics
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from base.pressure import pressure_us
from base.shell import enter
from tests.alone import alone
from topologies.lab import Lab
from topologies.linkem import LinkemLink
from topologies.links import EmulatedLink
from topologies.mile import ETHERNET_BYTES, Direction
from topologies.nodes import LabNode
from topologies.paced import PACED

TCP = Path(__file__).parent / "tcp.py"
IP_UDP = 28
TCP_HEADERS = 52  # IP, TCP and its time stamps
LATE_US = 500  # linkem's own promise for the 99th percentile
PRESSURE = 0.05  # share of the time that somebody waited for a core
ATTEMPTS = 4

T = TypeVar("T")


class Wrong(AssertionError):
    """A measured figure is not what was declared."""


@dataclass(frozen=True)
class Way:
    """One direction of a link: who sends, who receives, what is declared."""

    name: str
    sender: LabNode
    receiver: LabNode
    address: str
    declared: Direction
    mtu: int

    @property
    def bits_per_ms(self) -> float:
        assert self.declared.mbps is not None
        return self.declared.mbps * 1e3

    def packet_ms(self, frame: int) -> float:
        return 8 * frame / self.bits_per_ms


def ways(link: EmulatedLink) -> tuple[Way, Way]:
    """Down and up."""
    a, b = link.intf1, link.intf2
    mtu = link.mile.mtu
    return (
        Way("down", b.node, a.node, a.ip, link.mile.direction("down"), mtu),
        Way("up", a.node, b.node, b.ip, link.mile.direction("up"), mtu),
    )


# --- UDP --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What a sender offers: frames of a size, some at once, then so many a second."""

    frame: int
    packets: int
    packets_per_s: float
    first: int = 0


@dataclass(frozen=True)
class Arrivals:
    """What arrived, in the order of arrival."""

    load: Load
    sender_late_ms: float
    numbers: tuple[int, ...]
    sent_ns: tuple[int, ...]
    got_ns: tuple[int, ...]

    def mbps(self) -> float:
        """Between the first and the last arrival; the link must have been busy all the time."""
        seconds = (self.got_ns[-1] - self.got_ns[0]) / 1e9
        return 8 * self.load.frame * (len(self.numbers) - 1) / seconds / 1e6

    def delays_ms(self) -> list[float]:
        return [(b - a) / 1e6 for a, b in zip(self.sent_ns, self.got_ns, strict=True)]

    def lost(self) -> set[int]:
        return set(range(self.load.packets)) - set(self.numbers)

    def in_order(self) -> bool:
        return all(a < b for a, b in pairwise(self.numbers))


def udp(loads: Sequence[tuple[Way, Load]], folder: Path, quiet_s: float = 0.8) -> list[Arrivals]:
    """Offers each load to its way, all at the same time."""
    runs = [_udp_start(way, load, folder, quiet_s) for way, load in loads]
    senders = [
        _udp_send(way, load, port) for (way, load), (port, _, _) in zip(loads, runs, strict=True)
    ]
    for _, receiver, _ in runs:
        _finish(receiver)
    said = [json.loads(_finish(sender)) for sender in senders]
    found = []
    for (_, load), (_, _, file), sender in zip(loads, runs, said, strict=True):
        got = array("Q")
        with file.open("rb") as data:
            got.frombytes(data.read())
        found.append(
            Arrivals(load, sender["late_ms"], tuple(got[::3]), tuple(got[1::3]), tuple(got[2::3]))
        )
    return found


_ports = iter(range(20000, 60000))
_ports_lock = threading.Lock()


def _port() -> int:
    with _ports_lock:
        return next(_ports)


def _start(node: LabNode, script: Path, *words: object) -> subprocess.Popen[str]:
    command = enter(node.namespace, [sys.executable, script, *map(str, words)])
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def _wait_ready(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line == "ready\n", f"{program.args} said {line!r} instead of being ready"


def _finish(program: subprocess.Popen[str], seconds: float = 60.0) -> str:
    out, _ = program.communicate(timeout=seconds)
    assert program.returncode == 0, f"{program.args} ended with {program.returncode}"
    return out


def _udp_start(
    way: Way, load: Load, folder: Path, quiet_s: float
) -> tuple[int, subprocess.Popen[str], Path]:
    port = _port()
    file = folder / f"udp-{way.name}-{port}"
    receiver = _start(way.receiver, PACED, "receive", port, file, quiet_s)
    _wait_ready(receiver)
    return port, receiver, file


def _udp_send(way: Way, load: Load, port: int) -> subprocess.Popen[str]:
    payload = load.frame - ETHERNET_BYTES - IP_UDP
    return _start(
        way.sender,
        PACED,
        *("send", way.address, port, payload, load.packets, load.packets_per_s, load.first),
    )


def overload(way: Way, seconds: float, *, offered: float = 1.1, full: bool = False) -> Load:
    """Fills the queue at once and keeps it full: `offered` times the rate.

    Frames take 1 ms on slow links, so that figures are not made of a few packets; `full` ones
    where the queue counts packets.
    """
    largest = way.mtu + ETHERNET_BYTES
    frame = largest if full else min(largest, max(200, round(way.bits_per_ms / 8)))
    fill = math.ceil(way.declared.queue_bytes() / frame)
    per_s = offered * 1e3 / way.packet_ms(frame)
    return Load(frame, fill + round(per_s * seconds), per_s, fill)


# --- TCP --------------------------------------------------------------------------------------

WINDOW_MAX = 60_000  # what a receiver offers before it has seen data


def standing_ms(queue_ms: float) -> float:
    """What shall wait in the queue: a late sender or receiver may use it up before the link runs
    dry; and less than makes round trips so long that time-outs come."""
    return max(0.5 * queue_ms, min(0.75 * queue_ms, 75.0))


def tcp_mbps(way: Way, rtt_ms: float, folder: Path, seconds: float = 1.5) -> float:
    """Goodput after slow start of as many connections as fill the path and much of the queue.

    Their windows are held there: nothing is lost, and what arrives is what the link lets through.
    """
    loaded_ms = rtt_ms + standing_ms(way.declared.queue_ms)
    path = way.bits_per_ms / 8 * loaded_ms
    connections = math.ceil(path / WINDOW_MAX)
    file, port = folder / f"tcp-{way.name}-{_port()}", _port()
    receiver = _start(way.receiver, TCP, "receive", port, connections, file)
    _wait_ready(receiver)
    skip_s = 2.5 * loaded_ms / 1e3 + 0.2
    sending_s = rtt_ms / 1e3 + skip_s + seconds
    window = round(path / connections)
    words = (way.address, port, connections, window, sending_s)
    _finish(_start(way.sender, TCP, "send", *words))
    _finish(receiver)
    log = array("Q")
    log.frombytes(file.read_bytes())
    times, totals = log[::2], log[1::2]
    first = next(i for i, at in enumerate(times) if at > times[0] + skip_s * 1e9)
    last = next(i for i in reversed(range(len(times))) if times[i] < times[first] + seconds * 1e9)
    return 8e3 * (totals[last] - totals[first]) / (times[last] - times[first])


# --- ping -------------------------------------------------------------------------------------

PING_PAYLOAD = 16
PING_FRAME = PING_PAYLOAD + 8 + 20 + ETHERNET_BYTES


def ping_ms(node: LabNode, address: str, count: int = 15) -> list[float]:
    argv = ["ping", "-n", "-c", count, "-i", "0.05", "-W", "3", "-s", PING_PAYLOAD, address]
    said = node.inside(*map(str, argv))
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", said)]


def idle_rtt_ms(link: EmulatedLink) -> float:
    return statistics.median(ping_ms(link.node_a, link.intf2.ip))


def wanted_rtt_ms(link: EmulatedLink) -> float:
    """What is declared, and a small packet's time on both ways."""
    return link.mile.rtt_ms + sum(way.packet_ms(PING_FRAME) for way in ways(link))


# --- disturbances -----------------------------------------------------------------------------


def lateness_of(name: str, truth: dict[str, Any]) -> list[str]:
    """What a linkem itself says: it was late, or the kernel dropped what it did not fetch."""
    found = [
        f"{name} {way}: linkem was late, {truth[way]['late_us']}"
        for way in ("ab", "ba")
        if truth[way]["late_us"]["p99"] > LATE_US
    ]
    found += [
        f"{name} {end}: {truth[end]['unread_dropped']} frames not fetched"
        for end in ("a", "b")
        if truth[end]["unread_dropped"]
    ]
    return found


def lateness(lab: Lab) -> list[str]:
    return [
        cause
        for name, link in lab.links.items()
        if isinstance(link, LinkemLink)
        for cause in lateness_of(name, link.truth())
    ]


def shown_to_hold(lab: Lab, what: str, attempt: Callable[[], T]) -> T:
    """Runs `attempt`, which raises Wrong; again only while the machine is shown to be late."""
    return again_if_late(partial(lateness, lab), what, attempt)


def again_if_late(late: Callable[[], list[str]], what: str, attempt: Callable[[], T]) -> T:
    """The same, for who knows by `late` whether it was.

    Other tests run beside the first attempt; it is repeated alone.
    """
    history: list[str] = []
    for turn in range(ATTEMPTS):
        with alone() if turn else nullcontext():
            before, start = pressure_us(), time.monotonic()
            try:
                return attempt()
            except Wrong as wrong:
                causes = late()
                after, took = pressure_us(), time.monotonic() - start
                if before is not None and after is not None:
                    share = (after - before) / 1e6 / took
                    if share > PRESSURE:
                        causes.append(f"somebody waited for a core for {share:.0%} of the time")
                history.append(f"{wrong} ({'; '.join(causes) or 'nothing was late'})")
                if not causes:
                    break
    raise Wrong(f"{what}: " + " | ".join(history))


def near(what: str, value: float, wanted: float, *, part: float = 0.0, plus: float = 0.0) -> None:
    """Within a part and a constant of what is wanted; pytest -rP shows all figures."""
    print(f"{what}: {value:.5g}, wanted {wanted:.5g}")
    if not abs(value - wanted) <= part * abs(wanted) + plus:
        raise Wrong(f"{what} is {value:.4g}, not {wanted:.4g} within {part:.0%} + {plus:g}")
