# SPDX-License-Identifier: MIT
"""Datagrams beside a bulk transfer: a game, a call and DNS, through lp and without it."""

from typing import TYPE_CHECKING, Any

from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import udp
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

LOADS = ("alone", *udp.BULKS)
PIPES = {"pipes": 8, "direct": 0}
WAYS = tuple(PIPES)
MOST_ADDED_MS = 15.0
MOST_LOST = 0.001  # more than the path loses: less than one packet of a run
MOST_IDLE = 1.05  # of the direct query's time: closer is no effect that matters


def cell(preset: str, way: str, load: str) -> Params:
    return {"preset": preset, "way": way, "pipes": PIPES[way], "load": load}


def claim(says: str, of: Params, over: Params, metric: str, **more: Any) -> Claim:
    return Claim("udp", OWN, says, of, over, metric=metric, **more)


def claims_beside(load: str) -> tuple[Claim, ...]:
    """On lte, beside a download or an upload."""
    pipes, direct = cell("lte", "pipes", load), cell("lte", "direct", load)
    idle, path = cell("lte", "pipes", "alone"), cell("lte", "direct", "alone")
    where = f"lte, beside {'a download' if load == 'download' else 'an upload'}"
    game, added = "game_p99_ms", "99th percentile of the round trip beyond that of idle pipes"
    return (
        claim(
            f"game, {where}: {added}", pipes, idle, game, compared="difference", than=MOST_ADDED_MS
        ),
        claim(f"game, {where}: 99th percentile, pipes instead of direct", pipes, direct, game),
        claim(
            f"audio, {where}: loss beyond that of the path when it is idle",
            pipes,
            path,
            "audio_loss",
            compared="difference",
            than=MOST_LOST,
        ),
        claim(f"DNS, {where}: median, pipes instead of direct", pipes, direct, "dns_p50_ms"),
    )


class Udp(Experiment):
    name = "udp"
    ways = WAYS
    title = "Datagrams beside a bulk transfer"
    question = "What do a game, a call and DNS see of a bulk transfer that shares the last mile?"
    parameters = (
        Parameter("load", "download", "text", "what goes on beside the datagrams", LOADS),
        Parameter("seconds", 8.0, "number", "for which it is measured", low=0.5),
    )
    metrics = (
        Metric("game_p99_ms", "round trip of a game's packets, 99th percentile", "ms"),
        Metric("game_p50_ms", "round trip of a game's packets, median", "ms"),
        Metric("game_up_p99_ms", "a game's packets to the server, 99th percentile", "ms"),
        Metric("game_down_p99_ms", "a game's packets from the server, 99th percentile", "ms"),
        Metric("game_loss", "share of a game's packets that did not come back", ""),
        Metric("audio_p99_ms", "round trip of audio, 99th percentile", "ms"),
        Metric("audio_loss", "share of audio that did not come back", ""),
        Metric("audio_late", "share of audio lost, or more than 100 ms late", ""),
        Metric("dns_p50_ms", "time of a DNS query, median", "ms"),
        Metric("dns_p99_ms", "time of a DNS query, 99th percentile", "ms"),
        Metric("dns_unanswered", "share of DNS queries that were given up", ""),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more"),
    )
    shown = ("game_p50_ms", "audio_late", "dns_p50_ms", "bulk_mbps")
    grids = ({"preset": ("lte", "wifi", "dsl", "lossy"), "way": WAYS, "load": LOADS},)
    reps = 10
    quick_grids = ({"preset": ("lte",), "way": WAYS, "load": LOADS},)
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    run_seconds = 11.5
    claims = (
        *claims_beside("download"),
        *claims_beside("upload"),
        claim(
            "DNS, lte, idle: median, pipes instead of direct",
            cell("lte", "pipes", "alone"),
            cell("lte", "direct", "alone"),
            "dns_p50_ms",
            than=MOST_IDLE,
        ),
        claim(
            "audio, lossy, beside a download: loss beyond that of the path when it is idle",
            cell("lossy", "pipes", "download"),
            cell("lossy", "direct", "alone"),
            "audio_loss",
            compared="difference",
            than=MOST_LOST,
        ),
    )
    figures = (
        Figure(
            name="game",
            title="Round trip of a game's packets, 99th percentile",
            kind="against",
            y="game_p99_ms",
            x="load",
            hue="way",
            facet="preset",
            log=True,
        ),
        Figure(
            name="audio",
            title="Audio that was lost, or came more than 100 ms late",
            kind="against",
            y="audio_late",
            x="load",
            hue="way",
            facet="preset",
        ),
        Figure(
            name="dns",
            title="Time of a DNS query, median",
            kind="against",
            y="dns_p50_ms",
            x="load",
            hue="way",
            facet="preset",
            log=True,
        ),
    )
    notes = (
        "Three programs of a user at the same time: a game that sends 60 packets a second of 100 "
        "bytes, a call that sends 50 a second of 160 bytes, and five DNS queries a second. The "
        "server sends each packet back at once, so as many go the other way. Beside them nothing, "
        "a download or an upload without end, which began three seconds before.",
        "With pipes, datagrams go by SOCKS5's UDP ASSOCIATE: an association for the game, one for "
        "the call, and one for each query, whose making counts. The bulk is redirected. Direct, "
        "the same programs have plain sockets beside the same bulk over one plain connection.",
        "A packet has the time at which it was sent and at which it came to the server; both ends "
        "read the same clock, so each way has a delay of its own as well. Loss is of the round "
        "trip: a packet that is not back three seconds after the last was sent. Percentiles are "
        "of a run's packets that came back, 480 of the game at most.",
        "A query without an answer is asked again each second, five times in all. Then it is given "
        "up, and counts with these five seconds.",
        "Audio is late when it takes 100 ms more than the run's fastest packet: a player that "
        "buffers so much has to go on without it.",
        "The bounds are the laboratory's own: 15 ms at the 99th percentile, no more loss than the "
        "idle path has, queries no slower than direct ones beside the same bulk, and within 5 % "
        "of them on an idle path. The baseline carries no datagrams.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        return udp.beside_bulk(run, str(run.params["load"]), seconds)
