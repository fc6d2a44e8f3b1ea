# SPDX-License-Identifier: MIT
"""132 objects in three bursts over two slow paths: whose bytes come next, and over which path."""

import itertools
import math
import random
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path as Folder
from statistics import fmean
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_file import NAMES, path_of
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.oracle.fluid import Message, simulate
from experiments.parameters import miles
from experiments.workloads import rates, traffic
from experiments.workloads.bursts import Bursts
from experiments.workloads.exchange import REPLY_BYTES
from experiments.workloads.web.hints import FIRST_PORTS
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

OBJECTS, BURSTS = 132, 3
WITHIN_S = 0.1  # of a burst: from its first object to its last
LEAST_BYTES = 200
STEP_S = 0.05
# Of our proxies, and what the oracle calls them.
CONNECTIONS = {"srpt": "srpt", "rr": "rr", "fifo": "fcfs"}
PATHS = ("ecf", "minrtt")
NAMED = {
    "SRPT-ECF": ("srpt", "ecf"),
    "SA-ECF": ("rr", "ecf"),
    "FCFS-MinRTT": ("fifo", "minrtt"),
    "SRPT-MinRTT": ("srpt", "minrtt"),
}
# The rates of the figure's caption, in Mbit/s, and those of the text beside it.
RATES: dict[str, Params] = {
    "1050 and 750 kbit/s": {"mbps": 1.05, "second_mbps": 0.75},
    "1200 and 600 kbit/s": {"mbps": 1.2, "second_mbps": 0.6},
}
PIPES = 2
BASE: Params = {"preset": "mobile-dsl", "way": "pipes", "pipes": PIPES, "warm": True}
MEAN, TENTH = 0.65, 0.75
OVER_FLUID = 1.25


def runs(policies: tuple[str, str], at: str) -> Params:
    connection, path = policies
    return {**BASE, **RATES[at], "conn_policy": connection, "path_policy": path}


NOT_DIVIDED = (
    "What is shorter than a packet goes over one path, mostly the near one, under both policies: "
    "computed in packets of 1460 bytes (oracle/batch.py) the 10th percentile under SRPT-ECF is "
    "0.94 (0.83 to 0.99) of that under SRPT-MinRTT, 0.97 (0.88 to 1.01) with the other rates, ten "
    "seeds. In a fluid it is 0.43 and 0.41, because there minrtt gives the far path a part of each "
    "object."
)


AHEAD = (
    "What a path was given goes before all that comes later, however short. The limit wishes for a "
    "queue of three segments at least, which at 1 Mbit/s are 35 ms; under way were 13.8 and 18.6 "
    "KB in the mean, where rate and round trip are 8.4 and 14.1: four segments each. Computed in "
    "packets with four ahead (oracle/batch.py, ten seeds) the mean under SRPT-ECF is 1.12 (1.09 to "
    "1.16) of the fluid's, 1.13 (1.10 to 1.17) with the other rates, and with none ahead 1.00 and "
    "1.01. What is left, 0.04 to 0.06, FCFS-MinRTT has as well, which is 1.00 with four ahead. It "
    "is the same time for all objects, so it is most where the fluid's mean is least."
)


def instead(at: str, other: str, metric: str, than: float, note: str = "") -> Claim:
    what = {"mean_s": "mean time", "p10_s": "10th percentile"}[metric]
    return Claim(
        row="paths-objects",
        where=OWN,
        says=f"{at}: {what}, SRPT-ECF instead of {other}",
        of=runs(NAMED["SRPT-ECF"], at),
        over=runs(NAMED[other], at),
        metric=metric,
        than=than,
        note=note,
    )


def near_fluid(at: str, name: str) -> Claim:
    return Claim(
        row="paths-objects",
        where=OWN,
        says=f"{at}: mean time under {name}, over what its fluid computes",
        of=runs(NAMED[name], at),
        metric="over_fluid",
        unit="times",
        than=OVER_FLUID,
        note=AHEAD if name == "SRPT-ECF" else "",
    )


