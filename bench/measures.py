# SPDX-License-Identifier: MIT
"""The measurements: one relay is started, loaded once, and its accounts are read."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import accounts, between
from bench.kinds import ASKS, BULKS, WIRE
from bench.programs import Program, Running, Trouble, running
from bench.rivals import BETWEEN, SERVER_PORT, SOCKS_PORT, Place, Rival

CHECK_BYTES = 8 << 20
IDLE_CHECK_BYTES = 1 << 12  # more would leave a heap behind that hides what connections take
LOAD_SECONDS = 90.0  # what a load may take before it counts as failed
SETTLE_SECONDS = 2.0
SETTLE_STEP_SECONDS = 0.1
SETTLED_KIB = 16
SILENT_SECONDS = 6.0  # what opening connections took besides, who gives it back has done so
LAST_LINES = 20
GIGA = 1e9
WIRE_PART = 8  # of the bytes of a bulk transfer: in packets of 1,500 bytes it takes longer
WIRE_ASK = 100
PACED = ("tcp", "udp", "socks")  # a connection, datagrams by --forward and by SOCKS5
PACED_WAYS = {"up": "", "down": "-down"}  # and how a figure's names end


@dataclass(frozen=True)
class Size:
    bytes: int
    connects: int
    round_trips: int
    idle: int
    packets: int  # of UDP, and as many bytes of TCP
    churn_rate: int  # connections a second
    churn_seconds: int


@dataclass(frozen=True)
class Bench:
    """What is the same for all measurements of a run."""

    load: Path
    place: Place
    size: Size


def arguments(measure: str, rival: Rival, bench: Bench) -> list[str]:
    size = bench.size
    if measure in BULKS:
        bulk = BULKS[measure]
        return ["bulk", bulk.way, str(size.bytes), str(bulk.connections)]
    if measure in ASKS:
        asked = ASKS[measure]
        words = [str(asked.size), str(asked.at_once), str(size.round_trips)]
        return ["ask", *words, "beside" if asked.beside else "alone"]
    if measure == "connects":
        return ["connects", str(size.connects)]
    if measure == "echo":
        return ["echo", str(size.round_trips)]
    if measure == "churn":
        return ["churn", str(size.churn_rate), str(size.churn_seconds)]
    room = bench.place.room(rival.fds_per_connection)
    return ["idle", str(min(size.idle, rival.idle_most, room))]


def load_command(bench: Bench, rival: Rival, arguments: list[str]) -> list[str]:
    ports = [str(rival.entry_port), "-"]
    if rival.socks:
        ports = [str(SERVER_PORT), str(rival.entry_port)]
    return [str(bench.load), *ports, *arguments]


@contextlib.contextmanager
def loaded(command: list[str], seconds: float = LOAD_SECONDS) -> Iterator[dict[str, Any]]:
    """Runs a load until it prints its figure, then lets it end when the caller has looked."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            ready, _, _ = select.select([process.stdout], [], [], seconds)
            line = process.stdout.readline() if ready else ""
            if not line:
                process.kill()
                said = process.stderr.read().strip().splitlines()
                raise Trouble(said[0] if said else f"no figure after {seconds:g} s")
            yield json.loads(line)
            process.stdin.close()
            if process.wait(LOAD_SECONDS) != 0:
                raise Trouble(f"{command[0]} ended with {process.returncode}")
        finally:
            process.kill()


def per_role(relay: list[Running], account: Any) -> dict[str, float]:
    return {part.program.role: account(part.process.pid) for part in relay}


