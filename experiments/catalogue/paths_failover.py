# SPDX-License-Identifier: MIT
"""A path goes away under a transfer over Wi-Fi and LTE: how long it pauses, what is left of it."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from base.shell import sleep_until
from experiments.catalogue.paths_file import NAMES, TOLD
from experiments.catalogue.recovery import STANDS_S, silence
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import path_loss, rates, traffic
from experiments.workloads.actors import BIN_S
from experiments.workloads.steady import Steady
from topologies.addresses import client_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

# What happens to a path, and which one is left.
BEFALLS = {f"{name}-{how}": name for name in NAMES for how in ("down", "silent")}
LEFT = dict(zip(NAMES, reversed(NAMES), strict=True))
EVENTS = (*BEFALLS, *(f"only-{name}" for name in NAMES))
WORDS = {"down": "its device goes down", "silent": "it is silent"}
TRANSFERS = ("down", "up")
SPOKEN = {"down": "a download", "up": "an upload"}
FARTHEST_S = 0.070
MOST_S = {"down": 2 * FARTHEST_S + 0.1, "silent": 1.0}
LEAST_KEPT = 0.95
SETTLE_S = 1.0  # from the pause's end until the rate of the path left is measured
USUAL_S = 2.0  # before the event, over which the usual pauses and the rate are
SHORTEST_S = 1.0
BASE: Params = {"preset": "wifi-lte", "way": "pipes", "pipes": 8}
# With a backup Wi-Fi alone carries anything, so what happens to LTE is seen by nobody.
BACKED = tuple(event for event, name in BEFALLS.items() if name == "wifi")


def runs(event: str, transfer: str, backup: bool = False) -> Params:
    return {**BASE, "event": event, "transfer": transfer, "backup": backup}


def claims_of(event: str, transfer: str, backup: bool) -> tuple[Claim, Claim]:
    name, _, how = event.partition("-")
    says = f"{SPOKEN[transfer]}, {TOLD[name]}: {WORDS[how]}"
    says += ", LTE is a backup" if backup else ""
    of = runs(event, transfer, backup)
    return (
        Claim(
            row="paths-failover",
            where=OWN,
            says=f"{says}: longest pause",
            of=of,
            metric="pause_s",
            unit="s",
            than=MOST_S[how],
        ),
        Claim(
            row="paths-failover",
            where=OWN,
            says=f"{says}: rate afterwards, to that over {TOLD[LEFT[name]]} alone",
            of=of,
            over=runs(f"only-{LEFT[name]}", transfer),
            metric="after_mbps",
            expect="more",
            than=LEAST_KEPT,
        ),
    )


def grids_of(transfers: Sequence[str]) -> tuple[dict[str, Any], ...]:
    return (
        {**BASE, "event": EVENTS, "transfer": transfers, "backup": False},
        {**BASE, "event": BACKED, "transfer": transfers, "backup": True},
    )


class PathsFailover(Experiment):
    name = "paths-failover"
    ways = ("pipes",)
    title = "A path goes away under a transfer over two"
    question = "For how long does a transfer pause when a path goes away, and what comes after?"
    parameters = (
        Parameter(
            "event",
            "wifi-down",
            "text",
            "what befalls a path: its device goes down, or it is silent; with only-... nothing "
            "happens, and that path alone is used",
            EVENTS,
        ),
        Parameter("transfer", "down", "text", "which way the bytes go", TRANSFERS),
        Parameter("backup", False, "truth", "whether LTE is a backup, used without Wi-Fi only"),
        Parameter("at_s", 5.0, "number", "when, after the transfer began", low=0.5),
        Parameter("after_s", 7.0, "number", "for which it is watched afterwards", low=1),
    )
    metrics = (
        Metric("pause_s", "longest pause", "s", matters=0.1),
        Metric("usual_s", "longest pause in the two seconds before", "s"),
        Metric("before_mbps", "rate before", "Mbit/s", "more"),
        Metric("after_mbps", "rate afterwards", "Mbit/s", "more", matters=0.02),
    )
    shown = ("pause_s", "usual_s", "before_mbps", "after_mbps")
    grids = grids_of(TRANSFERS)
    reps = 10
    quick_grids = grids
    quick_reps = 5
    in_all_quick = False
    run_seconds = 16.0
    claims = tuple(
        claim
        for transfer in TRANSFERS
        for backup, events in ((False, tuple(BEFALLS)), (True, BACKED))
        for event in events
        for claim in claims_of(event, transfer, backup)
    )
    figures = (
        Figure(
            name="pause",
            title="Longest pause of a transfer",
            kind="against",
            y="pause_s",
            x="event",
            hue="backup",
            facet="transfer",
            log=True,
        ),
        Figure(
            name="rate",
            title="Rate afterwards, and over one path alone",
            kind="against",
            y="after_mbps",
            x="event",
            hue="backup",
            facet="transfer",
        ),
        Figure(
            name="download",
            title="A download before and after",
            kind="series",
            y="series_arrived_mbps",
            where={"transfer": "down", "backup": False},
        ),
        Figure(
            name="upload",
            title="An upload before and after",
            kind="series",
            y="series_arrived_mbps",
            where={"transfer": "up", "backup": False},
        ),
    )
    notes = (
        "Four pipes over each path: Wi-Fi of 7.04 and 2.02 Mbit/s and 50 ms, LTE of 9.185 and "
        "2.286 Mbit/s and 70 ms. A transfer without end runs over both; after five seconds one "
        "path goes away and stays away. down: the client's device goes down, of which the kernel "
        "tells lp. silent: all packets vanish both ways, of which nobody tells. only-...: nothing "
        "happens, and both proxies use that path alone (--path-policy one:...).",
        "A pause is the longest time in which nothing of the transfer came to the application: to "
        "the client of a download, to the server of an upload, which takes 1448 bytes at a time. "
        "A connection that ends fails its run. The rate afterwards is measured from one second "
        "after the end of the longest pause on; where that is shorter than 0.2 s, and where "
        "nothing happens, from a second after the event, or after the sixth. It is 0 where the "
        "pause left less than a second of those that are watched.",
        f"Allowed are two round trips of the farther path and 100 ms ({MOST_S['down']:.2f} s) "
        "where the kernel tells, and 1 s in silence.",
        "With a backup LTE carries nothing until Wi-Fi is gone: its pipes are dialled, and their "
        "windows are those of new connections.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        each = max(1, int(params["pipes"]) // len(NAMES))  # type: ignore[arg-type]
        rests = {"lte": ",backup"} if params["backup"] else {}
        told = [
            f"{name},src={client_address(n)},pipes={each}{rests.get(name, '')}"
            for n, name in enumerate(NAMES)
        ]
        alone = only(params)
        policy = ["--path-policy", f"one:{alone}"] if alone else []
        return [*(word for path in told for word in ("--path", path)), *policy]

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        """rp knows paths by their numbers."""
        alone = only(params)
        return ["--path-policy", f"one:{NAMES.index(alone)}"] if alone else []

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        if only(run.params) and run.params["backup"]:
            raise RunFailed("a path that is used alone has no backup, and is none")
        at_s, after_s = (float(run.params[name]) for name in ("at_s", "after_s"))  # type: ignore[arg-type]
        transfer = Steady(port=traffic.PORT, way=str(run.params["transfer"]))  # type: ignore[arg-type]
        with ExitStack() as stack:
            stack.enter_context(path_loss.applications_on_loopback(run.lab))
            with traffic.beside(run, {"transfer": transfer}, "client") as found:
                sleep_until(run.went + at_s)
                at = time.monotonic()
                befall(run, stack)
                sleep_until(at + after_s)
        return seen(found["transfer"], at, at + after_s)


def only(params: Params) -> str | None:
    """The path that is used alone, where nothing happens."""
    kind, _, name = str(params["event"]).partition("-")
    return name if kind == "only" else None


def befall(run: "LiveRun", undone: ExitStack) -> None:
    """`undone` gets what is to be undone."""
    name, _, how = str(run.params["event"]).partition("-")
    if name in NAMES:
        make = path_loss.device_down if how == "down" else path_loss.silent
        undone.enter_context(make(run.lab, NAMES.index(name)))


def seen(found: dict[str, Any], at: float, until: float) -> dict[str, Any]:
    """Of what arrived, by moments of time.monotonic()."""
    began, came = found["began"], found["came"]
    pause, over = silence(came, at, until)
    since = (over if pause >= STANDS_S else at) + SETTLE_S
    bins = [*found["bins"], *[0] * (int((until - began) / BIN_S) + 1 - len(found["bins"]))]
    watched = until - since >= SHORTEST_S
    return {
        "pause_s": pause,
        "usual_s": silence(came, at - USUAL_S, at)[0],
        "before_mbps": rates.mbps(bins, max(0.0, at - USUAL_S - began), at - began),
        "after_mbps": rates.mbps(bins, since - began, until - began) if watched else 0.0,
        "series_step_s": BIN_S,
        "series_arrived_mbps": rates.series_mbps(bins, width=1),
    }
