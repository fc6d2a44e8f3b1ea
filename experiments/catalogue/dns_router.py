# SPDX-License-Identifier: MIT
"""DNS by way of a home router that keeps one connection to its upstream, over a lossy path."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.catalogue.thin_loss import ANSWERS, EVERY_MS, PATH, ThinLoss
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Figure, Grid
from experiments.workloads.dns import experiment as dns
from experiments.workloads.dns import router
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "dns-router"
PIPES = (1, 8)
STUB: Params = {"way": "direct", "pipes": 0, "upstream": "none"}
DIRECT: Params = {"way": "direct", "pipes": 0, "upstream": "direct"}


def forwarded(pipes: int) -> Params:
    return {"way": "pipes", "pipes": pipes, "upstream": "forward"}


def at(every_ms: float, of: Params) -> Params:
    return {**of, "every_ms": every_ms}


def claims_every(every_ms: float) -> tuple[Claim, ...]:
    rows: list[tuple[str, Params, Params]] = [
        ("a router instead of a stub by UDP", DIRECT, STUB),
        ("a router over 8 pipes instead of its own connection", forwarded(8), DIRECT),
        ("a router over 8 pipes instead of 1", forwarded(8), forwarded(1)),
    ]
    found = []
    for says, of, over in rows:
        bound = {"than": 1.1} if over == forwarded(1) else {}
        found += [
            Claim(
                ROW,
                OWN,
                f"every {every_ms:g} ms, {says}: {name} percentile",
                at(every_ms, of),
                at(every_ms, over),
                metric=metric,
                **bound,
            )
            for metric, name in (("answer_p99_ms", "99th"), ("answer_p999_ms", "99.9th"))
        ]
    return tuple(found)


GRIDS: tuple[Grid, ...] = (
    {**PATH, "way": ("direct",), "upstream": ("none", "direct")},
    {**PATH, "pipes": PIPES, "upstream": ("forward",)},
)


class DnsRouter(Experiment):
    name = ROW
    ways = ("direct", "pipes")
    title = "DNS by way of a home router"
    question = "What does a lost query cost whose router keeps one connection to its upstream?"
    parameters = (
        Parameter(
            "upstream",
            "direct",
            "text",
            "of the router: its own connection, or by lp --forward; none: UDP without a router",
            ("none", *router.UPSTREAMS),
            noun="upstream",
        ),
        Parameter("queries", 1000, "whole", "in a run", low=1, high=65_536),
        Parameter("every_ms", 50.0, "number", "between two queries", low=1, noun="interval"),
    )
    metrics = ANSWERS
    shown = ThinLoss.shown
    grids = GRIDS
    reps = 8
    quick_grids = tuple({**it, "queries": (400,)} for it in GRIDS)
    quick_reps = 5
    in_all_quick = False  # a run takes as long as its queries
    drops = True
    packages = ("openssl", "unbound")
    modules = ("dns",)
    run_seconds = 85.0
    claims = tuple(it for every_ms in EVERY_MS for it in claims_every(every_ms))
    figures = (
        Figure(
            name="times",
            title="Times of DNS answers, 2 % lost each way",
            kind="ccdf",
            y="answer_p99_ms",
            x="answers_s",
            hue="upstream",
            facet="every_ms",
        ),
        Figure(
            name="p99",
            title="Times of DNS answers, 99th percentile",
            kind="against",
            y="answer_p99_ms",
            x="upstream",
            hue="pipes",
            facet="every_ms",
            log=True,
        ),
    )
    notes = (
        "A stub resolver asks a router at the client by UDP, on the same host, where nothing is "
        "lost; the router is unbound without a cache and forwards each query over one TCP "
        "connection that is there before the first. A run in which it did not stay that one "
        "connection fails: by itself unbound gives up a query that waits for longer than a few "
        "round trips, and its connection with it, so that timer is set to 30 s. The server is "
        "unbound with TCP_NODELAY. Path and queries are those of thin-loss: 100 Mbit/s, 20 ms, "
        "2 % lost each way.",
        "That home routers keep such connections was proposed as the way in which DNS comes to "
        "use them (Fig. 3.9), and measured for the server's load alone: what answers take by way "
        "of a router was not published. The claims are the laboratory's own.",
        "unbound sets no TCP_NODELAY on its upstream connection either: while a query is not "
        "acknowledged the next one waits in the router's kernel, so after a lost query nothing "
        "follows that would tell of it. By lp --forward that connection is local, and the pipes "
        "have no such wait.",
    )

    def lp_options(self, params: Params, folder: Path) -> Sequence[str]:
        return [router.FORWARD] if params["upstream"] == "forward" else []

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        upstream = str(run.params["upstream"])
        if (upstream == "forward") != (run.pair is not None):
            raise RunFailed(f"upstream {upstream}: forward goes with pipes, and pipes go with it")
        every_ms = float(run.params["every_ms"])  # type: ignore[arg-type]
        words: dict[str, Any] = {"address": router.HERE} if upstream != "none" else {}
        dns.kept(run)
        with ExitStack() as stack:
            if upstream != "none":
                stack.enter_context(router.routing(run, upstream))
            found = dns.ask(
                run,
                kind="udp",
                stub="fixed",
                queries=int(run.params["queries"]),  # type: ignore[arg-type]
                every_ms=every_ms,
                burst=1,
                nagle=False,
                **words,
            )
        if upstream == "none":
            run.facts["losses"] = dns.checked(found)
        return dns.measures_of(found, every_ms)