def minus(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {role: after[role] - before[role] for role in after}


def settled_rss(relay: list[Running]) -> dict[str, float]:
    """Resident memory once it no longer moves."""
    deadline = time.monotonic() + SETTLE_SECONDS
    last = per_role(relay, accounts.rss_kib)
    while time.monotonic() < deadline:
        time.sleep(SETTLE_STEP_SECONDS)
        now = per_role(relay, accounts.rss_kib)
        if all(abs(moved) <= SETTLED_KIB for moved in minus(now, last).values()):
            return now
        last = now
    return last


def check(bench: Bench, rival: Rival, measure: str) -> None:
    """Both ways and byte for byte: a relay that is fast and wrong gets no figure."""
    size = IDLE_CHECK_BYTES if measure == "idle" else CHECK_BYTES
    with loaded(load_command(bench, rival, ["check", str(size)])):
        pass


def take_paced(bench: Bench, rival: Rival, relay: list[Running]) -> dict[str, Any]:
    """What datagrams cost, by a forwarded port and by SOCKS5, and what a connection's bytes cost at
    the same pace: up, and down."""
    taken: dict[str, Any] = {}
    packets = str(bench.size.packets)
    by_socks = [str(bench.load), str(SERVER_PORT), str(SOCKS_PORT)]
    for way, after in PACED_WAYS.items():
        datagrams = ["paced-udp", way, packets, str(SERVER_PORT)]
        for protocol, command in (
            ("tcp", load_command(bench, rival, ["paced-tcp", way, packets])),
            ("udp", load_command(bench, rival, datagrams)),
            ("socks", [*by_socks, *datagrams]),
        ):
            cpu = per_role(relay, accounts.cpu_seconds)
            with loaded(command) as figure:
                figure["cpu_seconds"] = minus(per_role(relay, accounts.cpu_seconds), cpu)
            taken[protocol + after] = figure
    return taken


def take_wire(bench: Bench, rival: Rival, count: Callable[[], int]) -> dict[str, Any]:
    """Of bulk, and of small requests."""
    taken: dict[str, Any] = {}
    asks = [str(WIRE_ASK), "1", str(bench.size.round_trips), "alone"]
    for kind, words in (
        ("bulk", ["bulk", "down", str(bench.size.bytes // WIRE_PART), "1"]),
        ("ask", ["ask", *asks]),
    ):
        before = count()
        with loaded(load_command(bench, rival, words)) as figure:
            taken[kind] = {**figure, "between": count() - before}
    return taken


def take(bench: Bench, rival: Rival, measure: str, relay: list[Running]) -> dict[str, Any]:
    if measure == "udp":
        return take_paced(bench, rival, relay)
    command = load_command(bench, rival, arguments(measure, rival, bench))
    memory = settled_rss(relay) if measure == "idle" else {}
    seconds = LOAD_SECONDS + (bench.size.churn_seconds if measure == "churn" else 0)
    cpu = per_role(relay, accounts.cpu_seconds)
    with loaded(command, seconds) as figure:
        figure["cpu_seconds"] = minus(per_role(relay, accounts.cpu_seconds), cpu)
        if measure == "idle":
            time.sleep(SILENT_SECONDS)
            figure["rss_kib"] = minus(settled_rss(relay), memory)
    if rival.forks and measure in ("connects", "churn"):
        del figure["cpu_seconds"]
    return figure


def last_words(directory: Path) -> dict[str, list[str]]:
    """What the programs said last: a failure that cannot be repeated must explain itself."""
    return {
        log.stem: log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        for log in sorted(directory.glob("*.log"))
    }


@contextlib.contextmanager
def watching_others(cores: tuple[int, int], figure: dict[str, Any]) -> Iterator[None]:
    """Notes the share of the cores that processes outside this bench had meanwhile."""

    def look() -> tuple[float, float, float]:
        ours = accounts.ticked_seconds(os.getpid())
        return time.monotonic(), accounts.busy_seconds(set(cores)), ours

    before = look()
    yield
    elapsed, busy, ours = (now - then for now, then in zip(look(), before, strict=True))
    figure["others_share"] = round(max(0.0, busy - ours) / elapsed / len(set(cores)), 3)


def measure_once(bench: Bench, rival: Rival, measure: str) -> dict[str, Any]:
    noise: dict[str, Any] = {}
    with watching_others(bench.place.cores, noise):
        figure = start_and_take(bench, rival, measure)
    return {**figure, **noise}


def start_and_take(bench: Bench, rival: Rival, measure: str) -> dict[str, Any]:
    place = bench.place
    shutil.rmtree(place.directory, ignore_errors=True)
    place.directory.mkdir(mode=0o700)
    server = Program("load", (str(bench.load), "serve", str(SERVER_PORT)), port=SERVER_PORT)
    counting = between.counted(BETWEEN) if measure == WIRE else contextlib.nullcontext()
    try:
        with (
            counting as count,
            running([server], place.directory),
            running(rival.programs(place), place.directory) as relay,
        ):
            check(bench, rival, measure)
            if measure == WIRE:
                return take_wire(bench, rival, count)
            return take(bench, rival, measure, relay)
    except Trouble as trouble:
        return {"failed": str(trouble), "logs": last_words(place.directory)}


def of_paced(figure: dict[str, Any], after: str) -> dict[str, float]:
    """One way: those whose names end so."""
    cost = {
        name: sum(figure[name]["cpu_seconds"].values()) / figure[name]["packets"]
        for name in (f"{protocol}{after}" for protocol in PACED)
        if name in figure  # figures of before have no SOCKS5
    }
    connection = cost.pop(f"tcp{after}")
    found = {f"udp{after}.tcp": connection * 1e6}
    for name, each in cost.items():
        found[f"{name}.cpu"] = each * 1e6
        found[f"{name}.ratio"] = each / connection
        found[f"{name}.lost"] = 100 * (1 - figure[name]["came"] / figure[name]["packets"])
    return found


def metrics(measure: str, figure: dict[str, Any]) -> dict[str, float]:
    """The numbers of a figure that are compared, by name."""
    if "failed" in figure:
        return {}
    if measure == "udp":
        return {
            name: value
            for after in PACED_WAYS.values()
            if f"tcp{after}" in figure  # figures of before have no way down
            for name, value in of_paced(figure, after).items()
        }
    if measure == WIRE:
        bulk, asked = figure["bulk"], figure["ask"]
        return {
            "wire.bulk": 100 * (bulk["between"] / bulk["bytes"] - 1),
            "wire.ask": asked["between"] / asked["requests"],
        }
    cpu = figure.get("cpu_seconds", {})
    if measure in BULKS:
        found = {f"{measure}.rate": figure["bytes"] / figure["seconds"] / GIGA}
        if cpu:
            found[f"{measure}.cpu"] = sum(cpu.values()) / figure["bytes"] * GIGA
        return found
    if measure in ("connects", "churn"):
        found = {f"{measure}.rate": figure["connections"] / figure["seconds"]}
        if cpu:
            found[f"{measure}.cpu"] = sum(cpu.values()) / figure["connections"] * 1e6
        if measure == "churn":
            found["churn.pause"] = figure["pause_s"] * 1e3
            found["churn.p99"] = figure["p99_us"] / 1e3
            found["churn.unanswered"] = figure["unanswered"]
        return found
    if measure == "echo" or measure in ASKS:
        return {f"{measure}.{name}": figure[f"{name}_us"] for name in ("p50", "p99")}
    each = {r: kib / figure["connections"] for r, kib in figure["rss_kib"].items()}
    return {"idle.memory": sum(each.values()), **{f"idle.{r}": kib for r, kib in each.items()}}
