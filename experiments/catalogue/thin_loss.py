# SPDX-License-Identifier: MIT
"""DNS over a path that loses packets: stubs over UDP, one connection, and pipes by thin mode."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.causes.otherwise import Nearer
from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, Pooled
from experiments.workloads import account
from experiments.workloads.dns import experiment as dns
from experiments.workloads.dns.kinds import KINDS
from experiments.workloads.dns.stubs import STUBS
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "thin-loss"
PERCENTILES = {
    "answer_p99_ms": ("99th percentile", 0.99),
    "answer_p999_ms": ("99.9th percentile", 0.999),
    "answer_p97_ms": ("97th percentile", 0.97),
}
EVERY_MS = (50.0, 100.0)
NAGLE = (True, False)
MODES = ("copy", "same-pipe", "off")
FEW = {"queries": (400,)}
# 20 ms from the client to the server, as published: nothing behind the last mile.
PATH = {"preset": ("thin",), "wan_rtt_ms": (0.0,), "every_ms": EVERY_MS}
LOSS = 0.02
MOST = 1.1  # of one pipe, in the default mode
SEVERAL = (2, 4, 8)  # pipes
OF_TCP = {50.0: 0.7, 100.0: 0.5}  # p99 with copies to that of plain TCP, at most
TAIL_OF_TCP = 0.5  # the same of p99.9
COPIED = 0.06  # messages that go twice, at most
NEEDLESS = 0.001  # the same where nothing is lost
QUERIES, REPS = 1000, 8  # in a run, and runs
# Of UDP's answers, the share that came after so many retransmissions, by metric: Table 3.2.
AGAIN = {"again_1_share": (1, 0.03803), "again_2_share": (2, 0.00151), "again_3_share": (3, 6e-5)}
SAYS_AGAIN = {1: "one retransmission", 2: "two retransmissions", 3: "three retransmissions"}


def direct(by: str, every_ms: float, burst: int = 1, *, nagle: bool = True) -> Params:
    tcp = {"nagle": nagle} if by == "tcp" else {}
    common = {"way": "direct", "by": by, "every_ms": every_ms, "burst": burst, "loss": LOSS}
    return {**common, **tcp}


def piped(pipes: int, every_ms: float, loss: float = LOSS) -> Params:
    common = {"way": "pipes", "by": "tcp", "every_ms": every_ms, "burst": 1, "nagle": False}
    return {**common, "pipes": pipes, "thin": "copy", "loss": loss}


def percentile(share: float) -> Pooled:
    return Pooled("answers_s", share, scale=1e3, given_up="unanswered")


def too_few(share: float) -> str:
    """Why runs of all queries may not decide a share that small."""
    every = QUERIES * REPS
    many = share * every
    off = 1.96 * math.sqrt((1 - share) / many)
    return (
        f"Of {every} queries {many:.3g} are expected, give or take {off:.0%} by chance (95 %), "
        "where 10 % are asked."
    )


def published(where: str, says: str, of: Params, metric: str, paper: float, unit: str) -> Claim:
    return Claim(
        ROW,
        where,
        says,
        of,
        metric=metric,
        statistic="pooled" if metric in PERCENTILES or metric in AGAIN else "median",
        paper=paper,
        unit=unit,
        expect="same",
        than=paper,
        reckoned=too_few(paper) if metric in AGAIN else "",
    )


def of_udp() -> tuple[Claim, ...]:
    it = direct("udp", 100.0)
    return (
        published("Table 3.2", "UDP: share without retransmission", it, "prompt_share", 0.9604, ""),
        *(
            published("Table 3.2", f"UDP: share after {SAYS_AGAIN[n]}", it, metric, share, "")
            for metric, (n, share) in AGAIN.items()
        ),
        published("Fig. 3.6", "UDP: 99th percentile", it, "answer_p99_ms", 3022, "ms"),
        published("Fig. 3.6", "UDP: 99.9th percentile", it, "answer_p999_ms", 6022, "ms"),
    )


def of_tcp() -> tuple[Claim, ...]:
    def of(
        where: str, says: str, every_ms: float, metric: str, paper: float, *, burst: int = 1
    ) -> Claim:
        unit = "ms" if metric in PERCENTILES else ""
        made = published(where, says, direct("tcp", every_ms, burst), metric, paper, unit)
        nodelay = Nearer(
            "With TCP_NODELAY at the server", direct("tcp", every_ms, burst, nagle=False)
        )
        return replace(made, causes=(nodelay,))

    p97, p99, p999 = "answer_p97_ms", "answer_p99_ms", "answer_p999_ms"
    repaired, blocked = "repaired_share", "blocked_share"
    within = "bursts: level of repair within a burst (published: 65 to 75 ms)"
    return (
        of("Fig. 3.6", "TCP: 99th percentile, 100 ms", 100, p99, 109),
        of("Fig. 3.6", "TCP: 99th percentile, 50 ms: 109 ms", 50, p99, 109).as_own(),
        of("Fig. 3.6", "TCP: 99.9th percentile, 100 ms", 100, p999, 197),
        of("Fig. 3.6", "TCP: 99.9th percentile, 50 ms: 197 ms", 50, p999, 197).as_own(),
        of("Fig. 3.7", "TCP: level of repair by the next query", 100, p97, 155),
        of("Fig. 3.7", "TCP: share repaired by the next query", 100, repaired, 0.04),
        of("Fig. 3.7", "TCP: share at 45 to 55 ms", 100, blocked, 0.04),
        of("Fig. 3.7", "bursts: share repaired by the next", 100, repaired, 0.015, burst=3),
        of("Fig. 3.7", "bursts: share at 45 to 55 ms", 100, blocked, 0.1, burst=3),
        of("Fig. 3.7", "bursts: level of repair by the next burst", 100, p99, 145, burst=3),
        of("Fig. 3.7", within, 100, p97, 70, burst=3),
    )


def own(every_ms: float) -> tuple[Claim, ...]:
    tcp, eight = direct("tcp", every_ms, nagle=False), piped(8, every_ms)
    at = f"every {every_ms:g} ms"
    beside = (
        ("answer_p99_ms", "99th", OF_TCP[every_ms]),
        ("answer_p999_ms", "99.9th", TAIL_OF_TCP),
    )
    one = (("answer_p97_ms", "97th"), ("answer_p99_ms", "99th"))  # copies are the default
    return (
        *(
            Claim(
                ROW,
                OWN,
                f"8 pipes with copies instead of TCP, {at}: {name} percentile",
                eight,
                tcp,
                metric=metric,
                statistic="pooled",
                than=than,
            )
            for metric, name, than in beside
        ),
        *(
            Claim(
                ROW,
                OWN,
                f"{pipes} pipes with copies instead of 1, {at}: {name} percentile",
                piped(pipes, every_ms),
                piped(1, every_ms),
                metric=metric,
                statistic="pooled",
                than=MOST,
            )
            for pipes in SEVERAL
            for metric, name in one
        ),
        *(
            Claim(
                ROW,
                OWN,
                f"8 pipes with copies, {at}, {told}: share of messages that go twice",
                piped(8, every_ms, loss),
                metric="copied_share",
                statistic="pooled",
                than=than,
            )
            for loss, told, than in ((LOSS, "2 % lost", COPIED), (0.0, "none lost", NEEDLESS))
        ),
    )


ANSWERS = (
    *(
        Metric(name, f"time of an answer, {told}", "ms", matters=0.1, pooled=percentile(share))
        for name, (told, share) in PERCENTILES.items()
    ),
    Metric("answer_p50_ms", "time of an answer, median", "ms"),
    Metric("prompt_share", "share of answers within 1.5 medians", "", "more"),
    Metric("blocked_share", "share of answers at 40 to 60 ms", "", "neither"),
    Metric("repaired_share", "share of answers after the next query", ""),
    Metric("unanswered", "queries that were given up", ""),
)
DIRECT: Params = {"burst": 1, "way": "direct"}
EIGHT: Params = {"burst": 1, "way": "pipes", "pipes": 8, "loss": LOSS}
LOSSY: Grid = {**PATH, "loss": (LOSS,)}
LOSSLESS: Grid = {**PATH, "pipes": (8,), "thin": ("copy",), "loss": (0.0,)}


def _times(name: str, title: str, hue: str, where: Params) -> Figure:
    """Of all answers."""
    times = {"kind": "ccdf", "y": "answer_p99_ms", "x": "answers_s", "facet": "every_ms"}
    return Figure(name, title, hue=hue, where=where, **times)  # type: ignore[arg-type]


class ThinLoss(Experiment):
    name = "thin-loss"
    ways = ("pipes", "direct")
    title = "DNS over a path that loses packets"
    question = "What does a lost query cost over UDP, over one connection, and over pipes?"
    parameters = (
        Parameter("by", "tcp", "text", "what carries queries", KINDS),
        Parameter("stub", "fixed", "text", "which resolver asks again", tuple(STUBS)),
        Parameter("queries", QUERIES, "whole", "in a run", low=1, high=65_536),
        Parameter(
            "every_ms", 50.0, "number", "between two queries, or bursts", low=1, noun="interval"
        ),
        Parameter("burst", 1, "whole", "queries back to back", low=1),
        Parameter(
            "nagle",
            False,
            "truth",
            "whether the server leaves Nagle's algorithm on, as unbound does by itself",
            needs=(("by", "tcp"),),
        ),
    )
    metrics = (
        *ANSWERS,
        Metric(
            "copied_share",
            "share of messages that go twice",
            "",
            pooled=Pooled("copied_share", None),
        ),
        *(
            Metric(
                name,
                f"share of answers after {SAYS_AGAIN[n]}",
                "",
                "neither",
                pooled=Pooled(name, None),
            )
            for name, (n, _) in AGAIN.items()
        ),
    )
    shown = ("answer_p50_ms", "answer_p97_ms", "answer_p999_ms")
    grids = (
        {**LOSSY, "way": ("direct",), "by": ("udp",)},
        {**LOSSY, "way": ("direct",), "nagle": NAGLE, "burst": (1, 3)},
        {**LOSSY, "pipes": (1,), "thin": ("copy",)},
        {**LOSSY, "pipes": SEVERAL, "thin": MODES},
        {**LOSSY, "pipes": (8,), "thin": ("copy",), "burst": (3,)},
        LOSSLESS,
    )
    reps = REPS
    # Own bounds need 8,000 queries each; what was published is seen in fewer.
    quick_grids = (
        {**LOSSY, **FEW, "way": ("direct",), "by": ("udp",), "every_ms": (100.0,)},
        {**LOSSY, **FEW, "way": ("direct",), "nagle": (True,)},
        {**LOSSY, **FEW, "way": ("direct",), "nagle": NAGLE, "burst": (3,), "every_ms": (100.0,)},
        {**LOSSY, "way": ("direct",), "nagle": (False,)},
        {**LOSSY, "pipes": (8,), "thin": ("copy",)},
        {**LOSSY, **FEW, "pipes": (1,), "thin": ("copy",)},
        {**LOSSLESS, **FEW},
    )
    quick_reps = 8
    in_all_quick = False  # a run takes as long as its queries
    drops = True
    packages = ("openssl", "unbound")
    modules = ("dns",)
    run_seconds = 85.0
    claims = (*of_udp(), *of_tcp(), *own(50.0), *own(100.0))
    figures = (
        _times("direct", "Times of DNS answers without pipes, 2 % lost each way", "by", DIRECT),
        _times("pipes", "Times of DNS answers over 8 pipes, 2 % lost each way", "thin", EIGHT),
        _times("bursts", "Times of DNS answers, three queries at a time", "by", {"burst": 3}),
        Figure(
            name="p99",
            title="Times of DNS answers, 99th percentile",
            kind="against",
            y="answer_p99_ms",
            hue="thin",
            facet="every_ms",
            where={"burst": 1, "by": "tcp", "loss": LOSS},
        ),
    )
    notes = (
        "100 Mbit/s, 20 ms and 2 % loss each way, as published (on Linux 4.9, with netem). The "
        "server is unbound with all names as local data. A query goes by the clock, whether or not "
        "those before have their answers; UDP is asked again after 3 s, as published, or as `stub` "
        "does.",
        "unbound sets no TCP_NODELAY: while an answer is not acknowledged the next one waits. So "
        "after a lost answer nothing follows that would tell of it, and a time-out repairs it; and "
        "every 50 ms answers may be a query late until the end. What was published is compared "
        "with that (nagle), the laboratory's own bounds with a server that sets it.",
        "Published were 21 runs of 1,000 queries, as one distribution. So here, too, a percentile "
        "is of all queries of a configuration together, and has an interval where eight of them or "
        "more are beyond it: 8,000 queries for the 99.9th. For the interval runs are drawn again "
        "with replacement, and of each its queries.",
        "Shares after retransmissions are of UDP's queries, over all runs together; the table that "
        "they were published in is computed from 2 % loss each way, and the published data are "
        "said to be very close. Over TCP a query is asked once, so there they are 0.",
        "Of bursts of three queries 1.5 % are published at 145 ms, where the next burst repairs "
        "what the last of three lost, then some at 65 to 75 ms, where a burst repairs itself, then "
        "10 % at 45 to 55 ms. As 4 % of the queries are lost, the 99th percentile is at the first "
        "level and the 97th at the second, whose middle, 70 ms, is compared. How many are there "
        "was not published.",
        "A message that goes twice was overdue at lp or rp, which sent a copy of it over another "
        "pipe. They are counted by both (tx_copies), and divided by queries and answers.",
        "The published 99th and 99.9th percentiles of TCP are said to be of queries every 100 ms "
        "(Figs. 3.5 and 3.6). The same text has 4 % of them at 155 ms (Fig. 3.7), so 109 ms cannot "
        "be the 99th percentile there; it would fit 50 ms. Both are shown, the one of 50 ms as a "
        "bound of the laboratory's own.",
        "Each packet that the link dropped in a run over UDP is matched to the query that paid for "
        "it: a run in which one was not asked again just as often fails.",
        "The bounds that nobody published are the laboratory's own.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        every_ms = float(run.params["every_ms"])  # type: ignore[arg-type]
        found = dns.ask(
            run,
            kind=str(run.params["by"]),
            stub=str(run.params["stub"]),
            queries=int(run.params["queries"]),  # type: ignore[arg-type]
            every_ms=every_ms,
            burst=int(run.params["burst"]),  # type: ignore[arg-type]
            nagle=bool(run.params["nagle"]),
        )
        run.facts["losses"] = dns.checked(found)
        copied = account.copied(run, 2 * len(found["took_s"]))
        measures = dns.measures_of(found, every_ms) | {"copied_share": copied}
        return measures | shares_again(found["tries"], found["took_s"])


def shares_again(tries: Sequence[int], took_s: Sequence[float | None]) -> dict[str, float]:
    """Of all queries, those that had their answer after so many retransmissions."""
    answered = [tried for tried, took in zip(tries, took_s, strict=True) if took is not None]
    return {name: answered.count(n + 1) / len(tries) for name, (n, _) in AGAIN.items()}
