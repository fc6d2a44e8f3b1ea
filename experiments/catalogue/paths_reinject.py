# SPDX-License-Identifier: MIT
"""One file over two paths, one far or silent, by what goes again before a pipe is given up."""

import random
import time
from functools import partial
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from base.shell import sleep_until
from experiments.catalogue.paths_file import MIB, NAMES, TOLD, before_s, latest, paths_of
from experiments.causes.otherwise import Unused
from experiments.causes.overdue import Overdue
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.oracle import optimum
from experiments.oracle.path import FRESH_WINDOW
from experiments.oracle.silence import fresh_completion_through
from experiments.workloads import account, path_loss, traffic
from experiments.workloads.actors import Transfer
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MODES = ("off", "timely", "mpflex")
BASE: Params = {"preset": "wifi-lte", "pipes": 4, "way": "pipes", "wan_rtt_ms": 4.0, "size": MIB}
# Wi-Fi's rate and round trip, and LTE's.
FAR_LTE: Params = {"mbps": 10.0, "rtt_ms": 50.0, "second_mbps": 9.0, "second_rtt_ms": 150.0}
FAR_WIFI: Params = {"mbps": 12.0, "rtt_ms": 300.0, "second_mbps": 9.0, "second_rtt_ms": 70.0}
CONDITIONS = {"LTE is far": FAR_LTE, "Wi-Fi is far": FAR_WIFI}
LOSSES = (0.0, 0.01)
PUBLISHED = 0.90
SILENT_MS = 300.0
SOONER, MORE = 0.8, 0.05  # of the time without, and of the file, where a path is silent
OVER_LEAST = 1.25  # of the time of who knows of the silence beforehand
UNDISTURBED: Params = {"silent_ms": 0.0}


def runs(mode: str, condition: Params, loss: float) -> Params:
    return {**BASE, **condition, **UNDISTURBED, "loss": loss, "reinject": mode}


def sooner(mode: str, condition: str, loss: float) -> Claim:
    return Claim(
        row="paths-reinject",
        where="MPFlex, 4.3.4",
        says=f"{condition}, {100 * loss:g} % loss, {mode} instead of off (published: 0.85 to 0.95)",
        of=runs(mode, CONDITIONS[condition], loss),
        over=runs("off", CONDITIONS[condition], loss),
        paper=PUBLISHED,
        margin=0.05,
        causes=(Unused("reinjected_share", "What was reinjected"),),
    )


def few(mode: str, condition: str, loss: float) -> Claim:
    return Claim(
        row="paths-reinject",
        where="MPFlex, 4.3.4",
        says=f"{condition}, {100 * loss:g} % loss, what {mode} reinjects of the file",
        of=runs(mode, CONDITIONS[condition], loss),
        metric="reinjected_share",
        paper=0.015,
        expect="less",
        than=0.05,
        causes=(Overdue("size"),),
    )


def silent(mode: str, path: str) -> Params:
    """Over the preset's own paths, without loss."""
    return {**BASE, "loss": 0.0, "silent_ms": SILENT_MS, "silent_path": path, "reinject": mode}


own_bound = partial(Claim, "paths-reinject", OWN)


def over_silence(mode: str, path: str) -> tuple[Claim, Claim]:
    says = f"{TOLD[path]} silent for {SILENT_MS:g} ms"
    of, off = silent(mode, path), silent("off", path)
    again = f"{says}, what {mode} reinjects of the file"
    return (
        own_bound(f"{says}, {mode} instead of off", of, off, than=SOONER),
        own_bound(again, of, metric="reinjected_share", than=MORE),
    )


def near_the_least(mode: str, path: str) -> Claim:
    says = f"{TOLD[path]} silent for {SILENT_MS:g} ms, {mode}: over the least possible"
    return own_bound(says, silent(mode, path), metric="over_least", than=OVER_LEAST)


def nothing_without_loss(mode: str, condition: str) -> Claim:
    return own_bound(
        says=f"{condition}, no loss, {mode}: less than a byte of the file is reinjected",
        of=runs(mode, CONDITIONS[condition], 0.0),
        metric="reinjected_share",
        than=1 / MIB,
    )


