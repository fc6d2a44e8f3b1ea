# SPDX-License-Identifier: MIT
"""Messages with dependencies over one path: SMT beside a total order, over TCP and over QUIC."""

from typing import TYPE_CHECKING, Any

from experiments.causes.otherwise import Otherwise
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import messages
from experiments.workloads.smt.experiment import LATE, work_conserving
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

FIGURE = "Structured Message Transport, Fig. 4.4"
RTTS_MS = (0.0, 50.0, 100.0, 200.0)
LOSSES = (0.0, 0.001, 0.005, 0.01)
DIRECT: Params = {"way": "direct", "pipes": 0}
PIPES: Params = {"way": "pipes", "pipes": 8}
PATH: Params = {**DIRECT, "preset": "wired", "mbps": 100.0, "wan_rtt_ms": 0.0}
TCP: Params = {"carrier": "tcp", "policy": "total", "connections": 1}
QUIC: Params = {"carrier": "quic-ordered", "policy": "total", "connections": 1}
SMT: Params = {"policy": "closure"}
OVER_TCP: Params = {**SMT, "carrier": "tcp"}
OVER_QUIC: Params = {**SMT, "carrier": "quic"}
ONE_QUIC: Params = {**OVER_QUIC, "connections": 1}
SIDES = {"TCP": TCP, "QUIC in order": QUIC, "SMT over QUIC": ONE_QUIC}
SWEPT: tuple[dict[str, Any], ...] = (
    TCP,
    QUIC,
    {**OVER_TCP, "connections": (1, 2, 4, 8)},
    {**OVER_QUIC, "connections": (1, 2, 4, 8)},
)
OVER_EIGHT = 0.8
MOST_CLEAN = 1.05  # where nothing is lost
BLOCKS = {"all": "stream,parallel,barrier", "parallel": "parallel"}
LIGHT: Params = {"rest_s": 0.5}
HEAVY: Params = {"rest_s": 0.05}
WORST: Params = {"rtt_ms": 200.0, "loss": 0.01}
CLEAN: Params = {"rtt_ms": 200.0, "loss": 0.0}
AT_WORST: dict[str, Any] = {"rtt_ms": 200.0, "loss": (0.0, 0.01), "blocks": tuple(BLOCKS)}
# A redirection carries TCP alone.
THROUGH_PIPES = tuple(
    {**PATH, **PIPES, **side, **HEAVY, **AT_WORST} for side in (TCP, {**OVER_TCP, "connections": 1})
)
WHERE = (("1 % lost", WORST), ("nothing lost", CLEAN))


def cell(side: Params, where: Params, blocks: str = "all", **more: Any) -> Params:
    return {**DIRECT, **side, **where, "blocks": blocks, **more}


def own(says: str, of: Params, over: Params, than: float) -> Claim:
    return Claim("smt-single", OWN, says, of, over, metric="mean_ms", than=than)


UNDER_LIGHT_LOAD = Otherwise(
    "Under light load, where nothing waits in the sender,",
    cell(SIDES["SMT over QUIC"], {**WORST, **LIGHT}),
    *("less", 900.0),
)
PUBLISHED = tuple(
    Claim(
        "smt-single",
        FIGURE,
        f"{name}, 200 ms, 1 % lost, heavy load: mean time of a message",
        cell(SIDES[name], {**WORST, **HEAVY}),
        metric="mean_ms",
        unit="ms",
        expect=expect,  # type: ignore[arg-type]
        than=than,
        note="How often messages come and how large they are is not published, so neither is what "
        "of this is waiting in the sender.",
        causes=causes,
    )
    for name, expect, than, causes in (
        ("SMT over QUIC", "less", 900.0, (UNDER_LIGHT_LOAD,)),
        ("QUIC in order", "more", 1000.0, ()),
        ("TCP", "more", 1000.0, ()),
    )
)
SAME_RATE = Claim(
    "smt-single",
    FIGURE,
    "200 ms, 1 % lost, heavy load: messages a second, SMT over QUIC instead of QUIC in order",
    cell(SIDES["SMT over QUIC"], {**WORST, **HEAVY}),
    cell(QUIC, {**WORST, **HEAVY}),
    metric="messages_per_s",
    paper=1.0,
    expect="same",
)


def bounds_of(blocks: str, words: str, over_quic: float) -> tuple[Claim, ...]:
    """Over QUIC where nothing waits in the sender; over 8 connections where one is too slow."""
    found = []
    for lost, where in WHERE:
        worst = where is WORST
        found.append(
            own(
                f"200 ms, {lost}, light load{words}: SMT over QUIC instead of a total order",
                cell(OVER_QUIC, {**where, **LIGHT}, blocks, connections=1),
                cell(QUIC, {**where, **LIGHT}, blocks),
                over_quic if worst else MOST_CLEAN,
            )
        )
        found.append(
            own(
                f"200 ms, {lost}, heavy load{words}: SMT over 8 TCP connections instead of 1",
                cell(OVER_TCP, {**where, **HEAVY}, blocks, connections=8),
                cell(OVER_TCP, {**where, **HEAVY}, blocks, connections=1),
                OVER_EIGHT if worst else MOST_CLEAN,
            )
        )
    return tuple(found)


def through_pipes(name: str, side: Params) -> Claim:
    """Of one connection, which its losses hold back; pipes are eight."""
    where = {**WORST, **HEAVY}
    return own(
        f"200 ms, 1 % lost, heavy load: {name} over a TCP connection through 8 pipes instead of "
        "direct",
        cell(side, where, connections=1, **PIPES),
        cell(side, where, connections=1),
        OVER_EIGHT,
    )


