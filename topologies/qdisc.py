# SPDX-License-Identifier: MIT
"""Queueing disciplines: set with tc, read back, and refused if the kernel made something else."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from base.shell import CommandError, enter, run
from topologies.mile import ETHERNET_BYTES, Direction, Mile
from topologies.parameter import ParameterError

# What must not be there unless named; a check of None is that it is absent.
NOTHING_ELSE = dict.fromkeys(
    ("options.rate", "options.loss-random", "options.loss-gemodel", "options.duplicate")
)
DELAY_LINE_PACKETS = 1_000_000  # of netem's delay stage: never the limit
WITHIN = 0.01  # tc keeps times in ticks


class QdiscMismatch(RuntimeError):
    """What the kernel has is not what was asked for."""


def show(namespace: Path, device: str) -> list[dict[str, Any]]:
    """The qdiscs of a device with their counters, as tc tells them."""
    return json.loads(run(enter(namespace, ["tc", "-s", "-j", "qdisc", "show", "dev", device])))


def replace(namespace: Path, device: str, words: Sequence[str]) -> None:
    run(enter(namespace, ["tc", "qdisc", "replace", "dev", device, "root", *words]))


def check(found: list[dict[str, Any]], device: str, wanted: Mapping[str, Any]) -> None:
    """`wanted`: paths into tc's answer (options.rate) and values; numbers within 1 %."""
    roots = [qdisc for qdisc in found if qdisc.get("root")]
    if len(roots) != 1:
        raise QdiscMismatch(f"{device} has {len(roots)} root qdiscs: {found}")
    for path, value in wanted.items():
        there: Any = roots[0]
        for key in path.split("."):
            there = there.get(key) if isinstance(there, dict) else None
        if not _alike(there, value):
            raise QdiscMismatch(f"{device}: {path} is {there!r}, not {value!r}, in {roots[0]}")


def _alike(there: Any, wanted: Any) -> bool:
    numbers = isinstance(there, int | float) and isinstance(wanted, int | float)
    if numbers and not isinstance(wanted, bool):
        return math.isclose(there, wanted, rel_tol=WITHIN, abs_tol=1e-9)
    return there == wanted


def put(namespace: Path, device: str, words: Sequence[str], wanted: Mapping[str, Any]) -> None:
    """Sets the root qdisc and reads it back.

    A netem that is replaced by another keeps a rate that is no longer named; then it has to go
    first, with what waits in it.
    """
    replace(namespace, device, words)
    try:
        check(show(namespace, device), device, wanted)
    except QdiscMismatch:
        run(enter(namespace, ["tc", "qdisc", "del", "dev", device, "root"]))
        replace(namespace, device, words)
        check(show(namespace, device), device, wanted)


# --- the sender's own queue -------------------------------------------------------------------


def tbf(direction: Direction, mtu: int) -> tuple[list[str], dict[str, Any]]:
    """A token bucket with the rate and the queue of a direction.

    The bucket holds 2 ms, two packets at least: a timer that is late must not cost rate.
    """
    if direction.mbps is None:
        raise ParameterError("bottleneck", "sender needs a rate, not a trace and not none")
    rate = direction.mbps * 1e6 / 8
    burst = max(2 * (mtu + ETHERNET_BYTES), round(rate * 0.002))
    limit = max(direction.queue_bytes(), burst)
    words = ["tbf", "rate", f"{round(rate * 8)}bit", "burst", str(burst), "limit", str(limit)]
    wanted = {"kind": "tbf", "options.rate": round(rate), "options.burst": burst}
    if limit > burst:  # tc tells the limit as the time behind the bucket
        wanted["options.lat"] = round((limit - burst) / rate * 1e6)
    return words, wanted


# --- netem, where the kernel has it ------------------------------------------------------------


@cache
def why_no_netem() -> str | None:
    """Why this kernel cannot emulate links itself; None if it can. Tried, not guessed."""
    script = (
        "tc qdisc add dev lo root netem delay 10ms rate 10mbit limit 100"
        " && tc -s -j qdisc show dev lo"
    )
    try:
        found = json.loads(run(["unshare", "--net", "--", "sh", "-c", script]))
        check(
            found,
            "lo",
            {
                "kind": "netem",
                "options.limit": 100,
                "options.delay.delay": 0.01,
                "options.rate.rate": 1_250_000,
            },
        )
    except CommandError as why:
        return f"no netem in this kernel: {why.said}"
    except (QdiscMismatch, ValueError) as why:
        return f"no netem that does as told: {why}"
    return None


