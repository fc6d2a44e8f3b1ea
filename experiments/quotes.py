# SPDX-License-Identifier: MIT
"""The figures that READMEs and docs quote, held to the summaries of results/curated.

    build/venv/bin/python -m experiments.quotes

Each quote is a sentence with places for numbers and, for each place, where the number comes from.
What is written must be what the summary says, to as many digits; a sentence that is gone or was
rewritten is to be quoted anew here. Prints what differs, and ends with 1.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from base.sources import ROOT
from experiments import summaries
from experiments.summaries import RESULTS, Summary

Number = Callable[[], float]


@cache
def fullest(experiment: str) -> Summary:
    found = summaries.fullest(RESULTS, experiment)
    if found is None:
        raise LookupError(f"{experiment}: nothing is curated")
    return found


def matching(experiment: str, where: Mapping[str, Any]) -> list[Summary]:
    """Configurations with these parameters, as far as they vary there."""
    found = [
        it
        for it in fullest(experiment)["configurations"]
        if all(it["params"].get(name) == value for name, value in where.items())
    ]
    if not found:
        raise LookupError(f"{experiment}: no configuration with {dict(where)}")
    return found


def one(experiment: str, metric: str, scale: float = 1.0, **where: Any) -> Number:
    """The median of a configuration."""

    def number() -> float:
        found, *more = matching(experiment, where)
        if more:
            raise LookupError(f"{experiment}: {len(more) + 1} configurations with {dict(where)}")
        return float(found["metrics"][metric]["median"]) * scale

    return number


def ratio(setting: str) -> Number:
    """8 pipes to 1, in the download's contrasts."""

    def number() -> float:
        found = [
            it["median"]
            for it in fullest("download")["contrasts"]
            if (it["of"], it["over"]) == ("8 pipes", "1 pipe")
            and it["setting"].replace("\N{NO-BREAK SPACE}", " ") == setting
        ]
        return float(found[0])

    return number


def of_all(choose: Callable[[list[float]], float], numbers: list[Number]) -> Number:
    return lambda: choose([it() for it in numbers])


BESIDE = {"bulks": 1, "bulk_way": "down", "cc": "cubic", "queue_ms": 100.0, "rtt_ms": 50.0}
USUAL = [{"pipes": n, "mbps": 10.0} for n in (1, 2, 4, 8, 16)]
USUAL += [{"pipes": 8, "mbps": rate} for rate in (20.0, 100.0)]
SLOW = {"pipes": 8, "mbps": 5.0}


def blocking(metric: str, scale: float, binding: str = "late", **case: Any) -> Number:
    return one("blocking", metric, scale, binding=binding, **{**BESIDE, **case})


LONGER = "what an object beside bulk takes longer than alone, median"
PLACES = {"sender": "queue of the sender{}", "network": "queue in the network{}, 100 ms deep"}


def of_blocking(says: str, bottleneck: str, mbps: float, pipes: int) -> Number:
    """What the newest runs that answer it say of one of blocking's links."""
    of = f", {mbps:g} Mbit/s, {pipes} pipe{'s' if pipes > 1 else ''}"
    return claimed("blocking", f"{PLACES[bottleneck].format(of)}: {says}")


def cost(bottleneck: str, mbps: float, pipes: int) -> Number:
    """What late binding loses of early binding's goodput, in %, by the pairs of runs."""
    ours = of_blocking(
        "goodput of the bulk, late binding instead of early", bottleneck, mbps, pipes
    )
    return lambda: 100 * (1 - ours())


def longer(bottleneck: str, mbps: float, pipes: int) -> Number:
    """What an object takes longer beside bulk, in ms."""
    ours = of_blocking(LONGER, bottleneck, mbps, pipes)
    return lambda: 1e3 * ours()


def added(place: str) -> list[Number]:
    return [longer(bottleneck=place, **case) for case in USUAL]


def costs(place: str, *more: Mapping[str, Any]) -> list[Number]:
    return [cost(bottleneck=place, **case) for case in (*USUAL, *more)]


def waits(**where: Any) -> Number:
    return one("reordering", "reorder_p75_s", 1e3, pipes=4, bottleneck="sender", **where)


