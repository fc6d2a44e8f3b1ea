# SPDX-License-Identifier: MIT
"""One file over two paths whose round trip or rate varies, by synthetic traces."""

from typing import TYPE_CHECKING, Any, ClassVar

from experiments import traces
from experiments.catalogue.paths_file import (
    BASE,
    HELD_WHOLE,
    KIB,
    MIB,
    NAMES,
    PathsFile,
    path_of,
    told,
)
from experiments.catalogue.paths_split import REST_S, SETTINGS
from experiments.causes.apart import Apart
from experiments.causes.goes_with import GoesWith
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Figure, Grid, Metric
from experiments.oracle.varying import Varying, steps
from experiments.workloads import kernel
from topologies.mile import Mile
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "paths-vary"
SIZES = (256 * KIB, MIB)
POLICIES = ("minrtt", "dems-b", "dems-s", "dems-f")
WARM_BYTES = 2 * MIB
# Of the mean, in percent, as published of Wi-Fi and of LTE.
DELAYS = "synthetic-rtt:50:40", "synthetic-rtt:70:50"
RATES = "synthetic-rate:7.04:54", "synthetic-rate:9.185:92"
TRACES = {
    "delay": (("delay_trace", DELAYS[0]), ("second_delay_trace", DELAYS[1])),
    "rate": (("trace_down", RATES[0]), ("second_trace_down", RATES[1])),
}
WHERE = {"delay": "DEMS, 5.6.3 (latency)", "rate": "DEMS, Fig. 5.14"}
RATIOS = {"delay": (0.73, 0.86), "rate": (0.54, 0.88)}
AGAIN = {"delay": (0.53, "0.15 to 0.53"), "rate": (0.53, "0.14 to 0.53")}
BASIC_OVER_FULL = 1.12  # of round trips that vary
STEP_S = traces.STEP_MS / 1e3
MANY, QUICK_MANY = 20, 10


def grid(varies: str, policies: tuple[str, ...], sizes: tuple[int, ...], number: int) -> Grid:
    """`number`: of the pair of traces, which have it as their seed."""
    return {
        **BASE,
        "varies": varies,
        **{name: (f"{trace}:{number}",) for name, trace in TRACES[varies]},
        **{"warm": (True,), "warm_size": (WARM_BYTES,), "idle_s": (REST_S,)},
        "path_policy": policies,
        "size": sizes,
    }  # type: ignore[dict-item]


def varying_of(varies: str, number: int) -> list[Varying]:
    """The paths that the pair of traces with this number makes, for bytes of an application."""
    found = []
    for name, rate, delay in zip(NAMES, RATES, DELAYS, strict=True):
        mbps, rtt_ms = (float(it.split(":")[1]) for it in (rate, delay))
        path = path_of(name, Mile(down_mbps=mbps, rtt_ms=rtt_ms))
        if varies == "rate":
            values = [path.rate * it / mbps for it in traces.values_of(f"{rate}:{number}")]
            found.append(Varying(steps(values, STEP_S), lambda at, path=path: path.delay))
        else:
            values = [it / 2e3 for it in traces.values_of(f"{delay}:{number}")]
            found.append(Varying(lambda at, path=path: path.rate, steps(values, STEP_S)))
    return found


def runs(varies: str, policy: str, size: int | None = None) -> Params:
    found = {**BASE, "varies": varies, "warm": True, "path_policy": policy}
    return found if size is None else {**found, "size": size}


NOT_MORE = {
    "delay": "Who knew all round trips beforehand would have 256 KiB in 0.98 (0.94 to 1.00) of "
    "minrtt's time as a fluid, over the ten draws of a quick run (oracle/varying.py), and in 0.90 "
    "(0.83 to 0.97) of what minrtt took. What dems-f takes more is the limit's, which takes round "
    "trips that vary for a queue (decision 10): as the file began it let the paths hold 0.82 of "
    "what fills them under dems-f, and 0.97 under minrtt. Over the draws the ratio of times goes "
    "by the ratio of these parts (correlation -0.90), and with --aggregate off it is 1.02 (0.74 "
    "to 1.13).",
    "rate": "Who knew all rates beforehand would have 256 KiB in 0.98 (0.97 to 0.99) of minrtt's "
    "time as a fluid, over the ten draws of a quick run (oracle/varying.py), and in 0.83 (0.64 to "
    "0.99) of what minrtt took.",
}


def sooner(varies: str, size: int) -> Claim:
    least, most = RATIOS[varies]
    return Claim(
        row=ROW,
        where=WHERE[varies],
        says=f"{told(size)}, a {varies} that varies, dems-f instead of minrtt (published: "
        f"{least:.2f} to {most:.2f})",
        of=runs(varies, "dems-f", size),
        over=runs(varies, "minrtt", size),
        causes=(
            Apart("ends_apart_s", most),
            GoesWith("far_share", "the bytes over LTE", TRACES[varies][0][0]),
        ),
        note=NOT_MORE[varies] if size == SIZES[0] else "",
    )


