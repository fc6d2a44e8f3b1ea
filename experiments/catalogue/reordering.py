# SPDX-License-Identifier: MIT
"""Table 8 and Fig. 8: what waits at the receiver for messages that are behind, early and late."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.early import EARLY, LATE, NOTE
from experiments.causes.uneven import Uneven
from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import account, buffers, rates, traffic
from experiments.workloads.actors import Transfer, Wire
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MB = 1_000_000
# Pipes, send buffer of each, how a pipe is chosen: seconds early; late it was 0.00 everywhere. What
# was published went to the least occupied buffer; random is what else may explain it, beside which
# the published seconds are only what they are compared with.
Rows = dict[tuple[int, int | None, str], float]
WIRED: Rows = {
    (4, None, "least"): 0.81,
    (8, None, "least"): 1.36,
    (4, 2 * MB, "least"): 3.15,
    (4, 2 * MB, "random"): 3.15,
}
LTE: Rows = {
    (4, None, "least"): 0.97,
    (4, 2 * MB, "least"): 3.33,
    (4, 4 * MB, "least"): 5.13,
    (8, None, "least"): 1.76,
    (8, 2 * MB, "least"): 5.98,
}
READ_TO_S = 0.005  # of the published 0.00 s
SETTLE_S = 2.0
LEVEL = (
    "Early binding waits less here than published: it gives a message to the pipe with the least "
    "unsent, so that buffers are filled and drained level. Measured for 4 pipes with 2 MB each: "
    "0.002 to 0.005 s so, 0.2 to 0.3 s with pipes chosen at random."
)


def early(pipes: int, sndbuf: int | None, policy: str) -> Params:
    chosen = {"pipe_sndbuf": sndbuf, "pipe_policy": policy}
    return {"pipes": pipes, **EARLY, **chosen}


def late(pipes: int) -> Params:
    return {"pipes": pipes, **LATE, "pipe_sndbuf": None, "pipe_policy": "soonest"}


def grids_of(preset: str, rows: Rows) -> tuple[Grid, ...]:
    link: Grid = {"preset": (preset,), "bottleneck": ("sender",)}
    each = [early(*row) for row in rows] + [late(pipes) for pipes in (4, 8)]
    return tuple({**link, **as_grid(params)} for params in each)


def claims_of(preset: str, rows: Rows) -> tuple[Claim, ...]:
    link: Params = {"preset": preset, "bottleneck": "sender"}
    found = []
    for (pipes, sndbuf, policy), seconds in rows.items():
        buffer = f"{sndbuf // MB} MB" if sndbuf else "default"
        says = f"{preset}, {pipes} pipes ({policy}), send buffer {buffer}"
        claims = [
            Claim(
                row="reordering",
                where="Table 8",
                says=f"{says}: early binding",
                of={**link, **early(pipes, sndbuf, policy)},
                metric="reorder_p75_s",
                paper=seconds,
                unit="s",
                expect="more",
                than=0.02,
                note=LEVEL,
                causes=(Uneven(),),
            ),
            Claim(
                row="reordering",
                where="Table 8",
                says=f"{says}: late binding instead of early",
                of={**link, **late(pipes)},
                over={**link, **early(pipes, sndbuf, policy)},
                metric="reorder_p75_s",
                paper=0.0,
                read_to=READ_TO_S / seconds,
            ),
        ]
        found += claims if policy == "least" else [it.as_own() for it in claims]
    return tuple(found)


PLACES = {"sender": "the sender's own queue", "network": "a queue in the network"}
NETWORK: Grid = {"preset": ("wired",), "bottleneck": ("network",)}
LATE_IN_NETWORK = tuple({**NETWORK, **as_grid(late(pipes))} for pipes in (4, 8))


def bounds(place: str, pipes: int) -> tuple[Claim, ...]:
    """What late binding is held to, wherever the queue is."""
    of: Params = {"preset": "wired", "bottleneck": place, **late(pipes)}
    says = f"wired, {PLACES[place]}, {pipes} pipes, late binding"
    return (
        *(
            Claim(
                row="reordering",
                where=OWN,
                says=f"{says}: waiting of a message, {name} percentile",
                of=of,
                metric=metric,
                unit="s",
                expect="less",
                than=most,
            )
            for metric, name, most in (
                ("reorder_p75_s", "75th", 0.005),
                ("reorder_p99_s", "99th", 0.025),
            )
        ),
        Claim(
            row="reordering",
            where=OWN,
            says=f"{says}: swing of the application's throughput beyond the last mile's",
            of=of,
            metric="swing_excess",
            expect="less",
            than=0.02,
        ),
    )


class Reordering(Experiment):
    name = "reordering"
    ways = ("pipes",)
    title = "What waits for messages that are behind"
    question = "How long do messages wait at the receiver because several pipes carry them?"
    parameters = (Parameter("size", 50 * MB, "size", "of the download", low=1),)
    metrics = (
        Metric("reorder_p75_s", "waiting of a message, 75th percentile", "s", matters=0.1),
        Metric("reorder_p99_s", "waiting of a message, 99th percentile", "s"),
        Metric("reorder_max_bytes", "most that waited", "bytes"),
        Metric("app_swing", "swing of the application's throughput", "", matters=0.1),
        Metric("transport_swing", "swing of the last mile's throughput", ""),
        Metric("swing_excess", "swing of the application beyond the last mile's", ""),
        Metric("goodput_mbps", "goodput", "Mbit/s", "more", matters=0.02),
    )
    grids = (*grids_of("wired", WIRED), *grids_of("lte", LTE), *LATE_IN_NETWORK)
    reps = 5
    quick_grids = (
        *({**grid, "size": (8 * MB,)} for grid in grids_of("wired", WIRED)),
        *({**grid, "size": (20 * MB,)} for grid in LATE_IN_NETWORK),
    )
    quick_reps = 5
    run_seconds = 7.0
    claims = (
        *claims_of("wired", WIRED),
        Claim(
            row="reordering",
            where="Fig. 8",
            says="4 pipes, swing of the application's throughput, early binding",
            of={"preset": "wired", "bottleneck": "sender", **early(4, None, "least")},
            over={"preset": "wired", "bottleneck": "sender", **late(4)},
            metric="app_swing",
            expect="more",
        ),
        *(
            Claim(
                row="reordering",
                where=OWN,
                says=f"4 pipes ({policy}), send buffer {buffer}, early binding: swing of the "
                "application's throughput beyond the last mile's",
                of={"preset": "wired", "bottleneck": "sender", **early(4, sndbuf, policy)},
                metric="swing_excess",
                expect="more",
                than=0.02,
            )
            for sndbuf, policy, buffer in ((None, "least", "default"), (2 * MB, "random", "2 MB"))
        ),
        *(claim for place in PLACES for pipes in (4, 8) for claim in bounds(place, pipes)),
        *claims_of("lte", LTE),
    )
    figures = (
        Figure(
            name="waiting",
            title="Waiting at the receiver",
            kind="against",
            y="reorder_p75_s",
            hue="binding",
            facet="bottleneck",
        ),
        Figure(
            name="series",
            title="Throughput of the application and of the last mile",
            kind="series",
            y="app_mbps",
            hue="binding",
            where={"pipes": 4, "pipe_sndbuf": None, "bottleneck": "sender"},
        ),
    )
    notes = (
        "The rate limit sits in the sender's own queue, as published; on LTE, too.",
        "Published for a download of 200 MB; the size is a parameter. Messages that came in "
        "order count as having waited 0. A swing is the standard deviation over the mean of half "
        "seconds.",
        NOTE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        buffers.check(run)
        size = int(run.params["size"])  # type: ignore[arg-type]
        file = Transfer(down=size, **traffic.way(run))
        found = traffic.play(run, {"file": file, "wire": Wire()})
        seconds = found["file"]["completion_s"]
        app = rates.series_mbps(found["file"]["bins"])
        wire = rates.series_mbps(found["wire"]["down"])
        steady = slice(int(SETTLE_S / 0.5), int(seconds / 0.5))
        swings = rates.swing(app[steady]), rates.swing(wire[steady])
        return {
            "completion_s": seconds,
            "goodput_mbps": size * 8 / 1e6 / seconds,
            "app_mbps": app,
            "transport_mbps": wire,
            "series_step_s": 0.5,
            "app_swing": swings[0],
            "transport_swing": swings[1],
            "swing_excess": None if None in swings else swings[0] - swings[1],
            **account.account(run, connections=1).measures(),
        }