def others(pipes: int) -> Number:
    return one("loss-blocking", "others_share", 100, way="pipes", pipes=pipes, loss=0.01)


def standing(aggregate: str, scale: float) -> Number:
    return one("host-cc", "rtt_s", scale, way="pipes", plain=0, aggregate=aggregate)


def an_object(**where: Any) -> Number:
    return one("object", "object_p50_s", mbps=10.0, **where)


@cache
def answer(experiment: str, says: str) -> dict[str, Any]:
    found = summaries.newest_answer(RESULTS, experiment, says)
    if found is None:
        raise LookupError(f"{experiment}: no curated runs answer {says!r}")
    return found


def claimed(experiment: str, says: str, key: str = "median") -> Number:
    """What the newest report that answers a claim says of it."""
    return lambda: float(answer(experiment, says)[key])


def attacked(attack: str, *, keys: Sequence[Sequence[str]]) -> tuple[Number, ...]:
    """What a friend keeps of its rate, how late it is served, what of its memory rp has; of each
    what is named."""
    asked = (
        "a friend's bulk, to that when it is quiet",
        "99th percentile of a friend's connects, to that when it is quiet",
        "memory of rp, to its bound (--memory)",
    )
    return tuple(
        claimed("attacks", f"{attack}: {says}", key)
        for says, wanted in zip(asked, keys, strict=False)
        for key in wanted
    )


def died(event: str, extend: str = "auto", key: bool = False) -> tuple[Number, Number]:
    """How long a download was silent, and an echo was waited for."""
    return (
        one("recovery", "bulk_gap_s", event=event, extend=extend, key=key),
        one("recovery", "echo_gap_s", event=event, extend=extend, key=key),
    )


def game(load: str, entry: str | None = None) -> Number:
    """The 99th percentile of its round trip, in ms: direct, or over pipes by an entry."""
    return one("udp", "game_p99_ms", load=load, entry=entry)


@dataclass(frozen=True)
class Quote:
    """`text`: with {} for each number; white space is as it may be."""

    file: str
    text: str
    numbers: tuple[Number, ...]