class PathsReinject(Experiment):
    name = "paths-reinject"
    ways = ("pipes",)
    title = "What goes again before a pipe is given up"
    question = "How much sooner is a file there if what a pipe is slow to deliver goes again?"
    parameters = (
        Parameter("size", MIB, "size", "of the file", low=1),
        Parameter("reinject", "off", "text", "--reinject of both proxies: off, timely or mpflex"),
        Parameter(
            "silent_ms",
            0.0,
            "number",
            "for which a path loses all packets both ways, from a moment on that is drawn by the "
            "seed, within the least time that the file takes",
            low=0,
        ),
        Parameter("silent_path", "wifi", "text", "which path that is", NAMES),
    )
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("over_least", "completion time over the least possible", "", matters=0.05),
        Metric("reinjected_share", "share of the file that was reinjected", "", matters=0.05),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    paths = NAMES
    grids = (
        *(
            {**BASE, **condition, **UNDISTURBED, "loss": LOSSES, "reinject": MODES}
            for condition in CONDITIONS.values()
        ),
        {**BASE, "loss": 0.0, "silent_ms": SILENT_MS, "silent_path": NAMES, "reinject": MODES},
    )
    reps = 20
    quick_grids = grids
    quick_reps = 5
    in_all_quick = False
    run_seconds = 5.0
    claims = (
        *(
            make(mode, condition, loss)
            for make in (sooner, few)
            for mode in MODES[1:]
            for condition in CONDITIONS
            for loss in LOSSES
        ),
        *(claim for mode in MODES[1:] for path in NAMES for claim in over_silence(mode, path)),
        *(near_the_least("timely", path) for path in NAMES),
        *(nothing_without_loss(mode, it) for mode in MODES[1:] for it in CONDITIONS),
    )
    figures = (
        Figure(
            name="time",
            title="Completion times of 1 MiB",
            kind="cdf",
            hue="reinject",
            facet="second_rtt_ms",
            where=UNDISTURBED,
        ),
        Figure(
            name="share",
            title="Share of the file that goes again",
            kind="against",
            x="loss",
            y="reinjected_share",
            hue="reinject",
            facet="second_rtt_ms",
            where=UNDISTURBED,
        ),
        Figure(
            name="silent",
            title="Completion times of 1 MiB, a path silent for a moment",
            kind="cdf",
            hue="reinject",
            facet="silent_path",
            where={"silent_ms": SILENT_MS},
        ),
    )
    notes = (
        "minrtt at both proxies, as MPFlex has it, and --thin off: what is compared is --reinject "
        "alone. Published is a phone on the Wi-Fi of an office, whose losses are not told; so "
        "there are runs without loss, in which nothing is overdue, and with 1 % each way on both "
        "paths.",
        "A loss of 1 % is repaired by TCP within a round trip, unless it is of a burst's last "
        "segments.",
        "Where a path is silent, the paths are the preset's: Wi-Fi of 7.04 Mbit/s and 50 ms, LTE "
        "of 9.185 Mbit/s and 70 ms. All packets of one of them vanish both ways for 300 ms, from a "
        "moment on that is drawn by the seed, within the least time that the file takes. So it is "
        "the same moment with and without reinjection. The bounds of these runs, and that without "
        "loss nothing is reinjected, are the laboratory's own.",
        "The least possible is that of who knows beforehand when the path is silent, gives it "
        "nothing meanwhile, and goes on at once with the windows of before (fresh ones, on four "
        "pipes): 0.75 s where Wi-Fi is silent and 0.79 s where LTE is, or less where the silence "
        "begins after 0.44 s. Who has to find out sends some in vain, learns that the path is "
        "back a round trip later at the soonest, and repairs by windows that begin with a segment, "
        "so up to a quarter more is allowed.",
        "Through a silence that begins from 0.22 to 0.35 s on the other path carries new bytes, so "
        "that it costs little without reinjection: 0.8 of that is near the least, or below. So not "
        "all moments that are drawn allow for 0.8.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        how = ("--path-policy", "minrtt", "--thin", "off", "--reinject", str(params["reinject"]))
        return list(how)

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        return self.lp_options(params, folder)

    def draws(self, params: Params) -> bool:
        return bool(params["silent_ms"])

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        size = int(run.params["size"])  # type: ignore[arg-type]
        transfer = {"file": Transfer(down=size, **traffic.way(run))}
        with traffic.beside(run, transfer, "client") as together:
            silence(run)
        found = together["file"]
        told = account.account(run, connections=1)
        again = sum(it["reinjected"] for it in latest(told.of("rp", "path")))
        return {
            "completion_s": found["completion_s"],
            "over_least": over_least(run, found["completion_s"]),
            "first_s": found["first_s"],
            "reinjected_share": again / size,
            **told.measures(),
        }


def silent_at_s(params: Params, seed: int) -> float:
    """After the file was asked for, before it could be there."""
    least = optimum.completion(paths_of(params), int(params["size"]))  # type: ignore[arg-type]
    return random.Random(seed).random() * (before_s(params) + least)


def least_s(params: Params, seed: int) -> float:
    """Of the runs in which a path is silent: of who knows beforehand from when on it is."""
    before = before_s(params)
    return before + fresh_completion_through(
        paths_of(params),
        int(params["size"]),  # type: ignore[arg-type]
        str(params["silent_path"]),
        max(0.0, silent_at_s(params, seed) - before),
        float(params["silent_ms"]) / 1e3,  # type: ignore[arg-type]
        FRESH_WINDOW * int(params["pipes"]),  # type: ignore[arg-type]
    )


def over_least(run: "LiveRun", took_s: float | None) -> float | None:
    """None where no path is silent: with loss nobody knows the least."""
    if not run.params["silent_ms"] or took_s is None:
        return None
    return took_s / least_s(run.params, run.seed)


def silence(run: "LiveRun") -> None:
    """Of the path that the run names, where it does."""
    lasts = float(run.params["silent_ms"]) / 1e3  # type: ignore[arg-type]
    if not lasts:
        return
    at = silent_at_s(run.params, run.seed)
    run.facts["silent_at_s"] = at
    sleep_until(run.went + at)
    began = time.monotonic()
    with path_loss.silent(run.lab, NAMES.index(str(run.params["silent_path"]))):
        sleep_until(began + lasts)
