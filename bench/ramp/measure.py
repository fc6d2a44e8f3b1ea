# SPDX-License-Identifier: MIT
"""A case measured once: memory of its connections, its peak, and what it takes below that."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench import accounts
from bench.measures import last_words, minus, per_role, settled_rss, watching_others
from bench.programs import Running, Trouble, running
from bench.ramp import peak, scene
from bench.ramp.cases import Case
from bench.ramp.generator import Generator, asking
from bench.rivals import Place

BELOW = 0.8  # of the peak, where times and processor time are taken
FIRST_RATE = 2_000.0
ASKER = "bench-ramp"


@dataclass(frozen=True)
class Pace:
    """How long a rate is kept: `settle_s` before it counts, `step_s` while the peak is looked
    for, `hold_s` at BELOW of it. With `rate` no peak is looked for, and that is the one that is
    held."""

    settle_s: float
    step_s: float
    hold_s: float
    rate: float | None = None


def command(case: Case, place: Place, connections: int, seed: int) -> list[str]:
    words = [place.tools["ramp"], "ask", case.kind, str(scene.entry_port(case)), str(case.ports)]
    authority = scene.authority(case, place)
    tail = [str(authority)] if authority else []
    return ["taskset", "-c", str(place.cores[0]), *words, str(connections), str(seed), *tail]


@contextlib.contextmanager
def programs(case: Case, place: Place) -> Iterator[list[Running]]:
    with (
        running([scene.server(case, place)], place.directory) as server,
        running(scene.proxies(case, place), place.directory) as proxies,
    ):
        yield [*server, *proxies]


def look_for_peak(asker: Generator, pace: Pace) -> peak.Peak:
    return peak.find(lambda rate: step_of(asker.step(rate, pace.settle_s, pace.step_s)), FIRST_RATE)


def step_of(told: dict[str, Any]) -> peak.Step:
    return peak.Step(told["rate"], told["due"], told["sent"], told["answered"])


def searched(found: peak.Peak) -> dict[str, Any]:
    steps = [[it.rate, it.due, it.sent, it.answered] for it in found.steps]
    return {"peak": found.rate, "asked": found.asked, "steps": steps}


def not_kept_up(held: dict[str, Any]) -> dict[str, str]:
    """Why a rate is none to measure at: nothing of such a figure is compared."""
    step = step_of(held)
    if step.kept_up():
        return {}
    share = f"{step.answered / step.due:.2f} of {step.rate:.0f} queries a second were answered"
    return {"failed": f"{share}, too few to measure at"}


def cpu_seconds(its: list[Running], asker: Generator) -> dict[str, float]:
    return {**per_role(its, accounts.cpu_seconds), ASKER: accounts.cpu_seconds(asker.pid)}


def take(case: Case, place: Place, pace: Pace, seed: int) -> dict[str, Any]:
    log = place.directory / f"{ASKER}.log"
    with programs(case, place) as its:
        # What the very first connection takes is no part of what each takes.
        with asking(command(case, place, case.ports, seed), log):
            pass
        memory = settled_rss(its)
        with asking(command(case, place, case.connections, seed), log) as asker:
            opened = settled_rss(its)
            memory = minus(opened, memory)
            found = None if pace.rate else look_for_peak(asker, pace)
            before = cpu_seconds(its, asker)
            rate = BELOW * found.rate if found else pace.rate
            held = asker.step(rate, pace.settle_s, pace.hold_s)
            cpu = minus(cpu_seconds(its, asker), before)
    return {
        "opened_s": asker.opened["seconds"],
        "rss_kib": memory,
        "rss_all_kib": opened,
        **(searched(found) if found else {}),
        "held": held,
        "cpu_seconds": cpu,
        **not_kept_up(held),
    }


def measure(case: Case, place: Place, pace: Pace, seed: int) -> dict[str, Any]:
    noise: dict[str, Any] = {}
    shutil.rmtree(place.directory, ignore_errors=True)
    place.directory.mkdir(mode=0o700)
    with watching_others(place.cores, noise):
        try:
            figure = take(case, place, pace, seed)
        except (Trouble, peak.NoPeak) as trouble:
            figure = {"failed": str(trouble), "logs": last_words(place.directory)}
    return {**figure, **noise}


def metrics(figure: dict[str, Any]) -> dict[str, float]:
    """The numbers of a figure that are compared, by name. `cpu.` is microseconds a query, its
    answer included, `kib.` memory of a process for a connection, `all.` the whole of it."""
    if "failed" in figure:
        return {}
    found = {"peak": figure["peak"]} if "peak" in figure else {}
    found |= {
        name: figure["held"][f"{name}_us"] / 1e3
        for name in ("p50", "p95")
        if figure["held"][f"{name}_us"] is not None
    }
    answers = figure["held"]["all"]
    found |= {f"cpu.{role}": spent / answers * 1e6 for role, spent in figure["cpu_seconds"].items()}
    found |= {f"kib.{role}": kib / figure["connections"] for role, kib in figure["rss_kib"].items()}
    found |= {f"all.{role}": kib for role, kib in figure["rss_all_kib"].items()}
    return found
