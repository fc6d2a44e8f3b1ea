# SPDX-License-Identifier: MIT
"""One file over Wi-Fi and LTE at once, by which policy chooses the path of the next bytes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.causes.apart import Apart
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.oracle import dems, optimum
from experiments.oracle.path import Path
from experiments.parameters import miles
from experiments.prepare import STATS_INTERVAL_S
from experiments.workloads import account, kernel, traffic
from experiments.workloads.actors import Transfer
from experiments.workloads.rates import FRAME, HEADER, MSS
from topologies.lab import Lab
from topologies.mile import Mile
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

KIB, MIB = 1 << 10, 1 << 20
NAMES = ("wifi", "lte")
TOLD = {"wifi": "Wi-Fi", "lte": "LTE"}
SIZES = (64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB, 8 * MIB)
MEDIUM = SIZES[1:5]
RTTS_MS = (70.0, 270.0, 470.0)
PUBLISHED_AGAIN_MS = RTTS_MS[:2]  # of which reinjected bytes were published
DEMS = ("dems-b", "dems-s", "dems-f")
POLICIES = (
    *("soonest", "minrtt", "rr", "ecf", "txdelay"),
    *DEMS,
    *("copies", "one:wifi", "one:lte"),
)
BASE: Params = {"preset": "wifi-lte", "pipes": 4, "way": "pipes"}
COUNTED = ("written", "reinjected")  # of a path, in its samples
HELD_WHOLE = (
    "rp's kernel may hold a whole file (net.ipv4.tcp_rmem), as rp takes the bytes that wait there "
    "for those that remain."
)
# What rp's kernel takes of a server's bytes before rp does: all of the largest file.
RMEM, ROOM = "net.ipv4.tcp_rmem", "4096 33554432 33554432"


def told(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def runs(policy: str, size: int, rtt_ms: float, warm: bool) -> Params:
    return {
        **BASE,
        "path_policy": policy,
        "size": size,
        "second_rtt_ms": rtt_ms,
        "warm": warm,
    }


MOST_OF_MINRTT = 0.85  # up to 1 MB, published
OURS = ("ecf", "dems-f")  # the policies that the laboratory's own bounds are about
FAR_MS = RTTS_MS[1:]


def instead_of_minrtt(policy: str, size: int, rtt_ms: float) -> Claim:
    large = size >= 8 * MIB
    published = "nothing at 8 MB" if large else "0.62 to 0.85 from 128 KB to 1 MB"
    return Claim(
        row="paths-file",
        where="DEMS, Fig. 5.10",
        says=f"{told(size)}, LTE at {rtt_ms:g} ms, grown windows, {policy} instead of minrtt "
        f"(published, DEMS-S: {published})",
        of=runs(policy, size, rtt_ms, True),
        over=runs("minrtt", size, rtt_ms, True),
        expect="same" if large else "less",
        within=0.03,
        causes=() if large else (Apart("ends_apart_s", MOST_OF_MINRTT),),
    )


def fewer_again(size: int, rtt_ms: float) -> Claim:
    is_published = rtt_ms in PUBLISHED_AGAIN_MS
    claim = Claim(
        row="paths-file",
        where="DEMS, Fig. 5.11",
        says=f"{told(size)}, LTE at {rtt_ms:g} ms, fresh windows, bytes that dems-f reinjects "
        f"instead of dems-s{' (published: 0 to 0.77)' if is_published else ''}",
        of=runs("dems-f", size, rtt_ms, False),
        over=runs("dems-s", size, rtt_ms, False),
        metric="reinjected_bytes",
        expect="less",
        than=0.77,
    )
    return claim if is_published else claim.as_own()


def over_optimum(policy: str, size: int, rtt_ms: float) -> Claim:
    return Claim(
        row="paths-file",
        where=OWN,
        says=f"{told(size)}, LTE at {rtt_ms:g} ms, grown windows, {policy}: over the least "
        "possible",
        of=runs(policy, size, rtt_ms, True),
        metric="over_optimum",
        expect="less",
        than=1.15,
    )


def own_bound(metric: str, says: str, of: Params, than: float) -> Claim:
    return Claim(
        row="paths-file", where=OWN, says=says, of=of, metric=metric, expect="less", than=than
    )


def ends_together(policy: str, size: int, rtt_ms: float) -> Claim:
    says = f"{told(size)}, LTE at {rtt_ms:g} ms, grown windows, {policy}: path ends apart"
    return own_bound("ends_apart_s", says, runs(policy, size, rtt_ms, True), 0.025)


def no_more_than_expected(size: int, rtt_ms: float) -> Claim:
    says = (
        f"{told(size)}, LTE at {rtt_ms:g} ms, fresh windows, what dems-f reinjects over (5.13) by "
        "the largest deviation that it measured, and a message on each path"
    )
    return own_bound("reinjected_over_expected", says, runs("dems-f", size, rtt_ms, False), 1.1)


def little_undisturbed(size: int, rtt_ms: float) -> Claim:
    says = f"{told(size)}, LTE at {rtt_ms:g} ms, fresh windows, what dems-f reinjects of the file"
    return own_bound("reinjected_share", says, runs("dems-f", size, rtt_ms, False), 0.01)


def a_fifth_sooner(policy: str, rtt_ms: float) -> Claim:
    """Published is only that minrtt is slower."""
    size = 256 * KIB
    return Claim(
        row="paths-file",
        where=OWN,
        says=f"{told(size)}, LTE at {rtt_ms:g} ms, grown windows, {policy} instead of minrtt: a "
        "fifth less",
        of=runs(policy, size, rtt_ms, True),
        over=runs("minrtt", size, rtt_ms, True),
        expect="less",
        than=0.8,
    )


def no_worse_when_fresh(policy: str, size: int, rtt_ms: float) -> Claim:
    return Claim(
        row="paths-file",
        where=OWN,
        says=f"{told(size)}, LTE at {rtt_ms:g} ms, fresh windows, {policy} instead of minrtt",
        of=runs(policy, size, rtt_ms, False),
        over=runs("minrtt", size, rtt_ms, False),
        expect="less",
        than=1.1,
    )


@contextmanager
def roomy(lab: Lab) -> Iterator[None]:
    """rp's kernel takes a file as fast as the server sends it, so that rp sees how long it is."""
    before = " ".join(lab.rp.inside("sysctl", "-n", RMEM).split())
    lab.rp.inside("sysctl", "-w", f"{RMEM}={ROOM}")
    try:
        yield
    finally:
        lab.rp.inside("sysctl", "-w", f"{RMEM}={before}")


