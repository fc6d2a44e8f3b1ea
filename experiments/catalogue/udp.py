# SPDX-License-Identifier: MIT
"""Datagrams beside a bulk transfer: a game, a call, DNS and HTTP/3, through lp and without it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import udp
from experiments.workloads.association import Entry
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

LOADS = ("alone", *udp.BULKS)
PIPES = {"pipes": 8, "direct": 0}
WAYS = tuple(PIPES)
ENTRIES = ("socks5", "forward")
WORDS = {"socks5": "pipes", "forward": "pipes by --forward"}
MOST_ADDED_MS = 15.0
MOST_LOST = 0.001  # more than the path loses: less than one packet of a run
MOST_IDLE = 1.05  # of the direct time of a query or an object: closer is no effect that matters


def cell(preset: str, way: str, load: str) -> Params:
    """`way`: direct, or one of ENTRIES into the pipes."""
    if way in ENTRIES:
        return {**cell(preset, "pipes", load), "entry": way}
    return {"preset": preset, "way": way, "pipes": PIPES[way], "load": load}


def claim(says: str, of: Params, over: Params, metric: str, **more: Any) -> Claim:
    return Claim("udp", OWN, says, of, over, metric=metric, **more)


def claims_beside(load: str, entry: str) -> tuple[Claim, ...]:
    """On lte, beside a download or an upload."""
    pipes, direct = cell("lte", entry, load), cell("lte", "direct", load)
    idle, path = cell("lte", entry, "alone"), cell("lte", "direct", "alone")
    words = WORDS[entry]
    where = f"lte, beside {'a download' if load == 'download' else 'an upload'}"
    game, added = "game_p99_ms", f"99th percentile of the round trip beyond that of idle {words}"
    return (
        claim(
            f"game, {where}: {added}", pipes, idle, game, compared="difference", than=MOST_ADDED_MS
        ),
        claim(f"game, {where}: 99th percentile, {words} instead of direct", pipes, direct, game),
        claim(
            f"audio, {where}, {words}: loss beyond that of the path when it is idle",
            pipes,
            path,
            "audio_loss",
            compared="difference",
            than=MOST_LOST,
        ),
        claim(f"DNS, {where}: median, {words} instead of direct", pipes, direct, "dns_p50_ms"),
        claim(f"HTTP/3, {where}: median, {words} instead of direct", pipes, direct, "http3_p50_ms"),
    )


def claims_idle(entry: str) -> tuple[Claim, ...]:
    """On lte, alone."""
    sides = cell("lte", entry, "alone"), cell("lte", "direct", "alone")
    return tuple(
        claim(
            f"{what}, lte, idle: median, {WORDS[entry]} instead of direct",
            *sides,
            metric,
            than=MOST_IDLE,
        )
        for what, metric in (("DNS", "dns_p50_ms"), ("HTTP/3", "http3_p50_ms"))
    )


def claims_of(entry: str) -> tuple[Claim, ...]:
    beside = (claims_beside("download", entry), claims_beside("upload", entry))
    return (*beside[0], *beside[1], *claims_idle(entry))


class Udp(Experiment):
    name = "udp"
    ways = WAYS
    title = "Datagrams beside a bulk transfer"
    question = "What do a game, a call, DNS and HTTP/3 see of a bulk that shares the last mile?"
    parameters = (
        Parameter("load", "download", "text", "what goes on beside the datagrams", LOADS),
        Parameter("seconds", 8.0, "number", "for which it is measured, HTTP/3 as long", low=0.5),
        Parameter(
            "entry",
            "socks5",
            "text",
            "how datagrams come to lp: by SOCKS5, or lp --forward udp:",
            ENTRIES,
            needs=(("way", "pipes"),),
        ),
    )
    metrics = (
        Metric(
            "game_p99_ms",
            "round trip of a game's packets, 99th percentile",
            "ms",
            matters=0.1,
            matters_by=1.0,
        ),
        Metric("game_p50_ms", "round trip of a game's packets, median", "ms"),
        Metric("game_up_p99_ms", "a game's packets to the server, 99th percentile", "ms"),
        Metric("game_down_p99_ms", "a game's packets from the server, 99th percentile", "ms"),
        Metric("game_loss", "share of a game's packets that did not come back", ""),
        Metric("audio_p99_ms", "round trip of audio, 99th percentile", "ms"),
        Metric(
            "audio_loss", "share of audio that did not come back", "", matters=0.1, matters_by=0.001
        ),
        Metric(
            "audio_late",
            "share of audio lost, or more than 100 ms late",
            "",
            matters=0.1,
            matters_by=0.001,
        ),
        Metric("dns_p50_ms", "time of a DNS query, median", "ms", matters=0.05),
        Metric("dns_p99_ms", "time of a DNS query, 99th percentile", "ms"),
        Metric("dns_unanswered", "share of DNS queries that were given up", ""),
        Metric("http3_p50_ms", "time of an object by HTTP/3, median", "ms", matters=0.05),
        Metric("http3_p90_ms", "time of an object by HTTP/3, 90th percentile", "ms"),
        Metric("http3_connect_ms", "time of QUIC's handshake, median", "ms"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
    )
    shown = ("game_p50_ms", "audio_late", "dns_p50_ms", "http3_p50_ms", "bulk_mbps")
    grids = (
        {"preset": ("lte", "wifi", "dsl", "lossy"), "way": WAYS, "load": LOADS},
        {"preset": ("lte",), "way": ("pipes",), "entry": ("forward",), "load": LOADS},
    )
    reps = 10
    quick_grids = ({"preset": ("lte",), "way": WAYS, "entry": ENTRIES, "load": LOADS},)
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    packages = ("openssl",)
    modules = ("aioquic",)
    run_seconds = 21.0
    claims = (
        *claims_of("socks5"),
        *claims_of("forward"),
        claim(
            "audio, lossy, beside a download: loss beyond that of the path when it is idle",
            cell("lossy", "socks5", "download"),
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
        Figure(
            name="http3",
            title="Time of an object of 20 KB by HTTP/3, median",
            kind="against",
            y="http3_p50_ms",
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
        "When these have ended, a browser's part: for as long, and beside the same bulk, an object "
        "of 20 KB by HTTP/3 each half second, or as soon as the one before has come. Each has a "
        "QUIC connection of its own, in datagrams of at most 1,350 bytes, and its time is from "
        "before the handshake to the last byte. Client and server are aioquic, whose congestion "
        "control is the run's where that is CUBIC or Reno, else CUBIC.",
        "With pipes, datagrams go by SOCKS5's UDP ASSOCIATE (entry socks5): an association for the "
        "game, one for the call, and one for each query and each object, whose making counts. Or "
        "programs send to ports of lp --forward udp: (entry forward), which know no header and no "
        "association. The bulk is redirected. Direct, "
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
        "idle path has, queries and objects no slower than direct ones beside the same bulk, "
        "and within 5 % of them on an idle path. The baseline carries no datagrams.",
    )

    def lp_options(self, params: Params, folder: Path) -> list[str]:
        return udp.forwards() if params["entry"] == "forward" else []

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        entry = cast(Entry, run.params["entry"] or "none")
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        return udp.beside_bulk(run, str(run.params["load"]), entry, seconds)
