# SPDX-License-Identifier: MIT
"""Fig. 9: one file over one connection, by number of pipes."""

from typing import TYPE_CHECKING, Any

from experiments.causes.cause import Cause
from experiments.causes.handshake import Handshake
from experiments.causes.lossy import Lossy
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import account, rates, traffic
from experiments.workloads.actors import Transfer
from topologies.parameter import Parameter, Params, Value

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

SIZES = (50_000, 300_000, 2_000_000)
PIPES = (1, 2, 4, 8)
PUBLISHED = {50_000: 0.42, 300_000: 0.47, 2_000_000: 0.68}
NAMES = {50_000: "50 KB", 300_000: "300 KB", 2_000_000: "2 MB"}
LAST_MILES = ("lte", "wired", "lossy")
LTE = "lte"
IDLE_ON = ("wired", LTE)
IDLE_S = 3.0  # ten time-outs of the wired last mile: no window is still as wide as it was


def runs(preset: str, size: int, pipes: int, **more: Value) -> Params:
    """By fresh pipes, unless `more` says otherwise."""
    fresh: Params = {"preset": preset, "size": size, "warm": False}
    return {**fresh, "way": "pipes", "pipes": pipes, **more}


def by_pipes(
    preset: str, size: int, at: str = "", causes: tuple[Cause, ...] = (), **more: Value
) -> Claim:
    """What was published is of LTE alone."""
    claim = Claim(
        row="download",
        where="Fig. 9",
        says=f"{NAMES[size]}, 8 pipes instead of 1, {preset}{at}",
        of=runs(preset, size, 8, **more),
        over=runs(preset, size, 1, **more),
        paper=PUBLISHED[size],
        causes=(Lossy("size"), *causes),
    )
    return claim if preset == LTE else claim.as_own()


def by_one_pipe(preset: str) -> Claim:
    """A pipe alone does what a proxy does that only splits the connection."""
    claim = Claim(
        row="download",
        where="Fig. 9",
        says=f"300 KB, 1 pipe instead of a plain splitting proxy, {preset}",
        of=runs(preset, 300_000, 1),
        over={"preset": preset, "size": 300_000, "way": "haproxy"},
        paper=1.0,
        expect="same",
        causes=(Handshake(),),
    )
    return claim if preset == LTE else claim.as_own()


def idle(preset: str) -> Claim:
    """The state that users' pipes are in most of the time."""
    rested: Params = {"warm": True, "idle_s": IDLE_S}
    return Claim(
        row="download",
        where=OWN,
        says=f"300 KB, 8 pipes that rested {IDLE_S:g} s instead of 1, {preset}",
        of=runs(preset, 300_000, 8, **rested),
        over=runs(preset, 300_000, 1, **rested),
    )


