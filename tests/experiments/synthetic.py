# SPDX-License-Identifier: MIT
"""Results folders made up for tests of the report: shaped like real ones, measured by nobody."""

import json
import random
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments import sweep
from experiments.model import Claim, Experiment, Figure, Grid, Metric
from experiments.report.data import Results, load
from experiments.report.runs import Run
from topologies.parameter import Params, Value

COMMON: dict[str, Value] = {
    "way": "pipes",
    "pipes": 8,
    "preset": "wired",
    "size": 300_000,
    "loss": None,
    "rtt_ms": None,
    "binding": "late",
    "pipe_policy": "soonest",
    "cc": "cubic",
    "warm": False,
    "wan_rtt_ms": 4.0,
}
RTT_S, BYTES_PER_S = 0.054, 1.25e6


class Download(Experiment):
    """In the shape of the download experiment."""

    name = "synthetic-download"
    title = "One file over one connection"
    question = "How long does a file take over n pipes, and what does a plain connection need?"
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("retransmits", "retransmits", "segments"),
        Metric("goodput_mbps", "goodput", "Mbit/s", "more", matters=0.02),
    )
    grids = (
        {"preset": ["wired", "lossy"], "size": [50_000, 300_000], "pipes": [1, 2, 4, 8]},
        {"preset": ["wired", "lossy"], "size": [50_000, 300_000], "way": ["direct"]},
    )
    claims = (
        Claim(
            "download",
            "Fig. 9",
            "8 pipes instead of 1, 300 KB",
            of={"pipes": 8, "size": 300_000, "preset": "lossy"},
            over={"pipes": 1, "size": 300_000, "preset": "lossy"},
            paper=0.47,
        ),
        Claim(
            "download",
            "Fig. 9",
            "8 pipes instead of 1, 300 KB, without loss",
            of={"pipes": 8, "size": 300_000, "preset": "wired"},
            over={"pipes": 1, "size": 300_000, "preset": "wired"},
            paper=0.47,
        ),
        Claim(
            "download",
            "Fig. 9",
            "one pipe is like a plain connection",
            of={"pipes": 1, "preset": "wired"},
            over={"way": "direct", "pipes": 0, "preset": "wired"},
            expect="same",
        ),
        Claim(
            "download",
            "Fig. 9",
            "a size that was not run",
            of={"pipes": 8, "size": 2_000_000},
            over={"pipes": 1, "size": 2_000_000},
            paper=0.68,
        ),
    )
    figures = (
        Figure(
            "pipes",
            "Completion time against pipes",
            "against",
            hue="size",
            facet="preset",
            floor="floor_s",
        ),
        Figure(
            "normalised",
            "As a share of one pipe",
            "normalised",
            hue="size",
            facet="preset",
            over={"pipes": 1},
        ),
        Figure("cdf", "Every run, 300 KB", "cdf", facet="preset", where={"size": 300_000}),
        Figure("map", "Pipes by size", "heat", hue="size", facet="preset", over={"pipes": 1}),
        Figure("series", "Throughput and windows", "series", where={"preset": "lossy"}),
    )

    def measure(self, run: Any) -> dict[str, Any]:
        raise NotImplementedError

    def floor_s(self, params: Params) -> float | None:
        assert isinstance(params["size"], int)
        return RTT_S + params["size"] / BYTES_PER_S


class Plain(Download):
    """The same with one plot: for tests that are not about plots."""

    name = "synthetic-plain"
    figures = (Figure("pipes", "Completion time against pipes", "against", hue="size"),)


def seconds(params: Params, seed: int) -> float:
    """Loss costs one connection much and eight pipes little; no loss costs none of them."""
    luck = random.Random(f"{seed} {params['size']}")
    own = random.Random(f"{seed} {sorted(params.items(), key=str)}")
    size, pipes = params["size"], params["pipes"]
    assert isinstance(size, int) and isinstance(pipes, int)
    floor = RTT_S + size / BYTES_PER_S
    start = 0.12 / max(1, pipes)
    lossy = params["preset"] == "lossy"
    lost = luck.expovariate(1 / (size / 4e5)) / max(1, pipes) ** 0.7 if lossy else 0.0
    return (floor + start + lost) * own.uniform(1.0, 1.05)


def configurations(grids: tuple[Grid, ...]) -> list[dict[str, Value]]:
    found: list[dict[str, Value]] = []
    for grid in grids:
        some: list[dict[str, Value]] = [{}]
        for axis, values in grid.items():
            some = [{**it, axis: value} for it in some for value in values]
        found += some
    return [complete(it) for it in found]


def complete(chosen: Mapping[str, Value]) -> dict[str, Value]:
    full = {**COMMON, **chosen}
    if full["way"] != "pipes":
        full.update(pipes=0, binding=None, pipe_policy=None, warm=None)
    return full