def why_not_by_netem(mile: Mile) -> str | None:
    """What of a last mile only linkem can do."""
    if mile.trace_down or mile.trace_up:
        return "trace: netem replays no trace"
    if mile.delay_trace:
        return "delay_trace: netem replays none"
    if mile.loss_model in ("periodic", "list"):
        return f"loss_model: netem has no {mile.loss_model} loss"
    if mile.reorder:
        return "reorder: netem lets packets overtake otherwise than linkem"
    if mile.aqm != "tail":
        return f"aqm: netem's own queue has no {mile.aqm}"
    if mile.radio != "none":
        return "radio: netem has no queue below a device"
    if mile.jitter_ms and mile.jitter_dist not in ("uniform", "normal", "pareto"):
        return f"jitter_dist: netem has no {mile.jitter_dist} jitter"
    return None


def netem_gate(mile: Mile, way: Direction, *, rate: bool) -> tuple[list[str], dict[str, Any]]:
    """The first hop of a direction: loss, then the queue, then the rate."""
    words = ["netem"]
    wanted: dict[str, Any] = {"kind": "netem", "options.delay": None, **NOTHING_ELSE}
    if rate and way.mbps is not None:
        # netem also counts the packet that is just being sent.
        limit = max(1, round(way.queue_bytes() / (mile.mtu + ETHERNET_BYTES))) + 1
        words += ["limit", str(limit), "rate", f"{round(way.mbps * 1e6)}bit"]
        del wanted["options.rate"]
        wanted |= {"options.limit": limit, "options.rate.rate": round(way.mbps * 1e6 / 8)}
    else:
        words += ["limit", str(DELAY_LINE_PACKETS)]
        wanted["options.limit"] = DELAY_LINE_PACKETS
    if way.loss and mile.loss_model == "bernoulli":
        words += ["loss", "random", f"{way.loss * 100:.9g}%"]
        del wanted["options.loss-random"]
        wanted["options.loss-random.loss"] = way.loss
    elif way.loss:
        p, r = bursts(way.loss, mile.loss_burst_packets)
        words += ["loss", "gemodel", f"{p * 100:.9g}%", f"{r * 100:.9g}%", "100%", "0%"]
        del wanted["options.loss-gemodel"]
        wanted |= {"options.loss-gemodel.p": p, "options.loss-gemodel.r": r}
    if mile.duplicate:
        words += ["duplicate", f"{mile.duplicate * 100:.9g}%"]
        del wanted["options.duplicate"]
        wanted["options.duplicate.duplicate"] = mile.duplicate
    return words, wanted


def netem_line(mile: Mile, way: Direction) -> tuple[list[str], dict[str, Any]]:
    """The second hop: propagation, jitter and reordering."""
    words = ["netem", "limit", str(DELAY_LINE_PACKETS)]
    wanted: dict[str, Any] = {"kind": "netem", "options.limit": DELAY_LINE_PACKETS, **NOTHING_ELSE}
    if way.delay_ms or mile.jitter_ms:
        words += ["delay", f"{way.delay_ms:g}ms"]
        wanted["options.delay.delay"] = way.delay_ms / 1e3
        wanted["options.delay.jitter"] = 0
    else:
        wanted["options.delay"] = None
    if mile.jitter_ms:
        words += [f"{mile.jitter_ms:g}ms"]
        wanted["options.delay.jitter"] = mile.jitter_ms / 1e3
        if mile.jitter_dist != "uniform":
            words += ["distribution", mile.jitter_dist]
        if not mile.jitter_reorder:
            words += ["rate", "100gbit"]  # with a rate, netem keeps the order
            del wanted["options.rate"]
            wanted["options.rate.rate"] = 12_500_000_000
    return words, wanted


def bursts(share: float, mean_packets: float) -> tuple[float, float]:
    """Gilbert's model for a share of lost packets in bursts of a mean length: (into, out of)."""
    out = 1 / mean_packets
    into = share * out / (1 - share)
    if into > 1:
        raise ParameterError(
            "loss_burst_packets", f"bursts of {mean_packets:g} cannot make up a loss of {share:g}"
        )
    return into, out