class Download(Experiment):
    name = "download"
    ways = ("pipes", "direct", "haproxy", "mptcp")
    clients = ("namespace", "vm")
    title = "One file over one connection"
    question = "How much sooner is a file there when more pipes carry it?"
    parameters = (Parameter("size", 300_000, "size", "of the file", low=1),)
    metrics = (
        Metric("completion_s", "completion time", "s", matters=0.05),
        Metric("first_s", "first byte", "s"),
        Metric("over_floor", "completion time over RTT + size/rate", ""),
        Metric("retransmits", "segments sent again by the pipes", ""),
    )
    grids = (
        {"preset": LAST_MILES, "size": SIZES, "pipes": PIPES, "warm": (False, True)},
        {"preset": LAST_MILES, "size": SIZES, "pipes": PIPES, "warm": True, "idle_s": IDLE_S},
        {"preset": LAST_MILES, "size": SIZES, "way": ("direct", "haproxy", "mptcp")},
    )
    quick_grids = (
        {"preset": ("wired", "lossy"), "size": SIZES[:2], "pipes": PIPES},
        {"preset": ("wired", "lossy"), "size": SIZES[2:], "pipes": (1, 8)},
        {"preset": LTE, "size": SIZES[:1], "pipes": (1, 4, 8)},
        {"preset": LTE, "size": SIZES[1:], "pipes": (1, 8)},
        {"preset": ("wired",), "size": SIZES, "way": ("direct", "mptcp")},
        {"preset": ("lossy",), "size": SIZES[:2], "way": ("direct", "mptcp")},
        {"preset": ("wired", LTE), "size": SIZES[1:2], "way": "haproxy"},
        {"preset": ("wired",), "size": SIZES[:2], "pipes": (1, 8), "warm": (True,)},
        {"preset": "wired", "size": SIZES[1:2], "pipes": (1, 8), "warm": True, "idle_s": IDLE_S},
        {"preset": LTE, "size": SIZES[1:2], "way": "direct"},
        {"preset": ("lossy",), "size": SIZES[1:2], "pipes": (1, 8), "warm": (True,)},
    )
    quick_reps = 7
    run_seconds = 1.4
    claims = (
        *(by_pipes(preset, size) for preset in LAST_MILES for size in SIZES),
        Claim(
            row="download",
            where="Fig. 9",
            says="50 KB: 8 pipes are no faster than 4, whose initial windows hold it all",
            of=runs("lte", 50_000, 8),
            over=runs("lte", 50_000, 4),
            paper=1.0,
            expect="same",
        ),
        *(by_one_pipe(preset) for preset in LAST_MILES),
        *(
            Claim(
                row="download",
                where=OWN,
                says=f"300 KB, 1 pipe (a splitting proxy) instead of none, {preset}",
                of=runs(preset, 300_000, 1),
                over={"preset": preset, "size": 300_000, "way": "direct"},
            )
            for preset in LAST_MILES
        ),
        *(idle(preset) for preset in IDLE_ON),
    )
    figures = (
        Figure(
            name="time",
            title="Completion time by pipes",
            kind="against",
            hue="size",
            facet="preset",
            where={"warm": False},
            floor="floor_s",
            log=True,
        ),
        Figure(
            name="normalised",
            title="Completion time, 1 pipe = 1",
            kind="normalised",
            hue="size",
            facet="preset",
            where={"way": "pipes", "warm": False},
            over={"pipes": 1},
        ),
        Figure(
            name="cdf",
            title="300 KB on the lossy last mile",
            kind="cdf",
            x="completion_s",
            hue="pipes",
            where={"size": 300_000, "preset": "lossy", "warm": False},
        ),
    )
    notes = (
        "The published figures are LTE's of 2015; what is said of the other last miles nobody "
        "published. On the wired last mile 300 KB and 2 MB over one "
        "pipe are near RTT + size/rate already, so no number of pipes can gain as much there. "
        "Nor on LTE as it is here; the rate of LTE then was not published. At 9.2 Mbit/s eight "
        "pipes could take at most 49, 28 and 7.5 % off 50 KB, 300 KB and 2 MB over one, at 40 "
        "Mbit/s 59, 48 and 25 % (download-40).",
        "Every run has freshly dialled pipes. Warm ones carried 1 MB just before; idle ones did, "
        "and then rested for longer than TCP's time-outs, as a user's pipes do between two pages.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        size = int(run.params["size"])  # type: ignore[arg-type]
        found = traffic.play(run, {"file": Transfer(down=size, **traffic.way(run))})["file"]
        floor = self.floor_s(run.params)
        measures = {
            "completion_s": found["completion_s"],
            "connect_s": found["connect_s"],
            "first_s": found["first_s"],
            "floor_s": floor,
            "over_floor": found["completion_s"] / floor,
            "subflows": found["subflows"],
        }
        if run.pair is not None:
            measures |= account.account(run, connections=1).measures()
        return measures

    def floor_s(self, params: Params) -> float:
        return rates.floor_s(params, int(params["size"]))  # type: ignore[arg-type]