def record(experiment: str, params: Params, rep: int, took: float | None, **more: Any) -> dict:
    """One line of runs.jsonl; without a time it is a failure."""
    ident = f"{zlib.crc32(json.dumps(dict(params), sort_keys=True).encode()):08x}-{rep}"
    ok = took is not None
    size = params.get("size")
    assert isinstance(size, int)
    measures = {
        "completion_s": took,
        "retransmits": random.Random(ident).randrange(9) if params["way"] == "pipes" else None,
        "goodput_mbps": size * 8e-6 / took if took else None,
    }
    return {
        "format": 1,
        "experiment": experiment,
        "id": ident,
        "params": dict(params),
        "seed": 100 + rep,
        "rep": rep,
        "block": rep,
        "order": 0,
        "outcome": "ok" if ok else "failed",
        "error": None if ok else "byte 17 is 0x00, not 0x2a <script>alert(1)</script>",
        "completion_s": took,
        "measures": measures if ok else {},
        "started": 1_790_000_000 + rep,
        "took_s": 1.5,
        "logs": f"logs/{ident}" if rep == 0 or not ok else None,
        "link": "linkem",
        **more,
    }


def meta(experiment: Experiment, reps: int) -> dict[str, Any]:
    return {
        "format": 1,
        "experiment": experiment.name,
        "command": ["tm3lab", "run", experiment.name, "--reps", str(reps)],
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "plan": {
            "experiment": experiment.name,
            "axes": {},
            "reps": reps,
            "seed": 100,
            "definition": None,
        },
        "sessions": [
            {
                "started": 1_790_000_000.0,
                "ended": 1_790_000_600.0,
                "command": ["tm3lab", "run", experiment.name],
                "machine": {
                    "kernel": "6.18.0",
                    "system": "Debian GNU/Linux 12 (bookworm)",
                    "cores": 2,
                    "cpu": "A processor & its caches",
                    "memory_kib": 25_165_824,
                },
                "versions": {"commit": "0123456789abcdef", "rp": "rp 0.1.0", "lp": "lp 0.1.0"},
            }
        ],
        "labs": {},
    }


def statistics_of(folder: Path, pipes: int) -> None:
    """What RP writes: a sample of each pipe each 0.1 s."""
    folder.mkdir(parents=True)
    lines = [{"type": "start", "program": "rp", "time": 1000.0, "pipes": pipes}]
    for tick in range(30):
        for pipe in range(pipes):
            lines.append(
                {
                    "type": "pipe",
                    "time": 1000.0 + tick / 10,
                    "session": 1,
                    "pipe": pipe,
                    "state": "up",
                    "cwnd": 10 + (tick * (pipe + 1)) % 23,
                    "tx_bytes": tick * (9000 + 800 * pipe),
                    "rx_bytes": tick * 10,
                }
            )
    (folder / "rp.stats.jsonl").write_text("".join(json.dumps(it) + "\n" for it in lines))


def make(
    folder: Path,
    experiment: Experiment | None = None,
    reps: int = 10,
    fails: Callable[[Params, int], bool] = lambda params, rep: False,
    slower: float = 1.0,
) -> Path:
    """A whole results folder."""
    experiment = experiment or Download()
    folder.mkdir(parents=True)
    lines = []
    for params in configurations(experiment.grids):
        for rep in range(reps):
            took = None if fails(params, rep) else slower * seconds(params, 100 + rep)
            line = record(experiment.name, params, rep, took)
            lines.append(line)
            if line["logs"] and params["way"] == "pipes" and took:
                statistics_of(folder / line["logs"], int(str(params["pipes"])))
    (folder / "runs.jsonl").write_text("".join(json.dumps(it) + "\n" for it in lines))
    (folder / "meta.json").write_text(json.dumps(meta(experiment, reps)))
    return folder


def loaded(folder: Path, experiment: Experiment | None = None) -> Results:
    experiment = experiment or Download()
    return load(folder, lambda name: experiment if name == experiment.name else None)


def made_up(experiment: Experiment, reps: int = 5, *, quick: bool = True) -> Results:
    """Every configuration of a sweep, with numbers that mean nothing."""
    chance = random.Random(experiment.name)
    runs = []
    for params in sweep.configurations(experiment, {}, quick=quick):
        for rep in range(reps):
            took = chance.uniform(0.5, 1.0)
            measures = {it.name: chance.uniform(0.5, 1.0) for it in experiment.metrics}
            measures |= {
                it.pooled.values: [chance.uniform(0.5, 1.0) for _ in range(20)]
                for it in experiment.metrics
                if it.pooled
            }
            name = f"{rep}-{len(runs)}"
            runs.append(Run(name, params, 1 + rep, rep, "ok", measures, took))
    meta = {"format": 1, "experiment": experiment.name}
    return Results(Path("nowhere"), meta, tuple(runs), 0, experiment, True)


def planned(folder: Path, reps: int = 3) -> Path:
    """A results folder that says what was planned, of which all has been run."""
    made = make(folder / "synthetic" / "one", Plain(), reps)
    told = json.loads((made / "meta.json").read_text())
    wanted = configurations(Plain.grids)
    told["plan"] |= {"limit_s": 60.0, "quick": False, "configurations": wanted}
    (made / "meta.json").write_text(json.dumps(told))
    return made
