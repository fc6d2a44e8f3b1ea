# SPDX-License-Identifier: MIT
"""The share of pipes over two paths of a last mile on which plain connections were there first."""

import time
from collections.abc import Iterable
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

from experiments.catalogue.paths_file import NAMES, TOLD
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import rates, rivals, traffic
from experiments.workloads.actors import Bulk, Pause
from topologies.addresses import client_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

RIVALS = (1, 4)
CCS = ("cubic", "bbr")
EACH = 4  # pipes over each path
SETTLE_S = 5.0
TOLD_S = 1.0  # beyond what is measured, until the proxies have told of it
PRESET: Params = {"preset": "wifi-lte"}
# How a download goes: by pipes over both paths, bound to the shared one, all of it over each, or
# each of its connections on one pipe by its number; or by so many plain connections in their place.
CARRIES = ("both", "bound", "copies", "hashed")
HASHED = 2 * EACH  # connections, of which each pipe carries one
POLICIES = {"copies": ("--path-policy", "copies"), "hashed": ("--pipe-policy", "fixed")}
NUMBERS = ((4, EACH), (1, 1), (4, 1))  # connections and pipes of each path, besides one and EACH
PLAIN = {"plain-1": 1, f"plain-{EACH}": EACH}
WORDS = {
    "both": "over both paths",
    "bound": "bound to that path",
    "copies": "copied over both paths",
    "hashed": "hashed to the pipes of both paths",
}


def case(shared: str, beside: int, cc: str) -> Params:
    """All of one congestion control: pipes, rivals, and the plain connections compared with."""
    return {**PRESET, "shared": shared, "rivals": beside, "cc": cc, "rival_cc": cc}


def going(how: str, connections: int = 0, pipes: int = EACH) -> Params:
    """0: as many connections as this way has by default."""
    if how in PLAIN:
        return {"way": "direct", "pipes": 0, "how": how}
    connections = connections or (HASHED if how == "hashed" else 1)
    return {"way": "pipes", "pipes": pipes, "how": how, "connections": connections}


def grids_of(besides: tuple[int, ...], ccs: tuple[str, ...]) -> tuple[Grid, ...]:
    return tuple(
        as_grid(going(how), case(shared, beside, cc))
        for shared in NAMES
        for beside in besides
        for cc in ccs
        for how in (*CARRIES, *PLAIN)
    )


def numbered() -> tuple[Grid, ...]:
    """Of other numbers of connections and pipes, beside one rival."""
    return tuple(
        as_grid(going("both", *number), case(shared, 1, "cubic"))
        for shared in NAMES
        for number in NUMBERS
    )


def claims_of(
    shared: str, beside: int, cc: str, carry: str, connections: int = 0, pipes: int = EACH
) -> tuple[Claim, ...]:
    at, of = case(shared, beside, cc), going(carry, connections, pipes)
    others = f"{beside} plain connections" if beside > 1 else "one plain connection"
    told = f"{of['connections']} connections over " if of["connections"] != 1 else ""
    told += f"{pipes} pipes a path" if pipes > 1 else "one pipe a path"
    says = f"{told}, {WORDS[carry]}, {others} on {TOLD[shared]}, {cc}: share there"

    def claim(than: str, expect: Any, words: str) -> Claim:
        return Claim(
            row="paths-share",
            where=OWN,
            says=f"{says}, instead of that of {words}",
            of={**at, **of},
            over={**at, **going(than)},
            metric="share",
            expect=expect,
            than=1.0,
        )

    most = claim(f"plain-{EACH}", "less", f"{EACH} plain connections")
    # One pipe is to be as one connection, which no strict bound from below can say.
    return (claim("plain-1", "more", "one plain connection"), most) if pipes > 1 else (most,)


