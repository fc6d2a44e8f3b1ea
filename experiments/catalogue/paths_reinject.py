# SPDX-License-Identifier: MIT
"""One file over two paths of which one is far, by what goes again before a pipe is given up."""

from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_file import MIB, NAMES, latest
from experiments.causes.otherwise import Unused
from experiments.causes.overdue import Overdue
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import account, traffic
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


def runs(mode: str, condition: Params, loss: float) -> Params:
    return {**BASE, **condition, "loss": loss, "reinject": mode}


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


class PathsReinject(Experiment):
    name = "paths-reinject"
    ways = ("pipes",)
    title = "What goes again before a pipe is given up"
    question = "How much sooner is a file there if what a pipe is slow to deliver goes again?"
    parameters = (
        Parameter("size", MIB, "size", "of the file", low=1),
        Parameter("reinject", "off", "text", "--reinject of both proxies: off, timely or mpflex"),
    )
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("reinjected_share", "share of the file that was reinjected", "", matters=0.05),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    paths = NAMES
    grids = tuple(
        {**BASE, **condition, "loss": LOSSES, "reinject": MODES}
        for condition in CONDITIONS.values()
    )
    reps = 20
    quick_grids = tuple(
        {**BASE, **condition, "loss": LOSSES, "reinject": MODES}
        for condition in CONDITIONS.values()
    )
    quick_reps = 5
    in_all_quick = False
    run_seconds = 5.0
    claims = tuple(
        make(mode, condition, loss)
        for make in (sooner, few)
        for mode in MODES[1:]
        for condition in CONDITIONS
        for loss in LOSSES
    )
    figures = (
        Figure(
            name="time",
            title="Completion times of 1 MiB",
            kind="cdf",
            hue="reinject",
            facet="second_rtt_ms",
        ),
        Figure(
            name="share",
            title="Share of the file that goes again",
            kind="against",
            x="loss",
            y="reinjected_share",
            hue="reinject",
            facet="second_rtt_ms",
        ),
    )
    notes = (
        "minrtt at both proxies, as MPFlex has it, and --thin off: what is compared is --reinject "
        "alone. Published is a phone on the Wi-Fi of an office, whose losses are not told; so "
        "there are runs without loss, in which nothing is overdue, and with 1 % each way on both "
        "paths.",
        "A loss of 1 % is repaired by TCP within a round trip, unless it is of a burst's last "
        "segments.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        how = ("--path-policy", "minrtt", "--thin", "off", "--reinject", str(params["reinject"]))
        return list(how)

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        return self.lp_options(params, folder)

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        size = int(run.params["size"])  # type: ignore[arg-type]
        found = traffic.play(run, {"file": Transfer(down=size, **traffic.way(run))})["file"]
        told = account.account(run, connections=1)
        again = sum(it["reinjected"] for it in latest(told.of("rp", "path")))
        return {
            "completion_s": found["completion_s"],
            "first_s": found["first_s"],
            "reinjected_share": again / size,
            **told.measures(),
        }