@dataclass(frozen=True)
class Load:
    """Objects as they are asked for: sizes in bytes, and seconds after the first burst."""

    sizes: tuple[int, ...]
    at_s: tuple[float, ...]


def load_of(seed: int, count: int, median: int, spread: float, gap_s: float) -> Load:
    """Sizes of a log-normal distribution; of each third of the objects a burst."""
    chance = random.Random(seed)
    sizes = [
        max(LEAST_BYTES, round(median * math.exp(chance.gauss(0.0, spread)))) for _ in range(count)
    ]
    at = [n * BURSTS // count * gap_s + WITHIN_S * chance.random() for n in range(count)]
    return Load(tuple(sizes), tuple(sorted(at)))


class PathsObjects(Experiment):
    name = "paths-objects"
    ways = ("pipes",)
    title = "132 objects in three bursts over two slow paths"
    question = "How much sooner are objects there if the shortest go first, each by the right path?"
    parameters = (
        Parameter(
            "path_policy",
            "ecf",
            "text",
            "which path carries the next bytes, at both proxies",
            PATHS,
        ),
        Parameter("objects", OBJECTS, "whole", "in all bursts together", low=BURSTS, high=250),
        Parameter("median_size", 3000, "size", "of the objects, the median", low=LEAST_BYTES),
        Parameter(
            "log_deviation",
            1.2,
            "number",
            "standard deviation of the logarithm of sizes",
            low=0,
            high=3,
        ),
        Parameter("gap_s", 1.0, "number", "from one burst to the next", low=0, high=60),
    )
    metrics = (
        Metric("mean_s", "time of an object, mean", "s", matters=0.05),
        Metric("p10_s", "time of an object, 10th percentile", "s", matters=0.05),
        Metric("p50_s", "time of an object, median", "s", matters=0.05),
        Metric("p90_s", "time of an object, 90th percentile", "s", matters=0.05),
        Metric(
            "over_fluid", "mean time of an object / what the fluid model computes", "", "neither"
        ),
        Metric("completion_s", "time until the last object is there", "s", matters=0.05),
        Metric("alive_mean", "objects that are waited for, mean", "", matters=0.05),
    )
    shown = ("p10_s", "p90_s", "over_fluid", "completion_s", "alive_mean")
    paths = NAMES
    grids = tuple(
        {**BASE, **at, "conn_policy": tuple(CONNECTIONS), "path_policy": PATHS}
        for at in RATES.values()
    )
    reps = 20
    quick_grids = tuple(
        {**BASE, **at, "conn_policy": connection, "path_policy": path}
        for at in RATES.values()
        for connection, path in NAMED.values()
    )
    quick_reps = 5
    in_all_quick = False
    run_seconds = 18.0
    claims = tuple(
        claim
        for at in RATES
        for claim in (
            instead(at, "SA-ECF", "mean_s", MEAN),
            instead(at, "FCFS-MinRTT", "mean_s", MEAN),
            instead(at, "SRPT-MinRTT", "p10_s", TENTH, NOT_DIVIDED),
            *(near_fluid(at, name) for name in NAMED),
        )
    )
    figures = (
        *(
            Figure(
                name=f"times-{name}",
                title=f"Times of objects over paths of {at}",
                kind="cdf",
                y="mean_s",
                hue="conn_policy",
                where=RATES[at],
                listed="times_s",
                log=True,
            )
            for name, at in zip(("caption", "text"), RATES, strict=True)
        ),
        Figure(
            name="alive",
            title="Objects that are waited for over paths of 1050 and 750 kbit/s",
            kind="series",
            y="series_waited_for_objects",
            where=RATES["1050 and 750 kbit/s"],
        ),
        Figure(
            name="mean",
            title="Mean time of an object",
            kind="against",
            y="mean_s",
            x="conn_policy",
            hue="path_policy",
            facet="mbps",
        ),
    )
    notes = (
        "After figures 4.11 and 4.12 of Jonglez: 132 images of a page over paths of 1050 kbit/s "
        "and 67 ms and of 750 kbit/s and 151 ms (by its text 80 and 40 % of 1500), as a fluid in a "
        "simulator. Its values were published as curves only, so none is claimed. Its trace cannot "
        "be had: sizes here are synthetic, log-normal, drawn anew from each seed, and so are the "
        "moments within the three bursts. Each policy has the same objects.",
        "SRPT-ECF is srpt with ecf, SA-ECF rr with ecf, FCFS-MinRTT fifo with minrtt, SRPT-MinRTT "
        "srpt with minrtt, at both proxies. Each object has a connection of its own, open before "
        "it is asked for, and lp was told its size (hint) for rp. Its time is from the request to "
        "the last byte.",
        "What a fluid computes is of the same objects under the same two policies: paths at their "
        "rates behind headers, each object there at rp when its request and rp's server took what "
        "they take. `mean` is held to 1.25 of that.",
        f"{PIPES} pipes over each path, which carried 1 MB before; they rest for a second while "
        "the connections are opened.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        return ["--path-policy", str(params["path_policy"])]

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        return self.lp_options(params, folder)

    def controls(self, params: Params) -> bool:
        return True

    def draws(self, params: Params) -> bool:
        return True

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        assert run.pair is not None and run.pair.control is not None
        number = {name: float(run.params[name]) for name in ("log_deviation", "gap_s")}  # type: ignore[arg-type]
        count, median = (int(run.params[name]) for name in ("objects", "median_size"))  # type: ignore[arg-type]
        load = load_of(run.seed, count, median, number["log_deviation"], number["gap_s"])
        ports = run.kept("ports", lambda: nullcontext(itertools.cycle(FIRST_PORTS)))
        actor = Bursts(
            port=traffic.PORT,
            sizes=load.sizes,
            at_s=load.at_s,
            control=str(run.pair.control),
            first_port=next(ports),
        )
        found = traffic.play(run, {"objects": actor})["objects"]
        return seen(found["asked_s"], found["times_s"]) | {
            "over_fluid": fmean(found["times_s"]) / fluid_mean_s(run.params, load)
        }


def fluid_mean_s(params: Params, load: Load) -> float:
    """Under the same policies, from the request on."""
    sides = miles(params)
    before_s = (min(it.rtt_ms for it in sides) / 2 + float(params["wan_rtt_ms"])) / 1e3  # type: ignore[arg-type]
    paths = [path_of(name, it) for name, it in zip(NAMES, sides, strict=True)]
    messages = [
        Message(size + REPLY_BYTES, at) for size, at in zip(load.sizes, load.at_s, strict=True)
    ]
    connection = CONNECTIONS[str(params["conn_policy"])]
    return before_s + simulate(paths, messages, connection, str(params["path_policy"])).mean


def seen(asked_s: Sequence[float], times_s: Sequence[float]) -> dict[str, Any]:
    """`asked_s`: from the run's begin on, as the series is."""
    ends = [at + took for at, took in zip(asked_s, times_s, strict=True)]
    lasted = max(ends) - min(asked_s)
    return {
        "completion_s": lasted,
        "mean_s": fmean(times_s),
        **{f"p{share}_s": rates.quantile(times_s, share / 100) for share in (10, 50, 90)},
        "alive_mean": sum(times_s) / lasted,
        "times_s": [round(it, 5) for it in times_s],
        "series_step_s": STEP_S,
        "series_waited_for_objects": alive(asked_s, ends),
    }


def alive(asked_s: Sequence[float], ends_s: Sequence[float]) -> list[int]:
    """How many objects were asked for and not there, at the end of each step."""
    steps = math.ceil(max(ends_s) / STEP_S)
    moments = [STEP_S * (n + 1) for n in range(steps)]
    spans = list(zip(asked_s, ends_s, strict=True))
    return [sum(asked <= at < end for asked, end in spans) for at in moments]