README, HOW = "README.md", "docs/how-it-works.md"
EXPERIMENTS = "experiments/README.md"
GAME = "game, lte, beside {}: 99th percentile of the round trip beyond that of idle pipes"
RESETS = "a pipe is reset every 200 ms: rate of the download afterwards, to that before"
THREE = ("median", "low", "high")
STREAM = "one stream, 100 Mbit/s, 100 ms: rate "
BESIDE_READERS = (  # the rows of the table, and whom each number is beside
    (
        "1 and 255 that take nothing",
        ("1 reader that take nothing", "255 readers that take nothing"),
    ),
    (
        "1 and 16 that took 10 MB, then nothing",
        ("1 reader that took 10 MB, then nothing", "16 readers that took 10 MB, then nothing"),
    ),
    (
        "255 that took 10 MB, then nothing, at 200 Mbit/s",
        ("255 readers that took 10 MB, then nothing",),
    ),
    ("1 and 16 that take 50 KB/s", ("1 reader that take 50 KB/s", "16 readers that take 50 KB/s")),
    ("1 that takes 1.2 MB/s", ("1 reader that take 1.2 MB/s",)),
)
CROWD = "beside 10000 readers that take nothing: "
KEPT = "rate of a download, to that alone"
SLOW_ONES = "KB, lossy, 8 fresh pipes: the slow ones, to the baseline's"
TIMES = "KB, lossy, 8 fresh pipes: time, to the baseline's (no worse: below 1.02)"
FIFTY = [ratio(f"on {preset}, 50 KB, fresh pipes") for preset in ("wired", "lossy", "lte")]
FAST = [
    blocking("reorder_p75_s", 1e3, bottleneck=place, pipes=8, mbps=rate)
    for place in ("sender", "network")
    for rate in (20.0, 100.0)
]
GIGABIT = one("blocking", "reorder_p75_s", 1e3, binding="late", bottleneck="sender", mbps=1000.0)
QUOTES = (
    Quote(README, "2 MB take {} of the time on `lossy`", (ratio("on lossy, 2 MB, fresh pipes"),)),
    Quote(README, "50 KB take {} to {} of it everywhere", (of_all(min, FIFTY), of_all(max, FIFTY))),
    Quote(
        README,
        "Alone it takes {} s at 10 Mbit/s; over eight pipes with the bulk {}; on connections of "
        "their own {}; behind the bulk on one shared connection {}.",
        (
            an_object(way="direct", bulk=False),
            an_object(pipes=8, bulk=True),
            an_object(way="direct", bulk=True),
            an_object(pipes=1, bulk=True),
        ),
    ),
    Quote(
        HOW,
        "With the rate limit in the sender's own queue that is {} to {} ms from 1 to 16 pipes and "
        "from 10 to 100 Mbit/s, and {} ms at 5 Mbit/s; it costs at most {} % of early binding's "
        "goodput",
        (
            of_all(min, added("sender")),
            of_all(max, added("sender")),
            longer(bottleneck="sender", **SLOW),
            of_all(max, costs("sender", SLOW)),
        ),
    ),
    Quote(
        HOW,
        "With a queue in the network it is {} to {} ms and costs at most {} %, and at 5 Mbit/s {} "
        "ms and {} %",
        (
            of_all(min, added("network")),
            of_all(max, added("network")),
            of_all(max, costs("network")),
            longer(bottleneck="network", **SLOW),
            cost(bottleneck="network", **SLOW),
        ),
    ),
    Quote(
        HOW,
        "{} ms where each message goes to the pipe with the least unsent; {} ms by the same rule "
        "with a send buffer of 2 MB for each pipe, which keeps them level; and {} ms with such "
        "buffers where the pipe is chosen at random",
        (
            waits(binding="early", pipe_sndbuf=None, pipe_policy="least"),
            waits(binding="early", pipe_sndbuf=2_000_000, pipe_policy="least"),
            waits(binding="early", pipe_sndbuf=2_000_000, pipe_policy="random"),
        ),
    ),
    Quote(
        HOW,
        "Three of four messages then wait {} ms up to 10 Mbit/s, at most {} ms from 20 Mbit/s on",
        (waits(binding="late"), of_all(max, [*FAST, GIGABIT])),
    ),
    Quote(
        HOW,
        "Of those of its first second one in a hundred waits for {} s at 10 Mbit/s; of all of a "
        "download's at 5 Mbit/s it is {} s",
        (
            of_blocking("the same in the bulk's first second", "network", 10.0, 8),
            of_blocking("waiting of a message, 99th percentile", "network", 5.0, 8),
        ),
    ),
    Quote(HOW, "lose {} % of their time to losses of other streams' packets", (others(1),)),
    Quote(HOW, "At eight pipes {} % is left", (others(8),)),
    Quote(
        HOW,
        "round trip is {} ms with this limit and {} s without it, at the same goodput",
        (standing("delay", 1e3), standing("off", 1.0)),
    ),
    Quote(EXPERIMENTS, "| a pipe falls silent | {} s | {} s |", died("silent")),
    Quote(EXPERIMENTS, "| a pipe is reset | {} s | {} s |", died("reset")),
    Quote(
        EXPERIMENTS,
        "| one is reset every 200 ms | {} s | {} s | all go on, at {} of the rate",
        (*died("resets"), claimed("recovery", RESETS)),
    ),
    Quote(
        EXPERIMENTS,
        "| all are silent for 3 s | {} s | {} s | all go on | all go on: {} and {} s |",
        (*died("dark"), *died("dark", extend="never")),
    ),
    Quote(EXPERIMENTS, "| a NAT forgets all pipes | {} s | {} s |", died("nat")),
    Quote(
        EXPERIMENTS,
        "| the client has another address | {} s | {} s | all are reset, after {} s |",
        (
            *died("address"),
            one("recovery", "reset_after_s", event="address", extend="auto", key=False),
        ),
    ),
    Quote(EXPERIMENTS, "| the same, with a key | {} s | {} s |", died("address", key=True)),
    Quote(
        EXPERIMENTS,
        "keeps all of its rate and is served at most {} times as late",
        (one("attacks", "connect_times", attack="pings"),),
    ),
    Quote(
        EXPERIMENTS,
        "`bytes-out-of-order` it keeps {} ({} to {}) of its rate and is served {} times as late",
        attacked("messages of one byte, out of order", keys=(THREE, THREE[:1])),
    ),
    Quote(
        EXPERIMENTS,
        "`stalled-control` it keeps {} and is served {} times as late; rp's memory is {} of its "
        "bound",
        attacked("8 sessions that ask and read no answer", keys=(THREE[:1],) * 3),
    ),
    Quote(
        EXPERIMENTS,
        "the game's 99th percentile is {} ms direct and alone. Beside a download it is {} ms "
        "direct and {} ms by `lp --forward`, {} ms above that of idle pipes",
        (
            game("alone"),
            game("download"),
            game("download", "forward"),
            claimed("udp", f"{GAME.format('a download')} by --forward"),
        ),
    ),
    Quote(
        EXPERIMENTS,
        "takes 6 ms, {} ms direct, and over pipes {} ms above that of idle ones by `--forward` and "
        "{} ms by SOCKS5, where 15 are allowed",
        (
            game("upload"),
            claimed("udp", f"{GAME.format('an upload')} by --forward"),
            claimed("udp", GAME.format("an upload")),
        ),
    ),
    Quote(
        "docs/decisions/0012-one-decision.md",
        "twenty runs of each): " + ", ".join("{} ({} to {})" for _ in range(3)),
        tuple(
            claimed("thin", f"{pipes} pipes instead of 1: 99th percentile of the answers", key)
            for pipes in (2, 4, 8)
            for key in THREE
        ),
    ),
    *(
        Quote(
            EXPERIMENTS,
            f"| {row} | " + ", ".join("{} ({} to {})" for _ in beside),
            tuple(
                claimed("slow-reader", f"beside {it}: {KEPT}", key)
                for it in beside
                for key in THREE
            ),
        )
        for row, beside in BESIDE_READERS
    ),
    Quote(
        EXPERIMENTS,
        "keeps {} ({} to {}) of its rate; lp takes {} MB and rp {} MB",
        (
            *(claimed("slow-reader-crowd", CROWD + KEPT, key) for key in THREE),
            claimed("slow-reader-crowd", CROWD + "memory of lp"),
            claimed("slow-reader-crowd", CROWD + "memory of rp"),
        ),
    ),
    Quote(
        EXPERIMENTS,
        "One stream: {} of the rate, {} ({} to {}) of it from",
        (
            claimed("extension-costs", STREAM + "from the sixth round trip on"),
            *(
                claimed("extension-costs", STREAM + "in the sixth to fifteenth round trip", key)
                for key in THREE
            ),
        ),
    ),
    Quote(
        EXPERIMENTS,
        "slowest twentieth of 50 KB took {} ({} to {}) of the time, of 300 KB {} ({} to {})",
        tuple(
            claimed("extension-lossy", f"{size} {SLOW_ONES}", key)
            for size in (50, 300)
            for key in ("p95", "low", "high")
        ),
    ),
    Quote(
        EXPERIMENTS,
        "Medians are {} ({} to {}) and {} ({} to {})",
        tuple(
            claimed("extension-lossy", f"{size} {TIMES}", key)
            for size in (50, 300)
            for key in THREE
        ),
    ),
)


def pattern(text: str) -> re.Pattern[str]:
    parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in text.split("{}")]
    return re.compile(r"(-?\d+(?:\.\d+)?)".join(parts))


def places(written: str) -> int:
    return len(written.partition(".")[2])


def wrong(quote: Quote, text: str) -> list[str]:
    """What is written otherwise than it was measured."""
    found = pattern(quote.text).search(text)
    if not found:
        return [f"{quote.file}: {quote.text!r} is not there any more"]
    told = []
    for written, number in zip(found.groups(), quote.numbers, strict=True):
        measured = number()
        if f"{measured:.{places(written)}f}" not in (written, f"-{written}"):
            told.append(f"{quote.file}: {quote.text!r}: {written}, measured {measured:.4g}")
    return told


def main() -> int:
    told = [it for quote in QUOTES for it in wrong(quote, (ROOT / quote.file).read_text())]
    for line in told:
        print(line, file=sys.stderr)
    print(f"{len(QUOTES)} sentences, {sum(len(it.numbers) for it in QUOTES)} numbers")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
