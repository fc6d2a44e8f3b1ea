# SPDX-License-Identifier: MIT
"""An ordinary download beside applications that take little of what they asked for, or nothing."""

import time
from collections import deque
from contextlib import AbstractContextManager, ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from base.shell import until
from experiments.model import Claim, Experiment, Figure, Metric
from experiments.workloads import rates, traffic
from experiments.workloads.actors import BIN_S, Bulk
from experiments.workloads.readers import Readers
from topologies.addresses import LP_PORT
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

BASE: Params = {
    "preset": "wired",
    "mbps": 50.0,
    "rtt_ms": 50.0,
    "queue_ms": 50.0,
    "wan_rtt_ms": 0.0,
    "link": "auto",
    "bottleneck": "network",
    "pipes": 4,
}
# For readers that have hundreds of megabytes before they are done: an emulator at that rate would
# take the processors from those who are measured.
FAST: Params = {
    **BASE,
    "mbps": 200.0,
    "rtt_ms": 0.0,
    "wan_mbps": 10_000.0,
    "link": "veth",
    "bottleneck": "sender",
}
# Bytes taken at first, and bytes a second after that.
TAKES = {
    "nothing": (0, 0.0),
    "10MB": (10_000_000, 0.0),
    "50KB/s": (0, 50e3),
    "1.2MB/s": (0, 1.2e6),
}
WORDS = {
    "nothing": "that take nothing",
    "10MB": "that took 10 MB, then nothing",
    "50KB/s": "that take 50 KB/s",
    "1.2MB/s": "that take 1.2 MB/s",
}
# How many there may be of each without having most of the rate, or taking minutes to fill the
# kernel's buffers: some megabytes each.
COUNTS = {"nothing": (1, 16), "10MB": (1, 16), "50KB/s": (1, 16), "1.2MB/s": (1,)}
MANY = {"nothing": (255,), "10MB": (255,)}
EXTENDS = ("auto", "never")
BEGIN_S = 2.0  # until the download has its rate
BEFORE_S = 0.2  # readers come, something is made ready for them
FULL_S = 1.0  # for which nothing more went into the readers' buffers: then they are full
FULL_BYTES = 500_000  # more or less, for the download has some, too
FILLS_S = 90.0  # at most
LOOK_S = 0.2  # between two looks, each of which lists every connection
LEAST = 0.95  # of its rate alone
MIB = 1 << 20
# Megabytes, a tenth above: what lp's applications may leave lying (--window-memory), and what rp
# keeps until lp has it (--keep); 4 KiB a connection.
MOST_MB = {"lp": 256, "rp": 32}


def grid(takes: str, counts: tuple[int, ...], base: Params = BASE) -> dict[str, Any]:
    return {"extend": EXTENDS, **base, "takes": takes, "readers": counts}


def claims_of(
    takes: str, count: int, base: Params = BASE, row: str = "slow-reader"
) -> tuple[Claim, ...]:
    of: Params = {**base, "takes": takes, "readers": count, "extend": "auto"}
    several = "readers" if count > 1 else "reader"
    words = f"beside {count} {several} {WORDS[takes]}"

    def claim(says: str, metric: str, **more: Any) -> Claim:
        return Claim(row, "not published", f"{words}: {says}", of, metric=metric, **more)

    kept = claim(
        "rate of a download, to that alone", "rate_kept", unit="times", expect="more", than=LEAST
    )
    memory = tuple(
        claim(
            f"memory of {who}",
            f"{who}_mb",
            unit="MB",
            than=1.1 * (mib * MIB + 4096 * count) / 1e6,
        )
        for who, mib in MOST_MB.items()
    )
    return (kept, *memory)


