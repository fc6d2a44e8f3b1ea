# SPDX-License-Identifier: MIT
"""Type-L: how much of a connection's time is lost to its own losses and to others'."""

import time
from typing import TYPE_CHECKING, Any

from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import blocking, pcap, rates, traffic
from experiments.workloads.actors import Actor, Video
from topologies.addresses import FROM_RP
from topologies.parameter import Parameter, Params
from topologies.proxies import capture

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

FRAME_BYTES, INTERVAL_US = 1400, 50_000
LOSSES = (0.005, 0.01, 0.02)


def runs(pipes: int, loss: float = 0.01) -> Params:
    many: Params = {"pipes": pipes, "connections": 8, "binding": "late"}
    return {"way": "pipes", "loss": loss, **many}


def fewer(pipes: int, metric: str, says: str) -> Claim:
    return Claim(
        row="loss-blocking",
        where="§6.5",
        says=f"{pipes} pipes instead of 1, 1 % lost, time lost to {says}",
        of=runs(pipes),
        over=runs(1),
        metric=metric,
    )


class LossBlocking(Experiment):
    name = "loss-blocking"
    ways = ("pipes", "direct")
    title = "Whose loss a connection waits for"
    question = "How much of its time does a connection lose to its own losses, how much to others'?"
    parameters = (
        Parameter("connections", 8, "whole", "that share the pipes", low=1, high=64),
        Parameter("seconds", 10.0, "number", "of their streams", low=1),
    )
    metrics = (
        Metric("others_share", "time lost to others' losses, share", "", matters=0.05),
        Metric("own_share", "time lost to its own losses, share", "", matters=0.05),
        Metric("order_share", "time lost to slower pipes, share", ""),
        Metric("lost_share", "time lost in all, share", "", matters=0.05),
        Metric("frame_p50_s", "lateness of a frame, median", "s", matters=0.1),
        Metric("frame_p99_s", "lateness of a frame, 99th percentile", "s", matters=0.1),
    )
    grids = (
        {"loss": LOSSES, "pipes": (1, 2, 4, 8), "binding": ("late", "early")},
        {"loss": 0.0, "pipes": (1, 8)},
        {"loss": LOSSES, "way": "direct"},
    )
    reps = 10
    quick_grids = (
        {"loss": 0.01, "pipes": (1, 2, 4, 8)},
        {"loss": 0.0, "pipes": (8,)},
        {"loss": 0.01, "way": "direct"},
    )
    quick_reps = 5
    run_seconds = 10.7
    claims = (
        *(fewer(pipes, "others_share", "others' losses") for pipes in (2, 4, 8)),
        fewer(8, "lost_share", "all"),
        Claim(
            row="loss-blocking",
            where=OWN,
            says="8 pipes, 1 % lost, time lost to others' losses",
            of=runs(8),
            metric="others_share",
            unit="of the time",
            expect="less",
            than=0.02,
        ),
    )
    figures = (
        Figure(
            name="others",
            title="Time lost to others' losses",
            kind="against",
            y="others_share",
            hue="loss",
        ),
        Figure(
            name="own",
            title="Time lost to its own losses",
            kind="against",
            y="own_share",
            hue="loss",
        ),
        Figure(
            name="frames",
            title="Frames late by, 99th percentile",
            kind="against",
            y="frame_p99_s",
            hue="loss",
        ),
    )
    notes = (
        f"Each connection is a stream of a frame of {FRAME_BYTES} bytes, one packet, each "
        f"{INTERVAL_US // 1000} ms; all together have a fifth of the rate, so that nothing waits "
        "for a queue. Their beginnings are spread over the interval.",
        "RP's and LP's end of the last mile are captured, by one clock. A connection is late while "
        "a message is due at LP (it arrived, or would have but for a loss) and not delivered. What "
        "it then waits for is the first of its messages that is missing: lost itself (own), there "
        "but behind a hole that another connection's message left in the same pipe (others), or "
        "on its way without a loss (order). Shares are of a connection's life, the mean over the "
        "connections. Without loss all are to be near 0, which the runs without loss show.",
        "A frame is late by the time from when the server was due to send it until the client had "
        "it; half a round trip, 27 ms, is in it. Without pipes it is all there is, and every loss "
        "is a connection's own.",
        "Waiting in front of the pipes, because a loss has shrunk a window, is not in it.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        if run.pair is None:
            return self._stream(run)
        with (
            capture(run.lab, run.lab.rp, "sent", "rp-eth0", FROM_RP) as sent,
            capture(run.lab, run.lab.client, "came", "client-eth0", FROM_RP) as came,
        ):
            found = self._stream(run)
        began = time.time() - (time.monotonic() - run.went)
        told = blocking.account(pcap.segments(sent), pcap.segments(came), since=began)
        sent.unlink()
        came.unlink()
        return {**found, **shares(list(told.values()))}

    def _stream(self, run: "LiveRun") -> dict[str, Any]:
        count, seconds = int(run.params["connections"]), float(run.params["seconds"])  # type: ignore[arg-type]
        interval_s = INTERVAL_US / 1e6
        how = {"frames": round(seconds / interval_s), "frame_bytes": FRAME_BYTES}
        actors: dict[str, Actor] = {
            f"stream{n}": Video(
                **traffic.way(run), **how, interval_us=INTERVAL_US, after_s=n * interval_s / count
            )
            for n in range(count)
        }
        streams = traffic.play(run, actors).values()
        late_s = [each for stream in streams for each in stream["late_s"]]
        p50, p99 = rates.median(late_s), rates.quantile(late_s, 0.99)
        return {"frame_p50_s": p50, "frame_p99_s": p99, "frames": len(late_s)}


def shares(told: list[dict[str, float]]) -> dict[str, Any]:
    """Of what was accounted for each connection: the mean of the shares of its life. On a machine
    that is late, captures may show one that ended at the moment it began: it has no shares."""
    some = [it for it in told if it["lived"] > 0]
    if not some:
        raise RunFailed(f"none of {len(told)} connections can be accounted for")
    found = {
        f"{cause}_share": sum(it[cause] / it["lived"] for it in some) / len(some)
        for cause in blocking.CAUSES
    }
    return {**found, "lost_share": sum(found.values()), "accounted": len(some)}
