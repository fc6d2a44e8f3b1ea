# SPDX-License-Identifier: MIT
"""Settings of the kernel that thin streams are said to profit from, one at a time."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.thin_loss import ANSWERS, PATH, ThinLoss
from experiments.model import OWN, Claim, Experiment, Figure, Grid, as_grid
from experiments.workloads import kernel
from experiments.workloads.dns import experiment as dns
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "thin-settings"
# By parameter: the setting, what a kernel has by itself, and what it is compared with.
SETTINGS: dict[str, tuple[str, int, int]] = {
    "early_retrans": ("net.ipv4.tcp_early_retrans", 3, 0),
    "recovery": ("net.ipv4.tcp_recovery", 1, 0),
    "thin_linear_timeouts": ("net.ipv4.tcp_thin_linear_timeouts", 0, 1),
    "slow_start_after_idle": ("net.ipv4.tcp_slow_start_after_idle", 1, 0),
}
SAYS = {
    "early_retrans": "0: no probe of the tail of what was sent, 3: with it",
    "recovery": "1: losses are found by time (RACK)",
    "thin_linear_timeouts": "1: time-outs of thin streams do not double",
    "slow_start_after_idle": "1: a window begins anew after an idle time-out",
}
DEFAULTS: Params = {name: before for name, (_, before, _) in SETTINGS.items()}
ONE_AT_A_TIME: tuple[Params, ...] = (
    DEFAULTS,
    *({**DEFAULTS, name: other} for name, (_, _, other) in SETTINGS.items()),
)
WAYS: tuple[Params, ...] = ({"way": "direct", "pipes": 0}, {"way": "pipes", "pipes": 8})
SAME = 0.1  # by so much no setting but the probe changes a 99th percentile


def grids_of(ways: tuple[Params, ...]) -> tuple[Grid, ...]:
    return tuple(
        {**PATH, **as_grid({**way, **settings})} for way in ways for settings in ONE_AT_A_TIME
    )


def claims() -> tuple[Claim, ...]:
    """What a kernel has by itself is the best there is: no other value is quicker."""
    found = []
    for name, (_, _, other) in SETTINGS.items():
        for way, told in zip(WAYS, ("one connection", "8 pipes"), strict=True):
            for every_ms in (50.0, 100.0):
                of = {**way, **DEFAULTS, "every_ms": every_ms}
                found.append(
                    Claim(
                        ROW,
                        OWN,
                        f"{told}, every {every_ms:g} ms, {name} {other} instead of "
                        f"{DEFAULTS[name]}: 99th percentile",
                        {**of, name: other},
                        of,
                        metric="answer_p99_ms",
                        expect="more",
                        than=1 - SAME,
                    )
                )
    return tuple(found)


def figure(way: str, title: str) -> Figure:
    """Of all answers; a panel for each setting would hide that most change nothing."""
    return Figure(
        name=way,
        title=title,
        kind="ccdf",
        y="answer_p99_ms",
        x="answers_s",
        hue="early_retrans",
        facet="every_ms",
        where={"way": way, **{it: DEFAULTS[it] for it in SETTINGS if it != "early_retrans"}},
    )


def against(name: str) -> Figure:
    return Figure(
        name=name.replace("_", "-"),
        title=f"DNS over a lossy path, by {name}",
        kind="against",
        y="answer_p99_ms",
        x=name,
        hue="way",
        facet="every_ms",
        where={it: DEFAULTS[it] for it in SETTINGS if it != name},
    )


class ThinSettings(Experiment):
    name = ROW
    ways = ("direct", "pipes")
    title = "Settings of the kernel for thin streams"
    question = "Which settings of TCP decide how long a lost DNS query takes?"
    parameters = (
        Parameter("queries", 1000, "whole", "in a run", low=1, high=65_536),
        Parameter("every_ms", 50.0, "number", "between two queries", low=1, noun="interval"),
        *(
            Parameter(name, before, "whole", f"{key}: {SAYS[name]}", low=0, high=4)
            for name, (key, before, _) in SETTINGS.items()
        ),
    )
    metrics = ANSWERS
    shown = ThinLoss.shown
    grids = grids_of(WAYS)
    reps = 8
    quick_grids = tuple({**it, "queries": (400,)} for it in grids)
    quick_reps = 5
    in_all_quick = False  # a run takes as long as its queries
    drops = True
    packages = ("openssl", "unbound")
    modules = ("dns",)
    run_seconds = 85.0
    claims = claims()
    figures = (
        figure("direct", "Times of DNS answers over one connection, 2 % lost each way"),
        figure("pipes", "Times of DNS answers over 8 pipes, 2 % lost each way"),
        *(against(name) for name in SETTINGS),
    )
    notes = (
        "As thin-loss: 100 Mbit/s, 20 ms, 2 % lost each way, a query every 50 or 100 ms over one "
        "TCP connection to unbound, whose connections have TCP_NODELAY. Each setting is changed "
        "alone, in the namespaces of the client, of rp and of the server, read back there, and set "
        "back after the run. Nothing outside the lab is changed.",
        "Which settings Linux has was published with their defaults, and a sweep was planned, "
        "seven values three times; by a mistake in its script none was applied, so there is no "
        "published value. The claims are the laboratory's own.",
        "What a value does is the kernel's matter. Early retransmit itself, by which the published "
        "kernel (4.9) repaired a loss at the next query, is gone since: early_retrans only says "
        "whether the tail of what was sent is probed for, and recovery whether losses are found "
        "by time, which newer kernels do in any case.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        wanted = {key: str(run.params[name]) for name, (key, _, _) in SETTINGS.items()}
        every_ms = float(run.params["every_ms"])  # type: ignore[arg-type]
        with kernel.settings(run.lab, wanted) as there:
            found = dns.ask(
                run,
                kind="tcp",
                stub="fixed",
                queries=int(run.params["queries"]),  # type: ignore[arg-type]
                every_ms=every_ms,
                burst=1,
                nagle=False,
            )
        run.facts["losses"] = dns.checked(found)
        run.facts["sysctls"] = dict(there)
        return dns.measures_of(found, every_ms)
