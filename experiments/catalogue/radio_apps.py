# SPDX-License-Identifier: MIT
"""A phone's applications over a radio link, alone and beside an upload."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.radio_delay import case
from experiments.catalogue.radio_qcut import QCUT_D
from experiments.causes.otherwise import Nearer
from experiments.model import OWN, Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import radio_apps
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

ROW = "radio-apps"
STRONG, WEAK = 8.0, 2.0  # Mbit/s up, for the published strong and weak signal
RATES = (STRONG, WEAK)
NAMES = {STRONG: "strong signal (8 Mbit/s)", WEAK: "weak signal (2 Mbit/s)"}
SETTLE_S = 12.0  # of the upload, which fills both queues within 5 at either rate
UNTREATED: Params = {"gate": "none", "host": "fifo"}
CODEL: Params = {"gate": "none", "host": "codel"}
QCUT: Params = {"gate": QCUT_D, "host": "prio"}
MORE = {  # median page load times beside an upload, to those alone
    STRONG: {"untreated": 1.78, "CoDel": 1.75},
    WEAK: {"untreated": 2.59, "CoDel": 2.71},
}
DOWNLOAD = 0.34  # of the rate alone
VIDEO = 0.43  # of the bitrate alone
MOST_OF_ALONE = 1.2  # a page beside an upload behind QCUT-D
LEAST_OF_UNTREATED = 0.8  # what CoDel leaves of a page's time
HOST_QUEUE = (
    "Most of what CoDel takes away is the host's queue, whose room is ours: at 8 Mbit/s, with room "
    "for 100 ms instead of 750, pages took 6.9 s untreated and 5.0 s with CoDel instead of 16 and "
    "5.3 (2026-12-01)"
)
MOST_ADDED_MS = 30.0  # an object over pipes beside an upload
LESS_ROOM_MS = 100.0  # in the host's queue: of what its room takes part in
LOADS = ("alone", "upload")
DIRECT: Params = {"way": "direct", "pipes": 0}
PIPES: Params = {"way": "pipes", "pipes": 8, **UNTREATED}


def runs(app: str, mbps: float, load: str, how: Params = UNTREATED, **more: Any) -> Params:
    base = {**case(mbps), **DIRECT, "interactive": radio_apps.INTERACTIVE}
    return {**base, "app": app, "load": load, **how, **more}


def with_less_room(app: str, mbps: float, how: Params = UNTREATED) -> Params:
    return runs(app, mbps, "upload", how, queue_up_ms=LESS_ROOM_MS)


def less_room(app: str, mbps: float, how: Params = UNTREATED) -> Nearer:
    says = f"With room for {LESS_ROOM_MS:g} ms in the host's queue, which was not published,"
    return Nearer(says, with_less_room(app, mbps, how))


def grids_of(rates: tuple[float, ...], apps: tuple[str, ...]) -> tuple[Grid, ...]:
    params = [with_less_room("page", STRONG, CODEL)]
    params += [with_less_room(app, STRONG) for app in ("page", "download", "video")]
    for mbps in rates:
        for app in apps:
            params.append(runs(app, mbps, "alone"))
            params += [runs(app, mbps, "upload", how) for how in (UNTREATED, CODEL, QCUT)]
        params += [runs("object", mbps, load, PIPES) for load in LOADS]
    return tuple(map(as_grid, params))


def claims_of_pages(mbps: float) -> tuple[Claim, ...]:
    alone = runs("page", mbps, "alone")
    beside = {
        name: runs("page", mbps, "upload", how)
        for name, how in (("untreated", UNTREATED), ("CoDel", CODEL), ("QCUT-D", QCUT))
    }
    says = f"{NAMES[mbps]}: pages beside an upload"
    published = [
        Claim(
            ROW,
            "Fig. 3.23",
            f"{says}, {name}, to alone",
            beside[name],
            alone,
            metric="page_s",
            paper=paper,
            expect="more",
            than=1.1,
            causes=(less_room("page", mbps, UNTREATED if name == "untreated" else CODEL),),
        )
        for name, paper in MORE[mbps].items()
    ]
    return (
        *published,
        Claim(
            ROW,
            "Fig. 3.23",
            f"{says}, QCUT-D, to alone",
            beside["QCUT-D"],
            alone,
            metric="page_s",
            paper=1.0,
            expect="same",
            within=MOST_OF_ALONE - 1,
        ),
        Claim(
            ROW,
            OWN,
            f"{says}, CoDel instead of nothing",
            beside["CoDel"],
            beside["untreated"],
            metric="page_s",
            expect="more",
            than=LEAST_OF_UNTREATED,
            note=HOST_QUEUE,
        ),
    )


def claims_of_rates(mbps: float) -> tuple[Claim, ...]:
    """A video's bitrate and a download's rate."""
    at = NAMES[mbps]
    found = [
        Claim(
            ROW,
            where,
            f"{at}: {what} beside an upload, to alone",
            runs(app, mbps, "upload"),
            runs(app, mbps, "alone"),
            metric=metric,
            paper=paper,
            expect="less",
            than=0.9,
            causes=(less_room(app, mbps),),
        )
        for app, what, metric, where, paper in (
            ("download", "a download's rate", "download_mbps", "Table 3.1", DOWNLOAD),
            ("video", "a video's bitrate", "video_mbps", "§3.5.3", VIDEO),
        )
    ]
    udp = runs("udp", mbps, "upload")
    found.append(
        Claim(
            ROW,
            "Fig. 3.11",
            f"{at}: a download by UDP beside an upload, to alone",
            udp,
            runs("udp", mbps, "alone"),
            metric="udp_mbps",
            paper=1.0,
            expect="same",
            within=0.05,
        )
    )
    found += [
        Claim(
            ROW,
            "Fig. 3.23",
            f"{at}: {what} beside an upload, QCUT-D instead of CoDel",
            runs("video", mbps, "upload", QCUT),
            runs("video", mbps, "upload", CODEL),
            metric=metric,
            expect=expect,  # type: ignore[arg-type]
        )
        for what, metric, expect in (
            ("a video's bitrate", "video_mbps", "more"),
            ("until a video begins", "video_start_s", "less"),
        )
    ]
    return tuple(found)


def claim_of_object(mbps: float) -> Claim:
    return Claim(
        ROW,
        OWN,
        f"{NAMES[mbps]}: 4 KB over 8 pipes beside an upload over them, no gate: what it takes more",
        runs("object", mbps, "upload", PIPES),
        runs("object", mbps, "alone", PIPES),
        metric="object_ms",
        compared="difference",
        than=MOST_ADDED_MS,
    )


def figure(name: str, title: str, app: str, y: str, **more: Any) -> Figure:
    """Beside an upload, alone = 1."""
    return Figure(
        name=name,
        title=title,
        kind="normalised",
        y=y,
        x="gate",
        hue="host",
        facet="up_mbps",
        where={"app": app, "way": "direct", "load": "upload"},
        over={"load": "alone", **UNTREATED},
        **more,
    )


APPS = tuple(radio_apps.APPS)
DIRECT_APPS = tuple(it for it in APPS if it != "object")


class RadioApps(Experiment):
    name = ROW
    ways = ("direct", "pipes")
    title = "Applications beside an upload over a radio link"
    question = "What does a user see of an upload that waits in the device and below it?"
    parameters = (
        Parameter("app", "page", "text", "what is used", APPS, noun="application"),
        Parameter("load", "upload", "text", "what goes on beside it", LOADS),
        Parameter("settle_s", SETTLE_S, "number", "of the upload before the application", low=0.5),
        Parameter(
            "seconds", 30.0, "number", "for which it is used; pages: as long as they take", low=1
        ),
    )
    metrics = (
        Metric("page_s", "page load time", "s", matters=0.05),
        Metric("video_mbps", "mean bitrate of a video", "Mbit/s", "more", matters=0.05),
        Metric("video_start_s", "time until a video begins", "s", matters=0.1),
        Metric("video_stalled", "share of the time in which a video stands still", ""),
        Metric("video_stalls", "times a video stands still", ""),
        Metric("download_mbps", "goodput of a download", "Mbit/s", "more", matters=0.02),
        Metric("udp_mbps", "what came of a download by UDP", "Mbit/s", "more", matters=0.02),
        Metric("object_ms", "time of 4 KB, median", "ms", matters=0.05, matters_by=1.0),
        Metric("firmware_ms", "wait in the firmware, median", "ms", "neither"),
        Metric("host_ms", "wait in the host's queue, median", "ms", "neither"),
        Metric("link_mbps", "rate that the uplink carried", "Mbit/s", "neither"),
    )
    shown = ("video_mbps", "download_mbps", "udp_mbps", "object_ms", "firmware_ms", "link_mbps")
    grids = grids_of(RATES, DIRECT_APPS)
    reps = 5
    quick_grids = grids_of((STRONG,), DIRECT_APPS)
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    packages = ("nginx", "openssl")
    run_seconds = 60.0
    claims = tuple(
        it
        for mbps in RATES
        for it in (*claims_of_pages(mbps), *claims_of_rates(mbps), claim_of_object(mbps))
    )
    figures = (
        figure("pages", "Pages beside an upload", "page", "page_s", log=True),
        figure("video", "Bitrate of a video beside an upload", "video", "video_mbps"),
        figure("download", "A download beside an upload", "download", "download_mbps"),
        figure("udp", "A download by UDP beside an upload", "udp", "udp_mbps"),
        Figure(
            name="object",
            title="4 KB over 8 pipes, alone and beside an upload",
            kind="against",
            y="object_ms",
            x="load",
            facet="up_mbps",
            where={"app": "object"},
        ),
    )
    notes = (
        "The uplink is a model (topologies/linkem/README.md): 300 KB in the firmware, 750 KB in "
        "the host's queue, grants every 5 ms, each 8 ms late; 10 Mbit/s down, 50 ms. 8 and 2 "
        "Mbit/s up stand for the published strong and weak signal, whose rates were not told: "
        "in radio-delay, at these rates, the firmware holds back what was published.",
        "An upload begins 12 s before, as one connection. QCUT-D is the gate of 20 ms with "
        "a host's queue in which all but the upload goes first, by ports; CoDel is in the host's "
        "queue, above the firmware. A wait of three seconds in the host's queue is what its room "
        "allows, which was not published.",
        "Pages are five synthetic ones of 20 to 64 requests, by HTTP/1.1, of whose times the "
        "median counts; published were five "
        "popular sites in a phone's browser, and the phone's own work is in their times: what "
        "waiting adds is a smaller part of them. The player chooses among 0.1 to 4.5 Mbit/s (its "
        "rules: workloads/player.py), published were videos of 0.93 Mbit/s in the mean. A download "
        "lasts 30 s, published was a minute, and beside a download by UDP an upload by UDP.",
        "Over pipes nothing is done in the host's queue or at a gate: what the pipes hold together "
        "is bounded by themselves.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return radio_apps.beside_upload(
            run,
            str(run.params["app"]),
            upload=run.params["load"] == "upload",
            settle_s=float(run.params["settle_s"]),  # type: ignore[arg-type]
            seconds=float(run.params["seconds"]),  # type: ignore[arg-type]
        )