BOUNDS = (
    *bounds_of("all", "", 0.95),
    *bounds_of("parallel", ", parallel groups alone", 0.9),
    through_pipes("SMT", OVER_TCP),
    through_pipes("a total order", TCP),
)


class SmtSingle(Experiment):
    name = "smt-single"
    ways = ("direct", "pipes")
    title = "Messages with dependencies over one path"
    question = "What does a message wait for, if only for those that it depends on?"
    parameters = (
        Parameter(
            "carrier",
            "quic",
            "text",
            "quic: a stream for each message; quic-ordered: one for all",
            ("tcp", "quic", "quic-ordered"),
        ),
        Parameter(
            "policy",
            "closure",
            "text",
            "total: each message after the one before; closure: as SMT",
            ("total", "closure"),
        ),
        Parameter("connections", 1, "whole", "that messages go by", low=1, high=64),
        Parameter("blocks", "all", "text", "which blocks are generated", tuple(BLOCKS)),
        Parameter("seconds", 10.0, "number", "for which messages are made", low=0.1, high=3600),
        Parameter("size", 1024, "size", "of a message", low=8, high=1 << 20),
        Parameter("block", 10, "whole", "messages of a stream or parallel group", low=1, high=1000),
        Parameter("batch", 20, "whole", "messages between two rests", low=1, high=10**5),
        Parameter("message_pause_s", 0.005, "number", "after a message", low=0, high=10),
        Parameter("rest_s", 0.5, "number", "after a batch", low=0, high=60),
    )
    metrics = (
        Metric("mean_ms", "time until an answer, mean", "ms", matters=0.05),
        Metric("p50_ms", "time until an answer, median", "ms"),
        Metric("p99_ms", "time until an answer, 99th percentile", "ms"),
        Metric("messages_per_s", "messages answered", "1/s", "more", matters=0.02),
        Metric("rounds", "rounds of the client's messages", "", "neither"),
        LATE,
        Metric("client_cpu", "share of a core that the client took", ""),
        Metric("completion_s", "time until the last answer", "s"),
    )
    shown = ("p99_ms", "messages_per_s", "client_cpu")
    grids = (
        *(
            {**PATH, **side, **LIGHT, "rtt_ms": RTTS_MS, "loss": LOSSES, "blocks": tuple(BLOCKS)}
            for side in SWEPT
        ),
        *({**PATH, **side, **HEAVY, **AT_WORST} for side in SWEPT),
        *THROUGH_PIPES,
    )
    reps = 30
    quick_grids = (
        *({**PATH, **side, **LIGHT, **AT_WORST} for side in (QUIC, ONE_QUIC)),
        *(
            {**PATH, **side, **HEAVY, **AT_WORST}
            for side in (TCP, QUIC, ONE_QUIC, {**OVER_TCP, "connections": (1, 8)})
        ),
        *THROUGH_PIPES,
    )
    quick_reps = 5
    in_all_quick = False
    run_seconds = 16.0
    modules = ("aioquic",)
    claims = (*PUBLISHED, SAME_RATE, *BOUNDS, work_conserving(name))
    figures = tuple(
        Figure(
            name=name,
            title=title,
            kind="against",
            y="mean_ms",
            x="loss",
            hue=hue,
            facet="blocks",
            where=where,
            log=True,
        )
        for name, title, hue, where in (
            ("one", "One connection, heavy load", "carrier", {**HEAVY, **DIRECT, "connections": 1}),
            ("tcp", "SMT over TCP, heavy load", "connections", {**HEAVY, **DIRECT, **OVER_TCP}),
            ("quic", "SMT over QUIC, light load", "connections", {**LIGHT, **OVER_QUIC}),
            (
                "pipes",
                "SMT over a TCP connection, heavy load",
                "way",
                {**HEAVY, **OVER_TCP, "connections": 1},
            ),
        )
    )
    notes = (
        "After Structured Message Transport (Pooya, 2012): a client sends messages, of which some "
        "are to be delivered after others; the server's application answers each, and the time "
        "from the message to its answer counts. Blocks of messages follow each other: streams, "
        "parallel groups and barriers, each block behind all before it.",
        "QUIC with a stream for each message stands for UDT, 100 Mbit/s for 1 Gbit/s. What the "
        "thesis does not tell are parameters: messages of 1024 bytes, twenty of them every 5 ms, "
        "then a rest. With half a second of it (light load) that is 0.27 Mbit/s, less than one "
        "connection carries at 200 ms and 1 %, so a message waits for lost ones alone. With 50 ms "
        "(heavy load) it is 1.1 Mbit/s, as much as one carries there, or more: messages wait in "
        "the sender, too, as times above a second in the thesis make likely of its own load.",
        "Through pipes the client's connection is redirected to lp, and the server's comes from "
        "rp: the ends' own connections lose nothing, and messages wait in order in the proxies.",
        "A run fails in which a message was delivered later than it could be, and is void where a "
        "program took more than 0.7 of a core, or some process waited for one for half of the "
        "time.",
    )

    def draws(self, params: Params) -> bool:
        return True

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        own = run.params
        words = ["--blocks", BLOCKS[str(own["blocks"])], "--pause-s", str(own["message_pause_s"])]
        words += ["--transport", str(own["carrier"])]
        for name in ("policy", "connections", "seconds", "size", "block", "batch"):
            words += [f"--{name}", str(own[name])]
        words += ["--messages", str(10**6)]
        found = messages.send(run, *words, "--rest-s", str(own["rest_s"]))
        return {
            **{name: found[name] for name in ("mean_ms", "p50_ms", "p99_ms", "messages_per_s")},
            "rounds": found["sent"]["rounds"],
            "late": messages.late(found),
            "client_cpu": found["cpu_s"] / found["seconds"],
            "completion_s": found["seconds"],
        }
