# SPDX-License-Identifier: MIT
"""A stream at a constant rate, alone or beside a bulk download: late frames and stalls."""

from typing import TYPE_CHECKING, Any

from experiments.model import Experiment, Figure, Metric
from experiments.workloads import rates, traffic
from experiments.workloads.actors import Actor, Bulk, Video
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

FRAMES_PER_S = 25
LATE_S = 0.2


class VideoStream(Experiment):
    name = "video"
    title = "A stream at a constant rate"
    question = "Do frames arrive in time, also beside a bulk download of the same user?"
    parameters = (
        Parameter("rate_mbps", 2.5, "number", "of the stream", low=0.01),
        Parameter("seconds", 20.0, "number", "of the stream", low=1),
        Parameter("ahead_s", 0.5, "number", "what the player has before it begins", low=0),
        Parameter("bulk", True, "truth", "whether a bulk download goes on beside it"),
    )
    metrics = (
        Metric("frame_p50_s", "lateness of a frame, median", "s", matters=0.1),
        Metric("frame_p95_s", "lateness of a frame, 95th percentile", "s", matters=0.1),
        Metric("late_share", "frames more than 0.2 s late", ""),
        Metric("stalls", "times the player stood still", ""),
        Metric("stalled_s", "how long it stood still", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
    )
    grids = (
        {"pipes": (1, 8), "binding": ("late", "early"), "preset": ("wired", "lossy", "lte")},
        {"way": ("direct", "mptcp"), "preset": ("wired", "lossy", "lte")},
    )
    reps = 5
    quick_grids = (
        {"pipes": (8,), "binding": ("late", "early"), "seconds": (8.0,)},
        {"way": ("direct",), "seconds": (8.0,)},
    )
    quick_reps = 2
    run_seconds = 10.0
    figures = (
        Figure(
            name="frames",
            title="Frames, 95th percentile of their lateness",
            kind="against",
            y="frame_p95_s",
            x="preset",
            hue="binding",
            log=True,
        ),
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        rate, seconds = float(run.params["rate_mbps"]), float(run.params["seconds"])  # type: ignore[arg-type]
        how = traffic.way(run)
        actors: dict[str, Actor] = {
            "video": Video(
                frames=round(seconds * FRAMES_PER_S),
                frame_bytes=round(rate * 1e6 / 8 / FRAMES_PER_S),
                interval_us=1_000_000 // FRAMES_PER_S,
                **how,
            )
        }
        if run.params["bulk"]:
            actors["bulk"] = Bulk(**how)
        found = traffic.play(run, actors)
        late = found["video"]["late_s"]
        count, stood_s = rates.stalls(late, float(run.params["ahead_s"]))  # type: ignore[arg-type]
        measures = {
            "frame_p50_s": rates.median(late),
            "frame_p95_s": rates.quantile(late, 0.95),
            "frame_max_s": max(late),
            "late_share": sum(each > LATE_S for each in late) / len(late),
            "stalls": count,
            "stalled_s": stood_s,
        }
        if run.params["bulk"]:
            measures["bulk_mbps"] = rates.mbps(found["bulk"]["bins"], 1.0, seconds)
        return measures