def path_of(name: str, mile: Mile) -> Path:
    """For bytes of an application: a segment has headers, and the message's own."""
    assert mile.down_mbps is not None
    rate = mile.down_mbps * 1e6 / 8 * (MSS - HEADER) / FRAME
    return Path(name, rate, mile.rtt_ms / 2e3)


def paths_of(params: Params) -> list[Path]:
    return [path_of(name, it) for name, it in zip(NAMES, miles(params), strict=True)]


def latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each path the last sample, by its number."""
    last = {it["path"]: it for it in records}
    return [last[number] for number in sorted(last)]


def since(records: Sequence[dict[str, Any]], began: float) -> list[dict[str, Any]]:
    """The samples from a moment on, of time.monotonic(); what they count is counted from there."""
    moment = began + time.time() - time.monotonic()
    before = {it["path"]: it for it in records if it["time"] <= moment}
    return [
        {**it, **{name: it[name] - before[it["path"]][name] for name in COUNTED}}
        if it["path"] in before
        else it
        for it in records
        if it["time"] > moment
    ]


def shares(records: list[dict[str, Any]], size: int) -> dict[str, float | int | None]:
    """What went over the far path, and what over both, by the last samples."""
    last = latest(records)
    written = sum(it["written"] for it in last)
    again = sum(it["reinjected"] for it in last) if last else None
    return {
        "far_share": last[1]["written"] / written if written and len(last) > 1 else None,
        "reinjected_bytes": again,
        "reinjected_share": None if again is None else again / size,
    }


def most_deviation_s(records: Sequence[dict[str, Any]]) -> float:
    """The mean of both paths in the sample in which it is largest, until all that went over both
    had gone: what deviates behind that decided nothing."""
    near, far = ([it for it in records if it["path"] == number] for number in (0, 1))
    again = [a["reinjected"] + b["reinjected"] for a, b in zip(near, far, strict=False)]
    until = again.index(again[-1]) + 1
    sums = [a["deviation_ms"] + b["deviation_ms"] for a, b in zip(near, far, strict=False)]
    return max(sums[:until]) / 2e3


def over_expected(records: list[dict[str, Any]], paths: list[Path]) -> float | None:
    """What went over both, over (5.13) by the largest deviation, and a message on each path: what
    goes again is whole messages. None: there are not two paths."""
    last = latest(records)
    if len(last) != 2:
        return None
    expected = dems.again(paths, most_deviation_s(records)) + len(last) * MSS
    return sum(it["reinjected"] for it in last) / expected


def ends_apart_s(records: list[dict[str, Any]], took_s: float) -> float | None:
    """Between the last bytes that came by either path; None where one carried none of this file."""
    came = [it["came"] for it in latest(records)]
    if len(came) != 2 or None in came:
        return None
    apart = abs(came[0] - came[1])
    return apart if apart < took_s else None


def is_told_apart(params: Params) -> bool:
    """Whether a sample lies between what warmed the pipes and the file."""
    return not params["warm"] or float(params["idle_s"] or 0) > 2 * STATS_INTERVAL_S  # type: ignore[arg-type]


def before_s(params: Params, rtt_ms: float | None = None) -> float:
    """Until rp has the file's first byte: the request over a path of this round trip, or the nearer
    one, a connection from rp to the server, an answer from there."""
    if rtt_ms is None:
        rtt_ms = min(it.rtt_ms for it in miles(params))
    return (rtt_ms / 2 + 2 * float(params["wan_rtt_ms"])) / 1e3  # type: ignore[arg-type]


class PathsFile(Experiment):
    name = "paths-file"
    ways = ("pipes",)
    title = "One file over two paths"
    question = "How much sooner is a file there if the far path carries only what helps?"
    parameters = (
        Parameter("size", 256 * KIB, "size", "of the file", low=1),
        Parameter(
            "path_policy",
            "soonest",
            "text",
            "which path carries the next bytes, at both proxies: soonest, minrtt, rr, ecf, "
            "txdelay, dems-b, dems-s, dems-f, copies, one:wifi, one:lte or split:P",
        ),
        Parameter(
            "warm_size",
            8 * MIB,
            "size",
            "of what grows the windows before the run",
            low=1,
            needs=(("warm", True),),
        ),
    )
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("over_optimum", "completion time over the least possible", "", matters=0.05),
        Metric("far_share", "share of the bytes over LTE", "", "neither"),
        Metric("reinjected_bytes", "bytes that went over both paths", "B", matters=0.05),
        Metric("reinjected_share", "share of the file that went over both paths", ""),
        Metric(
            "reinjected_over_expected",
            "bytes over both paths / what DEMS's equation 5.13 expects and a message of each",
            "",
        ),
        Metric("ends_apart_s", "between the ends of the paths", "s", matters=0.05),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    paths = NAMES
    settings: ClassVar[kernel.Settings] = {}  # of the kernels, while a run lasts
    grids = (
        {
            **BASE,
            "path_policy": POLICIES,
            "size": SIZES,
            "second_rtt_ms": RTTS_MS,
            "warm": (False, True),
        },
    )
    reps = 20
    quick_grids = (
        {
            **BASE,
            "path_policy": ("minrtt", "ecf", "dems-f"),
            "size": (256 * KIB, MIB),
            "second_rtt_ms": RTTS_MS,
            "warm": (False, True),
        },
        {
            **BASE,
            "path_policy": "dems-s",
            "size": (256 * KIB, MIB),
            "second_rtt_ms": RTTS_MS,
            "warm": False,
        },
    )
    quick_reps = 5
    in_all_quick = False
    run_seconds = 8.0
    claims = (
        *(
            instead_of_minrtt(policy, size, rtt)
            for policy in ("ecf", "dems-s", "dems-f")
            for size in (*MEDIUM, 8 * MIB)
            for rtt in RTTS_MS
        ),
        *(over_optimum(policy, size, rtt) for policy in OURS for size in MEDIUM for rtt in RTTS_MS),
        *(
            ends_together(policy, size, rtt)
            for policy in OURS
            for size in MEDIUM
            for rtt in RTTS_MS
        ),
        *(
            make(size, rtt)
            for make in (fewer_again, no_more_than_expected, little_undisturbed)
            for size in MEDIUM
            for rtt in RTTS_MS
        ),
        *(a_fifth_sooner(policy, rtt) for policy in OURS for rtt in FAR_MS),
        *(
            no_worse_when_fresh(policy, size, rtt)
            for policy in OURS
            for size in SIZES
            for rtt in RTTS_MS
        ),
    )
    figures = (
        Figure(
            name="grown",
            title="Completion time, grown windows",
            kind="against",
            x="size",
            hue="path_policy",
            facet="second_rtt_ms",
            where={"warm": True},
            floor="floor_s",
            log=True,
        ),
        Figure(
            name="fresh",
            title="Completion time, fresh windows",
            kind="against",
            x="size",
            hue="path_policy",
            facet="second_rtt_ms",
            where={"warm": False},
            floor="floor_s",
            log=True,
        ),
        Figure(
            name="normalised",
            title="Completion time, grown windows, minrtt = 1",
            kind="normalised",
            x="size",
            hue="path_policy",
            facet="second_rtt_ms",
            where={"warm": True},
            over={"path_policy": "minrtt"},
        ),
    )
    notes = (
        "Four pipes over each path: Wi-Fi of 7.04 Mbit/s and 50 ms, LTE of 9.185 Mbit/s. Grown "
        "windows carried 8 MiB just before, by the same policy. What was published is DEMS; ecf "
        "has its rule without chunks and without reinjection.",
        "Under split:P the path that is through with its part of these 8 MiB first rests for "
        "seconds before the file, and its windows are small again (`cooled` in the record).",
        "The least possible is computed: both paths at their rates with grown windows, and what "
        "the request and rp's connection to the server take before. " + HELD_WHOLE,
        "The share of LTE and what went over both paths are of runs with fresh windows, or of "
        "pipes that rested (idle_s): else no sample tells what went before. (5.13) is taken by "
        "the most that delays deviated by in rp's samples until the last of that had gone, with a "
        "message on each path: for 1 ms it is 0.9 KB here, and what goes again is whole messages.",
        "How far apart the paths end is by when lp had the last bytes by each; a path that carried "
        "none of the file has no end.",
    )

    def policy(self, params: Params) -> str:
        """As lp is told it."""
        return str(params["path_policy"])

    def lp_options(self, params: Params, folder: Folder) -> list[str]:
        return ["--path-policy", self.policy(params)]

    def rp_options(self, params: Params, folder: Folder) -> list[str]:
        """rp knows paths by their numbers."""
        kind, colon, name = self.policy(params).partition(":")
        numbered = str(NAMES.index(name)) if name in NAMES else name
        return ["--path-policy", f"{kind}{colon}{numbered}"]

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        size = int(run.params["size"])  # type: ignore[arg-type]
        run.kept("roomy", lambda: roomy(run.lab))
        with kernel.settings(run.lab, self.settings) as there:
            found = traffic.play(run, {"file": Transfer(down=size, **traffic.way(run))})["file"]
        run.facts["sysctls"] = dict(there)
        told = account.account(run, connections=1)
        own = since(told.of("rp", "path"), run.went) if is_told_apart(run.params) else []
        return {
            "completion_s": found["completion_s"],
            "first_s": found["first_s"],
            **self.beside_bounds(run.params, found["completion_s"]),
            **shares(own, size),
            "reinjected_over_expected": over_expected(own, paths_of(run.params)),
            "ends_apart_s": ends_apart_s(told.of("lp", "path"), found["completion_s"]),
            **told.measures(),
        }

    def beside_bounds(self, params: Params, took_s: float) -> dict[str, Any]:
        return {"floor_s": self.floor_s(params), "over_optimum": took_s / self.least_s(params)}

    def least_s(self, params: Params) -> float:
        """The least possible by whatever policy."""
        return before_s(params) + optimum.completion(paths_of(params), int(params["size"]))  # type: ignore[arg-type]

    def floor_s(self, params: Params) -> float | None:
        return self.least_s(params)
