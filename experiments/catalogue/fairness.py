# SPDX-License-Identifier: MIT
"""n pipes beside m plain connections over the same bottleneck: who gets how much."""

from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import rates, rivals, traffic
from experiments.workloads.actors import Actor, Bulk, Pause
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

PIPES = (1, 2, 4, 8)
PLAIN = (1, 4)
SETTLE_S = 2.0


def claim(pipes: int, plain: int) -> Claim:
    of: Params = {"pipes": pipes, "plain": plain, "way": "pipes", "binding": "late"}
    each = pipes / (pipes + plain)
    return Claim(
        row="fairness",
        where="not published",
        says=f"{pipes} pipes beside {plain} plain: share, each pipe as a connection: {each:.2f}",
        of=of,
        metric="share",
        unit="share",
        expect="same",
        than=each,
        within=0.15,
    )


class Fairness(Experiment):
    name = "fairness"
    title = "Pipes beside plain connections"
    question = "What is left for others when a download goes over several pipes?"
    parameters = (
        Parameter("plain", 1, "whole", "plain connections beside", low=1, high=64),
        Parameter("seconds", 4.0, "number", "measured after the start", low=1),
    )
    metrics = (
        Metric("share", "share of the download", "", "neither", matters=0.05),
        Metric("jain", "Jain's index over connections of applications", "", "more", matters=0.02),
        Metric("jain_pipes", "Jain's index, each pipe counted as a connection", "", "more"),
        Metric("download_mbps", "goodput of the download", "Mbit/s", "neither"),
        Metric("plain_mbps", "goodput of a plain connection", "Mbit/s", "more"),
        Metric("total_mbps", "goodput in all", "Mbit/s", "more", matters=0.02),
    )
    grids = (
        {"plain": (1, 2, 4, 8), "pipes": PIPES, "binding": ("late", "early")},
        {"plain": (1, 2, 4, 8), "way": ("direct",)},
    )
    reps = 10
    quick_grids = (
        {"plain": PLAIN, "pipes": (1, 8)},
        {"plain": PLAIN, "way": ("direct",)},
    )
    quick_reps = 5
    run_seconds = 6.0
    claims = tuple(claim(pipes, plain) for plain in PLAIN for pipes in (1, 8))
    figures = (
        Figure(
            name="share",
            title="Share of a download over pipes beside plain connections",
            kind="against",
            y="share",
            hue="plain",
        ),
        Figure(name="jain", title="Jain's index", kind="against", y="jain", hue="plain"),
    )
    notes = (
        "All are downloads of one client over one last mile (wired, CUBIC). The share that pipes "
        "would have if each counted as a connection is n/(n+m); what counts as fair is a matter of "
        "opinion: both of Jain's indices are told. No figure is published.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        rivals.around_lp(run)
        plain = int(run.params["plain"])  # type: ignore[arg-type]
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        actors: dict[str, Actor] = {
            f"plain{n}": Bulk(port=traffic.PLAIN_PORT) for n in range(plain)
        }
        actors |= {"download": Bulk(**traffic.way(run)), "clock": Pause(seconds=SETTLE_S + seconds)}
        found = traffic.play(run, actors)
        goodput = {
            name: rates.mbps(found[name]["bins"], SETTLE_S, SETTLE_S + seconds) or 0.0
            for name in actors
            if name != "clock"
        }
        return shares(goodput.pop("download"), list(goodput.values()), int(run.params["pipes"]))  # type: ignore[arg-type]


def shares(download: float, plain: list[float], pipes: int) -> dict[str, Any]:
    """Of rates in Mbit/s; without pipes the download counts as one connection."""
    total = download + sum(plain)
    each = max(1, pipes)
    return {
        "share": download / total if total else None,
        "jain": rates.jain([download, *plain]),
        "jain_pipes": rates.jain([download / each] * each + plain),
        "download_mbps": download,
        "plain_mbps": sum(plain) / len(plain),
        "total_mbps": total,
    }
