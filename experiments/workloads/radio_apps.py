# SPDX-License-Identifier: MIT
"""What a user sees of an application over a radio link, alone or beside an upload of their own.

A page, a video, a download, the same by datagrams, and small objects. Without pipes the upload is a
connection to a port of its own, so that the host's queue can tell it from what is interactive.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from experiments.workloads import radio, rates, traffic, udp_download
from experiments.workloads.actors import Bulk, Objects, Pause
from experiments.workloads.player import Player
from experiments.workloads.udp_download import UdpDownload
from experiments.workloads.web.load import Plan, load
from experiments.workloads.web.pages import SITE_NAMES
from experiments.workloads.web.site import site
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import Program, program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

UDP_PORT = 7003
INTERACTIVE = f"port:80,port:{traffic.PORT},port:{UDP_PORT}"
PAGES = SITE_NAMES[1:15:3]  # five of the smaller half: 20 to 64 requests, 0.8 to 1.9 MB
OBJECTS = 20
UDP_OVER = 1.2  # of the downlink's rate, so that it is full
Measures = dict[str, Any]


def pages(run: "LiveRun", seconds: float) -> Measures:
    """One after the other, however long they take."""
    fixed: dict[str, Any] = {"protocol": "http1", "http2_per": "page", "tls": False}
    plans = [Plan.of(run.params, page=name, browser="loader", **fixed) for name in PAGES]
    took = [load(run, plan)["completion_s"] for plan in plans]
    return {"page_s": rates.median(took), "pages_s": [round(it, 3) for it in took]}


def video(run: "LiveRun", seconds: float) -> Measures:
    found = traffic.play(run, {"video": Player(seconds=seconds, **traffic.way(run))})["video"]
    return {
        "video_mbps": sum(found["kbps"]) / len(found["kbps"]) / 1e3,
        "video_start_s": seconds if found["began_s"] is None else found["began_s"],
        "video_stalls": found["stalls"],
        "video_stalled": found["stalled_s"] / seconds,
    }


def download(run: "LiveRun", seconds: float) -> Measures:
    """From its connect() on."""
    actors = {"download": Bulk(**traffic.way(run)), "clock": Pause(seconds=seconds)}
    found = traffic.play(run, actors)["download"]
    return {"download_mbps": rates.mbps(found["bins"], 0.0, seconds) or 0.0}


def udp(run: "LiveRun", seconds: float) -> Measures:
    mbps = UDP_OVER * float(radio.link_of(run).mile.down_mbps or 0.0)
    actor = UdpDownload(port=UDP_PORT, mbps=mbps, seconds=seconds)
    found = traffic.play(run, {"udp": actor})["udp"]
    return {"udp_mbps": rates.mbps(found["bins"], 0.0, seconds) or 0.0}


def objects(run: "LiveRun", seconds: float) -> Measures:
    actor = Objects(count=OBJECTS, seconds=seconds, **traffic.way(run))
    taken = traffic.play(run, {"objects": actor})["objects"]["seconds"]
    return {"object_ms": rates.median(taken) * 1e3}


APPS: dict[str, Callable[["LiveRun", float], Measures]] = {
    "page": pages,
    "video": video,
    "download": download,
    "udp": udp,
    "object": objects,
}


def _prepare(run: "LiveRun", app: str) -> None:
    """What takes the processor's time is up before anything is measured."""
    if app == "page":
        run.kept("web", lambda: site(run.lab))
    elif app == "udp":
        run.kept("udp-download", lambda: _udp_server(run.lab))


@contextmanager
def _udp_server(lab: Lab) -> Iterator[Program]:
    argv = traffic.command("udp_download", SERVER, str(UDP_PORT))
    ready = udp_download.READY
    with program(lab.state, "server", "udp-download", argv, ready=ready) as running:
        yield running


def beside_upload(
    run: "LiveRun", app: str, *, upload: bool, settle_s: float, seconds: float
) -> Measures:
    """What the application measured, and how much waited in the radio meanwhile. The upload begins
    `settle_s` before the application. Raises RunFailed."""
    link = radio.link_of(run)
    _prepare(run, app)
    with ExitStack() as stack:
        looks = stack.enter_context(radio.watched(link))
        if upload:
            # Pipes carry whatever the client sends; else the upload has a port of its own.
            port = traffic.PORT if run.pair else traffic.PLAIN_PORT
            actors = {"upload": Bulk(way="up", port=port)}
            stack.enter_context(traffic.beside(run, actors, "upload"))
            time.sleep(settle_s)
        since = time.monotonic()
        measures = APPS[app](run, seconds)
        until = time.monotonic()
    within = radio.waits([it for it in looks if since <= it.at <= until])
    told = ("firmware_ms", "host_ms", "host_most_ms", "link_mbps", "gate_falls")
    return measures | {name: within[name] for name in told}
