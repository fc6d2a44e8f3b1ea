# SPDX-License-Identifier: MIT
"""A link by linkem, the user-space emulator: one process, a TAP device at each end."""

import json
import math
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from topologies import radio
from topologies.links import EmulatedLink, LinkMismatch
from topologies.mile import Mile, one_in
from topologies.programs import Program, built
from topologies.qdisc import bursts


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.12g}"


def _loss(mile: Mile, share: float, listed: str | None) -> str:
    if mile.loss_model == "list" and listed:
        return f"list:{listed}"
    if not share:
        return "none"
    if mile.loss_model == "bursty":
        into, out = bursts(share, mile.loss_burst_packets)
        return f"ge:{into:.12g},{out:.12g},1,0"
    if mile.loss_model == "periodic":
        return f"every:{one_in(share)}"
    return f"bernoulli:{share:.12g}"


def words(mile: Mile, way: str, *, rate: bool) -> dict[str, str]:
    """One direction in linkem's own words; `rate` False leaves rate and queue to somebody else.

    All of them, `none` too: what is left out stays as it was before, and is not read back.
    """
    it = mile.direction(way)  # type: ignore[arg-type]
    limited = rate and (it.mbps is not None or it.trace is not None)
    return {
        "rate_mbps": _number(it.mbps if limited else None),
        "trace": str(Path(it.trace).resolve()) if limited and it.trace else "none",
        "delay_ms": _number(it.delay_ms),
        "delay_trace": str(Path(mile.delay_trace).resolve()) if mile.delay_trace else "none",
        "jitter_ms": _number(mile.jitter_ms),
        "jitter_dist": mile.jitter_dist,
        "jitter_reorder": "yes" if mile.jitter_reorder else "no",
        "loss": _loss(mile, it.loss, it.loss_list),
        "duplicate": _number(mile.duplicate),
        "reorder": _number(mile.reorder),
        "reorder_ms": _number(mile.reorder_ms),
        "aqm": mile.aqm,
        "queue_ms": _number(it.queue_ms if limited else None),
        **radio.words(mile, way),  # type: ignore[arg-type]
    }


def as_argument(found: dict[str, str]) -> str:
    def escaped(text: str) -> str:
        return "".join(f"\\{c}" if c.isspace() or c == "\\" else c for c in text)

    return " ".join(f"{key}={escaped(value)}" for key, value in found.items())


def same(wanted: str, there: Any) -> bool:
    """Whether linkem's answer is what was asked for."""
    if wanted == "none":
        return there is None or there == "none"
    if isinstance(there, int | float) and not isinstance(there, bool):
        return math.isclose(float(wanted), there, rel_tol=1e-9)
    if isinstance(there, str) and wanted.startswith(("dscp:", "port:")):
        return radio.ranges(wanted) == radio.ranges(there)
    if isinstance(there, str) and ":" in wanted and not wanted.startswith("/"):
        return wanted.split(":")[0] == there.split(":")[0] and _same_numbers(wanted, there)
    return wanted == there


def _same_numbers(wanted: str, there: str) -> bool:
    kind, _, rest = wanted.partition(":")
    if kind == "list":
        return True  # told sorted and joined, or only counted
    mine, theirs = rest.split(","), there.partition(":")[2].split(",")
    pairs = zip(mine, theirs, strict=False)  # every:N is answered with every:N,FIRST
    return all(math.isclose(float(a), float(b), rel_tol=1e-9) for a, b in pairs)


class LinkemLink(EmulatedLink):
    """`ab` of linkem is up, `ba` is down."""

    realisation = "linkem"

    def make(self) -> None:
        plan = self.plan
        self.control = self.lab.folder / f"{plan.name}.sock"
        argv: list[str | Path] = [
            *(built("linkem"), "--a", self.node_a.namespace, "--b", self.node_b.namespace),
            *("--a-dev", plan.a.device, "--b-dev", plan.b.device),
            *("--a-mac", plan.a.mac, "--b-mac", plan.b.mac),
            *("--mtu", str(plan.mile.mtu), "--seed", str(plan.mile.seed)),
            *("--ab", as_argument(self._words("up")), "--ba", as_argument(self._words("down"))),
            *("--control", self.control),
        ]
        stem = self.lab.log_folder / plan.name
        if self.lab.logs:  # else nobody would read them
            argv += ["--truth", f"{stem}.truth.json", "--samples", f"{stem}.queue.jsonl"]
        self.drops = Path(f"{stem}.drops.jsonl") if self.lab.logs or self.lab.drops else None
        if self.drops:
            argv += ["--drops", self.drops]
        self.program = Program(self.lab, None, plan.name, argv)
        try:
            self.program.expect(r"^linkem: ready")
        except BaseException:
            self.program.stop()
            raise

    def _words(self, way: str) -> dict[str, str]:
        return words(self.mile, way, rate=self.plan.bottleneck == "network")

    def ask(self, line: str) -> dict[str, Any]:
        """One command of linkem's control socket and its answer."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(str(self.control))
            sock.sendall(line.encode() + b"\n")
            with sock.makefile() as answers:
                answer = json.loads(answers.readline())
        if answer.get("ok") is False:
            raise LinkMismatch(f"{self.plan.name}: {answer['error']}")
        return answer

    def truth(self) -> dict[str, Any]:
        """What linkem counted; `ab` is up, `ba` is down."""
        return self.ask("truth")

    def apply(self) -> None:
        for way, name in (("up", "ab"), ("down", "ba")):
            self.ask(f"set {name} {as_argument(self._words(way))}")

    def restart(self, seed: int) -> bool:
        told = self.ask(f"restart {seed}")["seed"]
        if told != seed:
            raise LinkMismatch(f"{self.plan.name}: seed is {told}, not {seed}")
        self.mile = replace(self.mile, seed=seed)
        return True

    def check_emulation(self) -> None:
        there = self.ask("get")
        for way, name in (("up", "ab"), ("down", "ba")):
            for key, wanted in self._words(way).items():
                if not same(wanted, there[name][key]):
                    raise LinkMismatch(
                        f"{self.plan.name}: {key} {way} is {there[name][key]!r}, not {wanted}"
                    )
        for side in ("a", "b"):
            end = there[side]
            offloads = [what for what in ("tso", "gso", "gro") if end[what]]
            if offloads or end["mtu"] != self.mile.mtu:
                raise LinkMismatch(f"{self.plan.name}: {end['dev']}: {end}")

    def evidence(self) -> dict[str, Any]:
        return {"seeded": True, "truth": self.truth()}

    def unmake(self) -> None:
        self.program.stop()
