# SPDX-License-Identifier: MIT
"""What the experiments over two paths have in common: SMT's own five configurations.

A sender of parallel streams is held back by what is not acknowledged, as the published one is: by
the number of messages where they are small, by the paths' rates where they are large.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from experiments.causes.turns import Turns
from experiments.model import OWN, Claim, Experiment, Figure, Metric, Statistic
from experiments.workloads import messages
from experiments.workloads.smt.policies import POLICIES
from experiments.workloads.smt.sizes import PERCENT
from topologies.addresses import client_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

Expect = Literal["less", "more", "same"]
DISTRIBUTIONS = tuple(range(len(PERCENT)))
BASE: Params = {
    **{"way": "direct", "preset": "wired", "topology": "two", "servers": 1, "wan_rtt_ms": 0.0},
    **{"mbps": 100.0, "rtt_ms": 50.0},
}
LATE = Metric("late", "messages delivered later than possible", "", matters_by=1.0)
EVEN: Params = {"policy": "even"}
ESTIMATE: Params = {"policy": "estimate"}
CLOSURE: Params = {"policy": "closure"}
QUICK = ("even", "estimate", "closure")
ALL: Params = {}  # distributions
NOTES = (
    "After Structured Message Transport (Pooya, 2012): messages of sixteen streams side by side, "
    "each behind its stream's last one, over a TCP connection on each of two paths. `even` takes "
    "the connections in turn, as the published base version; `closure` is the published SMT. "
    "Since every message leaves in its turn, what it depends on has always left before, and a "
    "closure is one message: `estimate` and `closure` choose alike, and differ by chance alone.",
    "100 Mbit/s stand for 1 Gbit/s; round trips, loss and ratios are as published. How many "
    "messages may be unacknowledged is not published. Here it is 64: then, as in the thesis, "
    "32 KB and more are limited by the rates of the paths and 16 KB by that number. Its figures "
    "are lost, so a published value stands only where the text has one. TCP stands for UDT.",
    "The server answers each message by the same policy, and a message counts when its answer "
    "came. A run fails in which one was delivered later than it could be, and is void where a "
    "program took more than 0.7 of a core, or some process waited for one for half of the time.",
)


def grid(mile: Params, policies: Sequence[str]) -> dict[str, Any]:
    """`mile`: what the second path has of its own."""
    return {**BASE, **mile, "distribution": DISTRIBUTIONS, "policy": policies}


def plots(number: int) -> tuple[Figure, ...]:
    which = f"Configuration {number}"
    axes: dict[str, Any] = {"x": "distribution", "hue": "policy", "log": True, "joined": False}
    ratio = Figure(
        name="ratio",
        title=f"{which}: messages a second, even spread = 1",
        kind="normalised",
        y="messages_per_s",
        over=EVEN,
        **axes,
    )
    return (
        ratio,
        Figure("messages", f"{which}: messages a second", "against", "messages_per_s", **axes),
        Figure("throughput", f"{which}: throughput", "against", "mbps", **axes),
    )


def published(number: int, says: str, expect: Expect, of: Params = ALL, **more: Any) -> Claim:
    """Of the published SMT instead of the base version. Throughput and messages a second of a
    configuration stand in two figures; of one distribution their ratios are alike."""
    return Claim(
        row_of(number),
        f"Structured Message Transport, Fig. 4.{5 + 2 * number}",
        f"{says}: messages a second, SMT instead of an even spread",
        {**CLOSURE, **of},
        {**EVEN, **of},
        metric="messages_per_s",
        expect=expect,
        causes=(Turns(),),
        **more,
    )


def bound(number: int, says: str, statistic: Statistic, than: float) -> Claim:
    """The laboratory's own, of the choice message by message."""
    return Claim(
        row_of(number),
        OWN,
        f"{says}: messages a second, estimate instead of an even spread",
        ESTIMATE,
        EVEN,
        metric="messages_per_s",
        statistic=statistic,
        settings=0 if statistic == "median" else len(DISTRIBUTIONS),
        expect="more",
        than=than,
    )


def work_conserving(row: str) -> Claim:
    says = "in every run: messages that were delivered later than they could be"
    of_all: dict[str, Any] = {"metric": "late", "statistic": "worst", "unit": "messages"}
    return Claim(row, OWN, says, {}, expect="same", than=0.0, **of_all)


def row_of(number: int) -> str:
    return f"smt-two-{number}"


def among(statistic: Statistic) -> dict[str, Any]:
    return {"statistic": statistic, "settings": len(DISTRIBUTIONS)}


class SmtTwo(Experiment):
    """A configuration of the thesis."""

    ways: ClassVar[tuple[str, ...]] = ("direct",)
    parameters = (
        Parameter("policy", "closure", "text", "which path a message takes", tuple(POLICIES)),
        Parameter(
            "distribution", 0, "whole", "of sizes, in Table 4.1", low=0, high=len(PERCENT) - 1
        ),
        Parameter("streams", 16, "whole", "side by side", low=1, high=1000),
        Parameter("seconds", 4.0, "number", "for which messages are made", low=0.1, high=3600),
        Parameter("most_messages", 64, "whole", "not acknowledged at most", low=1, high=10**6),
        Parameter("most_bytes", 2 << 20, "size", "of these at most", low=1, high=1 << 30),
        Parameter("printed", False, "truth", "whether loss counts as the thesis prints it"),
    )
    metrics = (
        Metric("messages_per_s", "messages answered", "1/s", "more", matters=0.05),
        Metric("mbps", "throughput", "Mbit/s", "more", matters=0.05),
        Metric("mean_ms", "time until an answer, mean", "ms", matters=0.05),
        Metric("p99_ms", "time until an answer, 99th percentile", "ms"),
        Metric("second_share", "share of the bytes by the second path", "", "neither"),
        LATE,
        Metric("client_cpu", "share of a core that the client took", ""),
        Metric("server_cpu", "share of a core that the server took", ""),
        Metric("completion_s", "time until the last answer", "s"),
    )
    shown = ("mbps", "second_share", "client_cpu")
    reps = 30
    quick_reps = 5
    in_all_quick = False
    run_seconds = 7.0
    notes = NOTES

    def draws(self, params: Params) -> bool:
        return True

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        own = run.params
        words = ["--messages", str(10**6), *(["--printed"] if own["printed"] else [])]
        for mile in range(2):
            words += ["--path", client_address(mile)]
        words += ["--queued", str(own["most_messages"])]
        for name in ("policy", "distribution", "streams", "seconds", "most_messages", "most_bytes"):
            words += [f"--{name.replace('_', '-')}", str(own[name])]
        return measures(messages.send(run, *words))


def measures(found: dict[str, Any]) -> dict[str, Any]:
    first, second = (it["bytes"] for it in found["lines"])
    server = found["server"]
    told = ("messages_per_s", "mbps", "mean_ms", "p99_ms")
    return {
        **{name: found[name] for name in told},
        "second_share": second / (first + second),
        "late": messages.late(found),
        "client_cpu": found["cpu_s"] / found["seconds"],
        "server_cpu": server["cpu_s"] / found["seconds"],
        "completion_s": found["seconds"],
    }
