# SPDX-License-Identifier: MIT
"""What the extension may cost: a stream's rate, an object's time, the uplink's room."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import account, objects, rates, traffic
from experiments.workloads.actors import BIN_S, Bulk, Pause
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

EXTENDS = ("auto", "never")
RTT_S = 0.1
STREAM: Params = {
    "preset": "wired",
    "mbps": 100.0,
    "rtt_ms": 1e3 * RTT_S,
    "queue_ms": 1e3 * RTT_S,
    "wan_rtt_ms": 0.0,
    "load": "stream",
}
OBJECT_MBPS = (5.0, 10.0, 20.0)
BOTH_WAYS: Params = {"preset": "dsl", "load": "both-ways"}
BEGUN_S = 5 * RTT_S  # then the sixth round trip of a stream begins
FIRST_S = 1.0  # of the measured: ten round trips
SETTLE_S = 3.0  # until upload and download have found their rates
LEAST_RATE = 0.95  # of the baseline's
MOST_MORE_MS = 2.0
MOST_ACKS = 0.02  # of the uplink's bytes


def beside_bulk(mbps: float) -> Params:
    return {"preset": "wired", "bottleneck": "sender", "mbps": mbps, "load": "object"}


def grids_of(object_mbps: Sequence[float]) -> tuple[Grid, ...]:
    besides = tuple(map(beside_bulk, object_mbps))
    plain = ((load, EXTENDS, False) for load in (STREAM, *besides, BOTH_WAYS))
    keyed = ((load, ("auto",), True) for load in besides)
    return tuple(
        {"extend": extends, "key": (key,), **as_grid(load, {"pipes": 8})}
        for load, extends, key in (*plain, *keyed)
    )


def claim(says: str, load: Params, metric: str, *, paired: bool = True, **more: Any) -> Claim:
    over = {**load, "extend": "never"} if paired else None
    of = {**load, "extend": "auto", "key": False}
    return Claim("extension-costs", "not published", says, of, over, metric=metric, **more)


def claim_of_key(mbps: float) -> Claim:
    load = {**beside_bulk(mbps), "extend": "auto"}
    return Claim(
        "extension-costs",
        "not published",
        f"a 4 KB object beside a download, {mbps:g} Mbit/s: what it takes more with a key",
        {**load, "key": True},
        {**load, "key": False},
        metric="object_ms",
        compared="difference",
        than=MOST_MORE_MS,
    )


class ExtensionCosts(Experiment):
    name = "extension-costs"
    ways = ("pipes",)
    title = "What the extension costs beside the baseline"
    question = "Do windows and acknowledgements of the extension cost rate, time or uplink?"
    parameters = (
        Parameter(
            "load",
            "stream",
            "text",
            "stream: one download; object: 4 KB objects beside a download; "
            "both-ways: an upload beside a download",
            ("stream", "object", "both-ways"),
        ),
        Parameter("seconds", 6.0, "number", "for which it is measured", low=1),
    )
    metrics = (
        Metric("down_mbps", "goodput of the download", "Mbit/s", "more", matters=0.02),
        Metric(
            "first_mbps", "goodput in the first of these seconds", "Mbit/s", "more", matters=0.02
        ),
        Metric("object_ms", "time of an object, median", "ms", matters=0.05, matters_by=1.0),
        Metric("object_p95_ms", "time of an object, 95th percentile", "ms"),
        Metric("ack_share", "share of ACKs in what lp sent", "", matters=0.05),
        Metric("acks_each_s", "ACKs of lp, each second", "", "neither"),
        Metric("up_mbps", "goodput of the upload", "Mbit/s", "more"),
    )
    shown = ("first_mbps", "object_ms", "ack_share", "up_mbps")
    grids = grids_of(OBJECT_MBPS)
    reps = 10
    quick_grids = grids_of((10.0,))
    quick_reps = 5
    run_seconds = 9.0
    claims = (
        *(
            claim(
                f"one stream, 100 Mbit/s, 100 ms: rate {when}",
                STREAM,
                metric,
                expect="more",
                than=LEAST_RATE,
            )
            for when, metric in (
                ("from the sixth round trip on", "down_mbps"),
                ("in the sixth to fifteenth round trip", "first_mbps"),
            )
        ),
        *(
            claim(
                f"a 4 KB object beside a download, {mbps:g} Mbit/s: what it takes more",
                beside_bulk(mbps),
                "object_ms",
                compared="difference",
                than=MOST_MORE_MS,
            )
            for mbps in OBJECT_MBPS
        ),
        *map(claim_of_key, OBJECT_MBPS),
        claim(
            "an upload beside a download, dsl: ACKs in the uplink's bytes",
            BOTH_WAYS,
            "ack_share",
            paired=False,
            than=MOST_ACKS,
        ),
    )
    figures = (
        Figure(
            name="stream",
            title="One stream, 100 Mbit/s, 100 ms",
            kind="series",
            y="series_down_mbps",
            where={"load": "stream"},
        ),
        Figure(
            name="object",
            title="A 4 KB object beside a download",
            kind="against",
            y="object_ms",
            x="mbps",
            hue="extend",
            where={"load": "object", "key": False},
        ),
        Figure(
            name="acks",
            title="Share of ACKs in what lp sent, an upload beside a download",
            kind="against",
            y="ack_share",
            x="extend",
            where={"load": "both-ways"},
        ),
    )
    notes = (
        "Each load is run over the extension and over the baseline, with the same seeds, over "
        "eight fresh pipes. Ratios and differences are of such pairs.",
        "One stream: a download without end, 100 Mbit/s, 100 ms. Its rate is measured from the "
        "sixth round trip after it was asked for, for six seconds, and again in the first of them "
        "alone, in which windows of the extension still grow.",
        "Objects: 4 KB every 0.2 s on a connection that is open already, beside a download; the "
        "rate limit sits in the sender's own queue, as in `object`. They are also run over the "
        "extension with a key, and held against those without.",
        "Both ways: an upload and a download without end on the last mile dsl, whose uplink has "
        "1 Mbit/s. ACKs are messages of the extension, which stand in the pipes' streams; TCP's "
        "own acknowledgements are none of them. Their bytes are counted by lp (--stats), headers "
        "included, and divided by all bytes that lp gave to the pipes meanwhile.",
        "The bounds are the laboratory's own: 0.95 of the baseline's rate, 2 ms more than the "
        "baseline or than without a key, 2 % of the uplink's bytes.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        loads = {"stream": stream, "object": objects_beside, "both-ways": both_ways}
        return loads[str(run.params["load"])](run, seconds)


def stream(run: "LiveRun", seconds: float) -> dict[str, Any]:
    until = BEGUN_S + seconds
    actors = {"download": Bulk(**traffic.way(run)), "clock": Pause(seconds=until + BIN_S)}
    bins = traffic.play(run, actors)["download"]["bins"]
    return {
        "down_mbps": rates.mbps(bins, BEGUN_S, until),
        "first_mbps": rates.mbps(bins, BEGUN_S, BEGUN_S + FIRST_S),
        "series_step_s": BIN_S,
        "series_down_mbps": rates.series_mbps(bins, width=1),
    }


def objects_beside(run: "LiveRun", seconds: float) -> dict[str, Any]:
    found = objects.beside_bulk(run, count=round(seconds / 0.2), seconds=seconds)
    return {
        "down_mbps": found["bulk_mbps"],
        "object_ms": found["object_p50_s"] * 1e3,
        "object_p95_ms": found["object_p95_s"] * 1e3,
        "objects": found["objects"],
    }


def both_ways(run: "LiveRun", seconds: float) -> dict[str, Any]:
    since, until = SETTLE_S, SETTLE_S + seconds
    how = traffic.way(run)
    actors = {
        "download": Bulk(**how),
        "upload": Bulk(way="up", **how),
        "clock": Pause(seconds=until + BIN_S),
    }
    found = traffic.play(run, actors)
    assert run.pair is not None
    sent = account.grown(run.pair.statistics("lp"), run.went + since, run.went + until)
    return {
        "down_mbps": rates.mbps(found["download"]["bins"], since, until),
        "up_mbps": rates.mbps(found["upload"]["bins"], since, until),
        "ack_share": sent["tx_ack_bytes"] / sent["tx_bytes"],
        "acks_each_s": sent["tx_acks"] / seconds,
    }
