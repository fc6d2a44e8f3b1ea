# SPDX-License-Identifier: MIT
"""A point measured once: what rp and lp take for a message, and their memory."""

import contextlib
import json
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import accounts
from bench.growth import gap, scene
from bench.growth.axes import Point, Scene
from bench.measures import last_words, minus, per_role, watching_others
from bench.programs import Program, Running, Trouble, running
from bench.rivals import ENTRY_PORT, SERVER_PORT, Place

MESSAGE = 100  # bytes, there and back
OPEN_SECONDS = 120.0  # tens of thousands of connections
MORE_SECONDS = 30.0
LOCAL = "lp"


@dataclass(frozen=True)
class Pace:
    settle_s: float  # before it counts
    hold_s: float


class Turns:
    """bench-load's connections, each of which has its turn."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def line(self, seconds: float) -> dict[str, Any]:
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._process.kill()
            said = self._process.stderr.read().strip().splitlines()
            raise Trouble(said[0] if said else f"no word in {seconds:g} s")
        return json.loads(line)

    def take(self, seconds: float) -> int:
        with contextlib.suppress(BrokenPipeError):  # then its last words say why
            print(f"{seconds:g}", file=self._process.stdin, flush=True)
        return int(self.line(seconds + MORE_SECONDS)["messages"])


@contextlib.contextmanager
def turns(command: Sequence[str]) -> Iterator[Turns]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            found = Turns(process)
            found.line(OPEN_SECONDS)
            yield found
        finally:
            process.kill()


def seconds_of(pid: int) -> float:
    """Of one that has no children: with hundreds of processes a look for these takes seconds."""
    return accounts.nanoseconds(pid) / 1e9


def of_roles(each: dict[str, float]) -> dict[str, float]:
    """What all local proxies took is one figure."""
    locals_ = sum(value for role, value in each.items() if role != "rp")
    return {"rp": each["rp"]} | ({LOCAL: locals_} if len(each) > 1 else {})


def spread(it: Scene, place: Place, pace: Pace, load: str) -> dict[str, Any]:
    """Messages in turn over all connections."""
    serve = Program("load", (load, "serve", str(SERVER_PORT)), port=SERVER_PORT)
    words = ["turns", str(it.connections), str(it.sessions), str(MESSAGE)]
    with (
        running([serve], place.directory),
        scene.programs(it, place, it.sessions) as (rp, lps),
    ):
        every: list[Running] = [rp, *lps]
        with turns([load, str(ENTRY_PORT), "-", *words]) as going:
            going.take(pace.settle_s)
            before = per_role(every, seconds_of)
            messages = going.take(pace.hold_s)
            cpu = minus(per_role(every, seconds_of), before)
            memory = per_role(every, accounts.resident_kib)
    return {"messages": messages, "cpu_seconds": of_roles(cpu), "rss_kib": of_roles(memory)}


def gaps(it: Scene, place: Place, pace: Pace, _: str) -> dict[str, Any]:
    """Gaps of one length, one after the other, and the most that rp's memory was."""
    with scene.programs(it, place, 0) as (rp, _lps), gap.out_of_step() as lp:
        lp.round(it.gap)
        messages, until = 0, time.monotonic() + pace.hold_s
        before = seconds_of(rp.process.pid)
        while time.monotonic() < until:
            messages += lp.round(it.gap)
        cpu = seconds_of(rp.process.pid) - before
        memory = accounts.peak_kib(rp.process.pid)
    return {"messages": messages, "cpu_seconds": {"rp": cpu}, "rss_kib": {"rp": memory}}


def measure(point: Point, place: Place, pace: Pace, load: str) -> dict[str, Any]:
    noise: dict[str, Any] = {}
    it = point.scene()
    shutil.rmtree(place.directory, ignore_errors=True)
    place.directory.mkdir(mode=0o700)
    with watching_others(place.cores, noise):
        try:
            figure = (gaps if it.gap else spread)(it, place, pace, load)
            if not figure["messages"]:
                figure = {"failed": "not one message came back"}
        except (Trouble, OSError) as trouble:
            figure = {"failed": str(trouble), "logs": last_words(place.directory)}
    return {**figure, **noise}


def metrics(figure: dict[str, Any]) -> dict[str, float]:
    """`cpu.` is microseconds of a process a message, `mib.` what it has resident in all."""
    if "failed" in figure:
        return {}
    cpu, memory = figure["cpu_seconds"], figure["rss_kib"]
    return {f"cpu.{role}": spent / figure["messages"] * 1e6 for role, spent in cpu.items()} | {
        f"mib.{role}": kib / 1024 for role, kib in memory.items()
    }
