# SPDX-License-Identifier: MIT
"""What an application sees of a pipe that dies, of all of them, and of another address."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from base.shell import sleep_until
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import outage, rates, traffic
from experiments.workloads.actors import BIN_S
from experiments.workloads.redialling import BulkAgain, EchoAgain
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

RTT_S = 0.1
BASE: Params = {
    "preset": "wired",
    "mbps": 50.0,
    "rtt_ms": 1e3 * RTT_S,
    "queue_ms": 1e3 * RTT_S,
    "wan_rtt_ms": 0.0,
    "pipes": 4,
}
WORDS = {
    "silent": "one of 4 pipes is silent",
    "reset": "one of 4 pipes is reset",
    "resets": "a pipe is reset every 200 ms",
    "dark": "nothing gets through for 3 s",
    "nat": "all pipes are silent, new ones are not",
    "address": "the client has another address",
}
EXTENDS = ("auto", "never")
# Of the bounds: seconds of silence, shares of the rate.
MOST_S = {"silent": 1.0, "reset": 2 * RTT_S + 0.05, "nat": 3.0, "address": 4 * RTT_S + 0.3}
LEAST = {"silent": 0.9, "resets": 0.6}
BEFORE_S = 2.0  # over which the rate before is measured
SETTLE_S = 1.0  # from when bytes come again until the rate after is measured
STANDS_S = 0.2  # a silence that is shorter is none
SHORTEST_S = 0.5  # over which it may be

# From another address only who has a key goes on with a session.
KEYED: Params = {**BASE, "extend": "auto", "key": True, "event": "address"}


def case(event: str) -> Params:
    return {**BASE, "event": event}


def claims_of(event: str, key: bool = False) -> tuple[Claim, ...]:
    of: Params = {**case(event), "extend": "auto", "key": key}

    def claim(says: str, metric: str, **more: Any) -> Claim:
        text = f"{WORDS[event]}{', and a key' if key else ''}: {says}"
        return Claim("recovery", "not published", text, of, metric=metric, **more)

    found = []
    if key or event != "address":
        found.append(claim("connections that are reset", "resets", unit="connections", than=0.5))
    if event in MOST_S:
        for what, metric in (("the download", "bulk_gap_s"), ("an echo", "echo_gap_s")):
            found.append(claim(f"{what} waits", metric, unit="s", than=MOST_S[event]))
    if event in LEAST:
        says = "rate of the download afterwards, to that before"
        least = LEAST[event]
        found.append(claim(says, "rate_kept", unit="times", expect="more", than=least))
    return tuple(found)


class Recovery(Experiment):
    name = "recovery"
    ways = ("pipes",)
    title = "What an application sees of pipes that die"
    question = "For how long does a transfer stand still when its pipes die, and what comes after?"
    parameters = (
        Parameter("event", "silent", "text", "what befalls the pipes", outage.EVENTS),
        Parameter("at_s", 4.0, "number", "when, after the transfers began", low=0.5),
        Parameter("after_s", 8.0, "number", "for which it is watched afterwards", low=1),
        Parameter("dark_s", 3.0, "number", "for which nothing gets through", low=0, high=600),
        Parameter("every_ms", 200.0, "number", "between two resets", low=20),
        Parameter("echo_ms", 20.0, "number", "between two queries of the echo", low=1),
    )
    metrics = (
        Metric("bulk_gap_s", "longest silence of the download", "s", matters=0.1),
        Metric("echo_gap_s", "longest wait of an echo", "s", matters=0.1),
        Metric("rate_kept", "rate afterwards / rate before", "", "more", matters=0.02),
        Metric("resets", "connections that were reset", ""),
        Metric("reset_after_s", "time until the first connection was reset", "s"),
        Metric("clean_ends", "connections that ended as if all were well", ""),
        Metric("before_mbps", "rate before", "Mbit/s", "more"),
        Metric("after_mbps", "rate afterwards", "Mbit/s", "more"),
        Metric("bulk_usual_s", "longest silence of the download before", "s"),
        Metric("echo_usual_s", "longest wait of an echo before", "s"),
    )
    shown = ("echo_gap_s", "rate_kept", "resets", "reset_after_s", "before_mbps")
    grids = ({"extend": EXTENDS, **BASE, "event": outage.EVENTS}, KEYED)
    reps = 10
    quick_grids = (
        {"extend": "auto", **BASE, "event": outage.EVENTS},
        {"extend": "never", **BASE, "event": "silent"},
        KEYED,
    )
    quick_reps = 5
    run_seconds = 14.0
    claims = (
        *(claim for event in outage.EVENTS for claim in claims_of(event)),
        *claims_of("address", key=True),
    )
    figures = (
        Figure(
            name="download",
            title="Longest silence of a download",
            kind="against",
            y="bulk_gap_s",
            x="event",
            hue="extend",
            log=True,
        ),
        Figure(
            name="echo",
            title="Longest wait of an echo",
            kind="against",
            y="echo_gap_s",
            x="event",
            hue="extend",
            log=True,
        ),
        Figure(
            name="rate",
            title="Rate of the download afterwards",
            kind="against",
            y="rate_kept",
            x="event",
            hue="extend",
        ),
        Figure(
            name="series",
            title="The download before and after",
            kind="series",
            y="series_download_mbps",
            where={"extend": "auto"},
        ),
        Figure(
            name="series-never",
            title="The download before and after, baseline",
            kind="series",
            y="series_download_mbps",
            where={"extend": "never"},
        ),
    )
    notes = (
        "A download without end and an echo every 20 ms run over the pipes; after four seconds "
        "something befalls them. silent: packets of one pipe vanish both ways. reset: the next "
        "packet of one pipe each way is answered with a RST. resets: so is one pipe after the "
        "other. dark: all packets vanish for three seconds, those of new pipes too. nat: those of "
        "all present pipes vanish for good, as when a NAT has forgotten them. address: the client "
        "loses its address and has another one, from which rp goes on with the session only where "
        "a key tells whose it is. The applications' own address stays.",
        "What is measured is seen by the applications: the longest time in which nothing of the "
        "download came, and the longest wait of a query. An application whose connection is reset "
        "dials anew, 50 ms later and again until it is served, so the silence lasts until bytes "
        "come on a new connection. Silences that are longer than what was watched end with it: "
        "the baseline notices a silent pipe after 20 s.",
        "The rate afterwards is measured from one second after the longest silence on; where there "
        "was none of 0.2 s, or where pipes are reset again and again, from the event on.",
        "50 Mbit/s, 100 ms, four pipes. The bounds are the laboratory's own.",
    )

    def draws(self, params: Params) -> bool:
        return params["event"] in ("silent", "reset", "resets")  # which pipe it is

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        own = {it.name: float(run.params[it.name]) for it in self.parameters[1:]}  # type: ignore[arg-type]
        actors = {
            "download": BulkAgain(port=traffic.PORT),
            "echo": EchoAgain(port=traffic.PORT, every_s=own["echo_ms"] / 1e3),
        }
        event = str(run.params["event"])
        with ExitStack() as stack:
            befalls = stack.enter_context(outage.possible(run.lab, run.seed))
            if event == "address":
                stack.enter_context(outage.applications_elsewhere(run.lab))
            found = stack.enter_context(traffic.beside(run, actors, "client"))
            sleep_until(run.went + own["at_s"])
            at = time.monotonic()
            until = at + own["after_s"]
            befalls.befall(event, stack, own["every_ms"] / 1e3, own["dark_s"], until)
            sleep_until(until)
        run.note(dialect_after=run.pair.dialect() if run.pair else None)
        return seen(found["download"], found["echo"], at, until, lasting=event == "resets")


def seen(
    download: dict[str, Any], echo: dict[str, Any], at: float, until: float, *, lasting: bool
) -> dict[str, Any]:
    """By the applications; moments are of time.monotonic()."""
    began = download["began"]
    bulk_gap, over = silence(download["came"], at, until)
    since = at if lasting or bulk_gap < STANDS_S else over + SETTLE_S
    bins = [*download["bins"], *[0] * (int((until - began) / BIN_S) - len(download["bins"]))]
    before = rates.mbps(bins, max(0.0, at - BEFORE_S - began), at - began)
    after = rates.mbps(bins, since - began, until - began) if until - since > SHORTEST_S else None
    resets = sorted(it for it in (*download["resets"], *echo["resets"]) if at <= it <= until)
    return {
        "bulk_gap_s": bulk_gap,
        "echo_gap_s": longest_wait(echo, at, until),
        "bulk_usual_s": silence(download["came"], at - BEFORE_S, at)[0],
        "echo_usual_s": longest_wait(echo, at - BEFORE_S, at),
        "before_mbps": before,
        "after_mbps": after,
        "rate_kept": (after or 0.0) / before if before else None,
        "resets": len(resets),
        "reset_after_s": resets[0] - at if resets else None,
        "clean_ends": len([*download["clean"], *echo["clean"]]),
        "series_step_s": BIN_S,
        "series_download_mbps": rates.series_mbps(bins, width=1),
    }


def silence(came: Sequence[float], since: float, until: float) -> tuple[float, float]:
    """The longest between two times in which nothing came, and when it was over."""
    within = [it for it in came if since < it < until]
    gaps = [(b - a, b) for a, b in pairwise([since, *within, until])]
    return max(gaps)


def longest_wait(echo: dict[str, Any], since: float, until: float) -> float | None:
    """Of the queries that waited between two times."""
    pairs = zip(echo["due"], echo["wait"], strict=True)
    waits = [min(wait, until - due) for due, wait in pairs if since < due + wait and due < until]
    return max(waits, default=None)