class PathsShare(Experiment):
    name = "paths-share"
    ways = ("pipes", "direct")
    title = "The share of pipes over two paths beside plain connections on one of them"
    question = "Do pipes over two paths take more of a shared last mile than so many connections?"
    parameters = (
        *rivals.PARAMETERS,
        Parameter("shared", "wifi", "text", "the last mile on which the rivals are", NAMES),
        Parameter(
            "how",
            "both",
            "text",
            "how a download goes: with pipes over both paths, bound to the shared one by lp "
            "--rule, copied over both (--path-policy copies), or hashed (--pipe-policy fixed: each "
            "connection stays on one pipe, by its number); directly by so many connections",
            (*CARRIES, *PLAIN),
        ),
        Parameter(
            "connections",
            1,
            "whole",
            "of the download over pipes",
            low=1,
            high=64,
            needs=(("way", "pipes"),),
        ),
        Parameter("seconds", 10.0, "number", "measured, once the download has its share", low=1),
    )
    metrics = (
        Metric("share", "share of the shared last mile", "", "neither", matters=0.05),
        Metric("shared_mbps", "what it carried of the download", "Mbit/s", "neither"),
        Metric("rivals_mbps", "goodput of the rivals", "Mbit/s", "neither"),
        Metric("download_mbps", "goodput of the download", "Mbit/s", "more", matters=0.05),
        Metric("total_mbps", "what the shared last mile carried", "Mbit/s", "more"),
    )
    shown = ("shared_mbps", "rivals_mbps", "download_mbps", "total_mbps")
    paths = NAMES
    grids = (*grids_of(RIVALS, CCS), *numbered())
    reps = 5
    quick_grids = grids_of((1,), ("cubic",))
    quick_reps = 5
    in_all_quick = False
    run_seconds = 22.0
    claims = (
        *(
            claim
            for shared in NAMES
            for beside in RIVALS
            for cc in CCS
            for carry in CARRIES
            for claim in claims_of(shared, beside, cc, carry)
        ),
        *(
            claim
            for shared in NAMES
            for number in NUMBERS
            for claim in claims_of(shared, 1, "cubic", "both", *number)
        ),
    )
    figures = (
        Figure(
            name="share",
            title="Share of a last mile on which plain connections were first",
            kind="against",
            y="share",
            x="how",
            hue="rivals",
            facet="shared",
        ),
        Figure(
            name="download",
            title="Goodput of the download",
            kind="against",
            y="download_mbps",
            x="how",
            hue="rivals",
            facet="shared",
        ),
    )
    notes = (
        "Wi-Fi of 7.04 Mbit/s and 50 ms with room for 50 ms, LTE of 9.185 Mbit/s and 70 ms with "
        "room for 500 ms; four pipes over each. Rivals are plain connections of the same client "
        "over one of the two. They begin three seconds before the download, of whose pipes the "
        "other four have their last mile for themselves.",
        "The share is of what the shared last mile carries: the bytes of the pipes on it, by rp's "
        "account, beside the goodput of the rivals. What one connection and what four get there is "
        "measured, with the same rivals; these are the bounds, the laboratory's own.",
        "bound: lp --rule keeps the download to the shared path. copies: all of it goes over each "
        "path until the other end has it by either. hashed: eight connections, of which each stays "
        "on one of the eight pipes, so that four are on the shared path.",
    )

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        if params["how"] == "bound":
            return ["--rule", f"port {traffic.PORT} paths {params['shared']}"]
        return self.rp_options(params, folder)

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        return list(POLICIES.get(str(params["how"]), ()))

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        seconds = float(run.params["seconds"])  # type: ignore[arg-type]
        began = rivals.head_start_s(run)
        since, until = began + SETTLE_S, began + SETTLE_S + seconds
        mile = NAMES.index(str(run.params["shared"]))
        source = client_address(mile)
        beside, downloads = rivals.actors(run, source), downloads_of(run, began, source)
        actors = {**beside, **downloads, "clock": Pause(seconds=until + TOLD_S)}
        found = traffic.play(run, actors)
        goodput = {
            name: rates.mbps(found[name]["bins"], since, until) or 0.0
            for name in (*beside, *downloads)
        }
        there = download = sum(goodput[name] for name in downloads)
        if run.pair is not None:
            told = run.pair.statistics("rp")
            there = carried_mbps(told, mile, run.went + since, run.went + until)
        return shares(there, sum(goodput[name] for name in beside), download)


def downloads_of(run: "LiveRun", began: float, source: str) -> dict[str, Bulk]:
    """By pipes, or so many from the address of the shared last mile."""
    how = str(run.params["how"])
    if (how in PLAIN) != (run.pair is None):
        raise RunFailed(f"how {how}: {', '.join(PLAIN)} go without pipes, and all others with them")
    if how in PLAIN:
        one = Bulk(port=traffic.PLAIN_PORT, source=source, after_s=began)
        return {f"download{n}": one for n in range(PLAIN[how])}
    each = Bulk(port=traffic.PORT, after_s=began)
    return {f"download{n}": each for n in range(int(run.params["connections"]))}  # type: ignore[arg-type]


def carried_mbps(
    records: Iterable[dict[str, Any]], path: int, since: float, until: float
) -> float | None:
    """What the pipes of a path took between two moments of time.monotonic(), from the last sample
    before each on; None where there were none."""
    ahead = time.time() - time.monotonic()
    its = [it for it in records if it["type"] == "pipe" and it["path"] == path]
    (first, before), (last, after) = (_sent(its, moment + ahead) for moment in (since, until))
    if first is None or last is None or first == last:
        return None
    return (after - before) * 8e-6 / (last - first)


def _sent(its: Iterable[dict[str, Any]], moment: float) -> tuple[float | None, int]:
    """When the last sample before was taken, and what these pipes had sent by then."""
    latest = {(it["session"], it["pipe"]): it for it in its if it["time"] <= moment}
    when = max((it["time"] for it in latest.values()), default=None)
    return when, sum(it["tx_bytes"] for it in latest.values())


def shares(there: float | None, beside: float, download: float) -> dict[str, Any]:
    """Of rates in Mbit/s: what the shared last mile carried of the download, and of the rivals."""
    total = None if there is None else there + beside
    return {
        "share": there / total if total else None,
        "shared_mbps": there,
        "rivals_mbps": beside,
        "download_mbps": download,
        "total_mbps": total,
    }
