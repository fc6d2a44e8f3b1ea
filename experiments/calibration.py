# SPDX-License-Identifier: MIT
"""Before a sweep: whether this machine's links are on time now, and let through what they should.

A few seconds in a lab of its own for each kind of link that the sweep has. Packets are sent one
way and the kernel tells when they came, so linkem's own account is checked from outside. First one
each millisecond, to see how late they are beyond the delay and the rate; then more than the rate,
to see what arrives of it. The bounds are those past which a run is void (machine.py). What missed
them ends the sweep before it has begun: the machine would be measured.
"""

import math
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from base.shell import enter
from experiments import machine, parameters
from experiments.folder import Results
from experiments.keeper import Broken, Keeper
from experiments.labs import emulators, lateness
from experiments.plan import Run
from experiments.preflight import CannotServe
from experiments.progress import Progress
from experiments.stopping import Stop
from topologies.choice import choose
from topologies.lab import Lab
from topologies.mile import ETHERNET_BYTES, Mile
from topologies.nodes import LabNode
from topologies.paced import PACED
from topologies.parameter import ParameterError, Params
from topologies.topos import LastMile

RTT_MS, QUEUE_MS = 50.0, 100.0
PLAIN_MBPS = 10.0  # where the sweep's links have no rate, or one that varies
MOST_MBPS = 100.0  # a program in Python offers hardly more
RATE_OFF = 0.02  # by which what arrives may differ from the rate
SMALL, FULL = 500, 1514  # bytes of a frame
SMALL_GAP_MS = 1.0
PACED_S, LOADED_S = 1.0, 1.0
OFFERED = 1.1  # times the rate
QUIET_S = 0.3
LIMIT_S = 60.0  # for all of it, the lab included
PORT = 7020
Told = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Of a link: what emulates it, where its bottleneck is, and the fastest that a sweep has."""

    link: str
    bottleneck: str
    mbps: float

    @property
    def delay_ms(self) -> float:
        return 0.0 if self.link == "veth" else RTT_MS / 2

    def mile(self) -> Mile:
        queue = {"queue_down_ms": QUEUE_MS, "queue_up_ms": QUEUE_MS}
        rtt_ms = 2 * self.delay_ms
        return Mile(down_mbps=self.mbps, up_mbps=self.mbps, rtt_ms=rtt_ms, **queue)

    def topology(self) -> LastMile:
        more = {"wan_rtt_ms": 0.0} if self.link == "veth" else {}
        return LastMile(mile=self.mile(), link=self.link, bottleneck=self.bottleneck, **more)


@dataclass(frozen=True)
class Found:
    """What packets met on one way of a link."""

    sent: int
    arrived: int
    late_p99_ms: float  # beyond delay and rate
    late_max_ms: float
    mbps: float
    machine: Told  # as a run keeps it


def kinds(configurations: Iterable[Params]) -> list[Kind]:
    """What a sweep has; none of what no lab can be made of, which the run itself tells."""
    rates: dict[tuple[str, str], float] = {}
    for params in configurations:
        miles = parameters.miles(params)
        with suppress(ParameterError):
            link = choose(str(params["link"]), miles).realisation
            told = [it.down_mbps for it in miles if it.down_mbps and not it.trace_down]
            key = (link, str(params["bottleneck"]))
            rates[key] = max(rates.get(key, 0.0), *told, 0.0)
    return [Kind(*key, min(mbps or PLAIN_MBPS, MOST_MBPS)) for key, mbps in rates.items()]


# --- measured ---


def measure(lab: Lab, kind: Kind) -> Found:
    """In a lab that is as this kind says."""
    meter = machine.Meter(emulators(lab))
    gap_ms = max(SMALL_GAP_MS, 2 * _sending_ms(SMALL, kind))
    sent = round(1e3 * PACED_S / gap_ms)
    paced = _arrivals(lab, SMALL, sent, 1e3 / gap_ms, 0)
    fill = math.ceil(QUEUE_MS / _sending_ms(FULL, kind))
    per_s = OFFERED * 1e3 / _sending_ms(FULL, kind)
    loaded = _arrivals(lab, FULL, fill + round(per_s * LOADED_S), per_s, fill)
    late_ms = sorted(_late_ms(paced, kind))
    told = meter.told(lateness(lab))
    return Found(sent, len(paced), _p99(late_ms), max(late_ms, default=0.0), _mbps(loaded), told)


def _sending_ms(frame: int, kind: Kind) -> float:
    return 8 * frame / (1e3 * kind.mbps)


Arrivals = list[tuple[int, int, int]]  # number, and when it was sent and came, in ns


def _late_ms(arrivals: Arrivals, kind: Kind) -> Iterator[float]:
    """What waits behind a late one is late by the rate, not by the machine."""
    free_ms, sending_ms = -math.inf, _sending_ms(SMALL, kind)
    for _, sent_ns, came_ns in sorted(arrivals):
        free_ms = max(sent_ns / 1e6, free_ms) + sending_ms
        yield came_ns / 1e6 - free_ms - kind.delay_ms


def _p99(ordered: list[float]) -> float:
    return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else 0.0


def _mbps(arrivals: Arrivals) -> float:
    """Between the first and the last, between which the link was busy."""
    times = [came_ns for _, _, came_ns in arrivals]
    if len(times) < 2 or times[-1] == times[0]:
        return 0.0
    return 8e3 * FULL * (len(times) - 1) / (times[-1] - times[0])


def _arrivals(lab: Lab, frame: int, packets: int, per_s: float, first: int) -> Arrivals:
    """From rp to the client, over the last mile alone; in the order in which they came."""
    file = lab.state.folder / "arrivals"
    with _program(lab.client, "receive", PORT, file, QUIET_S) as receiver:
        assert receiver.stdout is not None
        if receiver.stdout.readline() != "ready\n":
            raise RuntimeError("the receiver does not begin")
        payload = frame - ETHERNET_BYTES - 28  # IP and UDP
        words = (lab.client.IP(), PORT, payload, packets, per_s, first)
        with _program(lab.rp, "send", *words) as sender:
            receiver.communicate(timeout=LIMIT_S)
            sender.communicate(timeout=LIMIT_S)  # it stays until its input ends
    got = array("Q")
    got.frombytes(file.read_bytes())
    return list(zip(got[::3], got[1::3], got[2::3], strict=True))


@contextmanager
def _program(node: LabNode, *words: object) -> Iterator["subprocess.Popen[str]"]:
    argv = enter(node.namespace, [sys.executable, PACED, *map(str, words)])
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


# --- judged ---


def missed(kind: Kind, found: Found) -> list[str]:
    """What is past its bound, and by how much; empty: the machine may measure."""
    return [*_late(found), *_off(kind, found), *filter(None, [machine.beyond(found.machine)])]


def _late(found: Found) -> Iterator[str]:
    if found.arrived < found.sent:
        yield f"{found.arrived} of {found.sent} packets arrived over a link that loses none"
    for name, late_ms, bound_us in (
        ("99th percentile", found.late_p99_ms, machine.LATE_P99_US),
        ("most", found.late_max_ms, machine.LATE_MAX_US),
    ):
        if late_ms > bound_us / 1e3:
            yield f"packets were {late_ms:.3g} ms late ({name}; {bound_us / 1e3:g} may be)"


def _off(kind: Kind, found: Found) -> Iterator[str]:
    share = found.mbps / kind.mbps - 1
    if abs(share) > RATE_OFF:
        how = f"{100 * abs(share):.1f} % {'more' if share > 0 else 'less'}"
        yield f"{found.mbps:.4g} Mbit/s instead of {kind.mbps:g}, {how} ({100 * RATE_OFF:g} may be)"


# --- before a sweep ---


class _Doer:
    """In a process of its own, whose lab is removed whatever becomes of it."""

    def allowed_s(self, _order: Kind) -> float:
        return LIMIT_S

    def do(self, order: Kind) -> Told:
        """What was found, or what went wrong."""
        try:
            with Lab(order.topology()) as lab:
                return {"found": asdict(measure(lab, order))}
        except Exception as error:
            return {"wrong": f"{type(error).__name__}: {error}".splitlines()[0]}


@contextmanager
def _begin() -> Iterator[_Doer]:
    yield _Doer()


def _asked(its: list[Kind], stop: Stop) -> list[Told]:
    """One after the other: each would make the other late."""
    found = []
    with Keeper(_begin, lambda _order, _labs: None) as made:
        for kind in its:
            try:
                answer = made.ask(kind, stop)
            except Broken as why:
                raise CannotServe(f"calibration: {why}") from None
            if "wrong" in answer:
                raise CannotServe(f"calibration: {answer['wrong']}")
            found.append(answer["found"])
    return found


def tried(its: list[Kind], stop: Stop) -> Told:
    """Once, for meta.json."""
    began = time.time()
    links, misses = [], []
    for kind, told in zip(its, _asked(its, stop), strict=True):
        past = missed(kind, Found(**told))
        links.append({"kind": asdict(kind), "found": told, "missed": past})
        misses += [f"{kind.link}: {it}" for it in past]
    took_s = round(time.time() - began, 3)
    return {"began": round(began, 3), "took_s": took_s, "links": links, "missed": misses}


def before(
    results: Results,
    runs: Iterable[Run],
    late: bool,
    progress: Progress,
    stop: Stop,
) -> None:
    """Kept in meta.json, beside the call of the command. `late`: begin in any case. Raises
    CannotServe where the machine is late as often as a run may be."""
    its = kinds(run.params for run in runs)
    kept = results.meta["sessions"][-1].setdefault("calibrations", [])
    for attempt in range(1, machine.ATTEMPTS + 1):
        told = tried(its, stop)
        kept.append(told | {"runs_follow": late or not told["missed"]})
        results.save()
        if not told["missed"]:
            return
        text = f"calibration missed: {'; '.join(told['missed'])}"
        if late:
            progress.note(f"{text}; runs follow all the same (--keep-late)")
            return
        if attempt < machine.ATTEMPTS:
            progress.note(f"{text}; attempt {attempt + 1} follows")
    raise CannotServe(
        f"{text}; in {machine.ATTEMPTS} attempts, so no run begins: tm3lab resume {results.path} "
        "later, or with --keep-late"
    )