class SlowReader(Experiment):
    name = "slow-reader"
    ways = ("pipes",)
    title = "A download beside applications that do not read"
    question = "Does a reader that takes little or nothing hold up anybody but itself?"
    parameters = (
        Parameter("readers", 1, "whole", "that take little or nothing", low=1, high=12_000),
        Parameter(
            "takes",
            "nothing",
            "text",
            "what each of them takes",
            tuple(TAKES),
            noun="each reader takes",
        ),
        Parameter("alone_s", 3.0, "number", "for which the download is alone", low=0.5),
        Parameter("beside_s", 6.0, "number", "for which it is beside readers", low=0.5),
    )
    metrics = (
        Metric("rate_kept", "rate of the download / what readers leave", "", "more", matters=0.02),
        Metric("silence_s", "longest silence of the download beside readers", "s", matters=0.1),
        Metric("alone_mbps", "rate alone", "Mbit/s", "more"),
        Metric("beside_mbps", "rate beside readers", "Mbit/s", "more"),
        Metric("readers_mbps", "rate of the readers", "Mbit/s", "neither"),
        Metric("buffered_mbps", "what buffers before readers still took", "Mbit/s", "neither"),
        Metric("resets", "readers that were reset", ""),
        Metric("reset_after_s", "time until the first reader was reset", "s", "neither"),
        Metric("rp_mb", "most memory of rp", "MB", matters=0.1),
        Metric("lp_mb", "most memory of lp", "MB", matters=0.1),
    )
    shown = ("silence_s", "alone_mbps", "resets", "rp_mb", "lp_mb")
    grids = (
        *(grid(takes, counts) for takes, counts in COUNTS.items()),
        *(grid(takes, counts, FAST) for takes, counts in MANY.items()),
    )
    reps = 10
    quick_grids = (grid("nothing", (1, 16)),)
    quick_reps = 5
    run_seconds = 25.0
    fills_s: ClassVar[float] = FILLS_S
    claims = (
        *(
            claim
            for base, some in ((BASE, COUNTS), (FAST, MANY))
            for takes, counts in some.items()
            for count in counts
            for claim in claims_of(takes, count, base)
        ),
    )
    figures = (
        Figure(
            name="rate",
            title="A download beside applications that do not read",
            kind="against",
            y="rate_kept",
            x="takes",
            hue="extend",
            facet="readers",
        ),
        Figure(
            name="silence",
            title="Longest silence of the download",
            kind="against",
            y="silence_s",
            x="takes",
            hue="extend",
            facet="readers",
        ),
        Figure(
            name="memory",
            title="Memory of rp",
            kind="against",
            y="rp_mb",
            x="takes",
            hue="extend",
            facet="readers",
        ),
        Figure(
            name="series",
            title="The download before and beside readers",
            kind="series",
            y="series_download_mbps",
            where={"takes": "nothing"},
        ),
    )
    notes = (
        "A download without end runs alone for three seconds. Then readers come: each has a "
        "connection of its own on which the server sends without end, and takes nothing; 50 KB or "
        "1.2 MB a second; or 10 MB as fast as it can and nothing after that. When the kernel's "
        "buffers of the readers and lp's are full, and a second has passed, the download's rate is "
        "measured again. Until then even who does not read has its share of the rate.",
        "What it is compared with is its rate alone less what the readers have: what they take, "
        "and what the kernel's buffers in front of them and lp's took meanwhile, since these grow "
        "at times even when they were full for a second. Memory is the most that was resident of "
        "each proxy.",
        "50 Mbit/s, 50 ms, four pipes; 255 readers over a link of 200 Mbit/s that "
        "emulates nothing. The bounds are the laboratory's own.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return self.observe(run)

    def observe(
        self, run: "LiveRun", theirs: AbstractContextManager[None] | None = None, **how: Any
    ) -> dict[str, Any]:
        """`theirs` is entered before they come; `how`: more for the actor of the readers."""
        own = run.params
        first, rate = TAKES[str(own["takes"])]
        alone_s, beside_s = float(own["alone_s"]), float(own["beside_s"])  # type: ignore[arg-type]
        had = run.folder / "first-bytes-were-had"
        actors = {
            "download": Bulk(port=traffic.PORT),
            "readers": Readers(
                port=traffic.PORT,
                count=int(own["readers"]),  # type: ignore[arg-type]
                first=first,
                rate=rate,
                path=str(had),
                after_s=BEGIN_S + alone_s,
                **how,
            ),
        }
        began = BEGIN_S + alone_s
        with traffic.beside(run, actors, "client") as found, ExitStack() as stack:
            if theirs:
                time.sleep(max(0.0, run.went + began - BEFORE_S - time.monotonic()))
                stack.enter_context(theirs)
            until(
                "each reader to have its first bytes", had.exists, run.deadline - time.monotonic()
            )
            wait_until_full(run, self.fills_s)
            since = time.monotonic() - run.went
            before = in_buffers(run)
            time.sleep(beside_s)
            filled = in_buffers(run) - before
        assert run.pair is not None
        had.unlink()
        memory = {f"{it.name}_mb": most_resident_mb(it.pid) for it in (run.pair.rp, run.pair.lp)}
        when = (began, since, beside_s)
        return seen(found["download"]["bins"], found["readers"], when, filled) | memory


def wait_until_full(run: "LiveRun", seconds: float) -> None:
    """Kernel and lp have buffers for who does not read: until nothing more goes into them,
    readers take their share of the rate, whatever they read."""
    told: deque[tuple[float, int]] = deque()

    def full() -> bool:
        now = time.monotonic()
        if told and now - told[-1][0] < LOOK_S:
            return False
        told.append((now, in_buffers(run)))
        while len(told) > 1 and told[1][0] <= now - FULL_S:
            told.popleft()
        return now - told[0][0] >= FULL_S and told[-1][1] - told[0][1] < FULL_BYTES

    until("the readers' buffers to be full", full, seconds)


def in_buffers(run: "LiveRun") -> int:
    """Bytes between lp and the applications, and those that lp has."""
    assert run.pair is not None
    listing = run.lab.client.connections(f"( sport = :{LP_PORT} or dport = :{traffic.PORT} )")
    queued = sum(int(number) for line in listing for number in line.split()[1:3])
    return queued + resident(run.pair.lp.pid, "VmRSS")


def most_resident_mb(pid: int) -> float:
    """Of a process, ever."""
    return resident(pid, "VmHWM") / 1e6


def resident(pid: int, which: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{which}:")[2].split()[0]) * 1024


def seen(
    bins: list[int],
    readers: dict[str, Any],
    when: tuple[float, float, float],
    filled: int,
) -> dict[str, Any]:
    """`when`: the readers began, they were settled, and for how long; seconds of the scene.
    `filled`: bytes that buffers in front of the readers took in the last of these."""
    began, since, seconds = when
    alone = rates.mbps(bins, BEGIN_S, began)
    beside = rates.mbps(bins, since, since + seconds)
    taken = rate_of(readers["taken"], since, since + seconds)
    buffered = filled * 8 / 1e6 / seconds
    left = (alone or 0.0) - taken - buffered
    resets = readers["resets_s"]
    return {
        "rate_kept": (beside or 0.0) / left if left > 0 else None,
        "silence_s": longest_silence_s(bins, began, since + seconds),
        "alone_mbps": alone,
        "beside_mbps": beside,
        "readers_mbps": taken,
        "buffered_mbps": buffered,
        "resets": len(resets),
        "reset_after_s": min(resets) - began if resets else None,
        "settled_after_s": since - began,
        "series_step_s": BIN_S,
        "series_download_mbps": rates.series_mbps(bins, width=1),
    }


def rate_of(taken: list[tuple[float, int]], since: float, until: float) -> float:
    """In Mbit/s, of what was taken until each of some times."""
    within = [(at, total) for at, total in taken if since <= at <= until]
    if len(within) < 2:
        return 0.0
    (first, before), (last, after) = within[0], within[-1]
    return (after - before) * 8 / 1e6 / (last - first)


def longest_silence_s(bins: list[int], since: float, until: float) -> float:
    """Whole bins without a byte, one after the other; there are none after the last byte."""
    whole = [*bins, *[0] * (int(until / BIN_S) - len(bins))]
    within = whole[int(since / BIN_S) : int(until / BIN_S)]
    return max(
        (len([*some]) * BIN_S for empty, some in groupby(not it for it in within) if empty),
        default=0.0,
    )