def fewer_again(varies: str, size: int) -> Claim:
    than, published = AGAIN[varies]
    return Claim(
        row=ROW,
        where=WHERE[varies],
        says=f"{told(size)}, a {varies} that varies, bytes that dems-f reinjects instead of dems-s "
        f"(published: {published})",
        of=runs(varies, "dems-f", size),
        over=runs(varies, "dems-s", size),
        metric="reinjected_bytes",
        than=than,
    )


def slower_without() -> Claim:
    return Claim(
        row=ROW,
        where=WHERE["delay"],
        says="256 KiB and 1 MiB, a delay that varies, dems-b instead of dems-f",
        of=runs("delay", "dems-b"),
        over=runs("delay", "dems-f"),
        paper=BASIC_OVER_FULL,
        expect="more",
    )


def no_worse(varies: str, policy: str, size: int) -> Claim:
    return Claim(
        row=ROW,
        where=OWN,
        says=f"{told(size)}, a {varies} that varies, {policy} instead of minrtt",
        of=runs(varies, policy, size),
        over=runs(varies, "minrtt", size),
        than=1.05,
    )


def curves(varies: str) -> Figure:
    return Figure(
        name=f"times-{varies}",
        title=f"Completion times while the {varies} varies",
        kind="cdf",
        hue="path_policy",
        facet="size",
        where={"varies": varies},
    )


def again(varies: str) -> Figure:
    return Figure(
        name=f"again-{varies}",
        title=f"What went over both paths while the {varies} varies",
        kind="against",
        y="reinjected_share",
        x="path_policy",
        facet="size",
        where={"varies": varies},
    )


class PathsVary(PathsFile):
    name = "paths-vary"
    title = "One file over two paths that vary"
    question = "How much sooner is a file there by DEMS while delay or rate of the paths varies?"
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("far_share", "share of the bytes over LTE", "", "neither"),
        Metric("reinjected_bytes", "bytes that went over both paths", "B", matters=0.05),
        Metric("reinjected_share", "share of the file that went over both paths", "", matters=0.05),
        Metric("ends_apart_s", "between the ends of the paths", "s", matters=0.05),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    settings: ClassVar[kernel.Settings] = SETTINGS
    parameters = (
        *PathsFile.parameters,
        Parameter("varies", "delay", "text", "what the traces are of", tuple(TRACES)),
    )
    units = ("delay_trace", "second_delay_trace", "trace_down", "second_trace_down")
    grids = tuple(
        grid(varies, POLICIES, SIZES, number) for varies in TRACES for number in range(1, 1 + MANY)
    )
    reps = 5
    quick_grids = tuple(
        grid(varies, ("minrtt", "dems-s", "dems-f"), SIZES[:1], number)
        for varies in TRACES
        for number in range(1, 1 + QUICK_MANY)
    )
    quick_reps = 1
    run_seconds = 6.0
    claims = (
        *(
            make(varies, size)
            for make in (sooner, fewer_again)
            for varies in TRACES
            for size in SIZES
        ),
        slower_without(),
        *(
            no_worse(varies, policy, size)
            for varies in TRACES
            for policy in ("dems-s", "dems-f")
            for size in SIZES
        ),
    )
    figures = (*map(curves, TRACES), *map(again, TRACES))
    notes = (
        "Four pipes over each path. Its traces are synthetic, as no published ones are to be had: "
        "round trips of 50 and 70 ms in the mean with a standard deviation of 40 and 50 % of it "
        "(Wi-Fi, LTE), or rates of 7.04 and 9.185 Mbit/s with 54 and 92 %. These shares are "
        "published, of the places that varied most; that the logarithm wanders with a memory of "
        "0.2 s is the laboratory's. The other one of the two is constant.",
        "Each pair of traces is another draw, and a run begins at its start: what one user meets. "
        "A configuration is judged over all draws.",
        "Grown windows carried 2 MiB just before, by the same policy and over the same traces, and "
        "then rest for 0.3 s (net.ipv4.tcp_slow_start_after_idle is 0). " + HELD_WHOLE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        varies = str(run.params["varies"])
        there = {kind for kind, its in TRACES.items() if any(run.params[name] for name, _ in its)}
        if there != {varies}:
            raise RunFailed(f"{varies} is to vary, and there are traces of {there or 'nothing'}")
        return super().measure(run)

    def beside_bounds(self, params: Params, took_s: float) -> dict[str, Any]:
        """Of paths that vary the oracle knows none."""
        return {}

    def floor_s(self, params: Params) -> None:
        return None
