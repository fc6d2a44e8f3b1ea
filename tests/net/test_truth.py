# SPDX-License-Identifier: MIT
"""Every preset is what it says, by every realisation that this machine has."""

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.net.binomial import interval
from tests.net.measure import (
    TCP_HEADERS,
    Arrivals,
    Load,
    Way,
    Wrong,
    idle_rtt_ms,
    near,
    overload,
    ping_ms,
    shown_to_hold,
    tcp_mbps,
    udp,
    wanted_rtt_ms,
    ways,
)
from tests.net.standing import miles
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.links import EmulatedLink
from topologies.mile import ETHERNET_BYTES
from topologies.presets import PRESETS

# The limit has room for others' tests: who was late measures again when they have ended.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LOSS_FRAME = 100
LOSS_PACKETS = 8000
LOSS_PER_S = 5000.0
LOSS_QUEUE_MS = 20_000.0

# What is offered to "nothing waits": full packets a second, each way.
SPARSE_PER_S = 1700.0

LabOf = Callable[..., AbstractContextManager[Lab]]


@pytest.mark.parametrize("preset", sorted(PRESETS, key=lambda name: -PRESETS[name][0].rtt_ms))
def test_preset(preset: str, lab_of: LabOf, tmp_path: Path) -> None:
    """Loss first, on fresh links: the n-th packet sent is then the n-th packet of the link."""
    with lab_of(preset) as lab:
        found = miles(lab)
        if any(link.mile.loss_down or link.mile.loss_up for link in found):
            check_loss(lab, lab_of, preset, tmp_path)
        with ThreadPoolExecutor(len(found)) as side_by_side:
            list(side_by_side.map(lambda link: check_mile(lab, link, tmp_path), found))


def check_mile(lab: Lab, link: EmulatedLink, folder: Path) -> None:
    shown_to_hold(lab, "idle", lambda: check_idle(link))
    shown_to_hold(lab, "load", lambda: check_load(link, folder))
    if link.mile.loss_down or link.mile.loss_up:
        link.change(loss=0.0)
    for way in ways(link):
        shown_to_hold(lab, "TCP", lambda way=way: check_tcp(link, way, folder))


def check_idle(link: EmulatedLink) -> None:
    """RTT within 1 ms + 2 %."""
    near(f"{link} RTT", idle_rtt_ms(link), wanted_rtt_ms(link), part=0.02, plus=1.0)


def check_load(link: EmulatedLink, folder: Path) -> None:
    """1.1 times the rate in both directions at once: each gets its own rate, queue and delay."""
    full = link.realisation == "netem"
    loads = [(way, overload(way, seconds=1.5, full=full)) for way in ways(link)]
    for (way, load), got in zip(loads, udp(loads, folder), strict=True):
        near(f"{way.name} rate", got.mbps(), way.declared.mbps, part=0.03)
        if not got.in_order():
            raise Wrong(f"{way.name}: packets overtook others")
        # The second half has found the queue full, also what left after the sender's end: it waits
        # for the queue and for what is just being sent, half a packet in the mean.
        delays = got.delays_ms()[len(got.numbers) // 2 :]
        packet = way.packet_ms(load.frame)
        near(
            f"{way.name} delay with a full queue",
            statistics.median(delays),
            way.declared.delay_ms + way.declared.queue_ms + packet / 2,
            part=0.005,
            plus=1.0 + packet,
        )


def check_loss(lab: Lab, lab_of: LabOf, preset: str, folder: Path) -> None:
    """As many as declared, within the binomial 99.9 %; the same ones for the same seed."""
    if lab.topo.choice.realisation == "linkem":
        with lab_of(preset) as again:
            down, up, *other = lost([lab, again], folder)
        assert [got.lost() for got in (down, up)] == [got.lost() for got in other]
        assert down.lost() != up.lost(), "both directions share their chance"
    else:
        # Packets that a late sender sends at once must find room: only chance shall take them.
        declared = lab.links["mile"].mile
        lab.change(queue_ms=LOSS_QUEUE_MS)
        down, up = lost([lab], folder)
        lab.change(queue_down_ms=declared.queue_down_ms, queue_up_ms=declared.queue_up_ms)
    for way, got in zip(ways(lab.links["mile"]), (down, up), strict=True):
        low, high = interval(got.load.packets, way.declared.loss)
        print(f"{way.name}: {len(got.lost())} of {got.load.packets} lost, wanted {low} to {high}")
        assert low <= len(got.lost()) <= high, f"{way.name}: {len(got.lost())} lost"


def lost(labs: list[Lab], folder: Path) -> list[Arrivals]:
    return udp([(way, loss_load(way)) for it in labs for way in ways(it.links["mile"])], folder)


def loss_load(way: Way) -> Load:
    """Below the rate, so that only chance takes packets; two seconds at most."""
    per_s = min(LOSS_PER_S, 0.7e3 / way.packet_ms(LOSS_FRAME))
    return Load(LOSS_FRAME, min(LOSS_PACKETS, int(2 * per_s)), per_s)


def check_tcp(link: EmulatedLink, way: Way, folder: Path) -> None:
    """Within 3 % of what headers leave of the rate."""
    share = (way.mtu - TCP_HEADERS) / (way.mtu + ETHERNET_BYTES)
    found = tcp_mbps(way, link.mile.rtt_ms, folder)
    near(f"{way.name} TCP goodput", found, way.declared.mbps * share, part=0.03)


@pytest.mark.parametrize("preset", ["wired", "lte"])
def test_bottleneck_with_the_sender(preset: str, lab_of: LabOf, tmp_path: Path) -> None:
    """The same figures with rate and queue in each sender's own qdisc."""
    with lab_of(preset, bottleneck="sender") as lab:
        (link,) = miles(lab)
        assert link.describe()["bottleneck"] == "sender"
        check_mile(lab, link, tmp_path)


def test_the_way_to_the_server(lab_of: LabOf, tmp_path: Path) -> None:
    """4 ms, and nothing waits or is lost on it; the whole way adds up."""
    with lab_of("wired") as lab:
        wan = lab.links["wan"]
        assert (wan.mile.rtt_ms, wan.mile.down_mbps, wan.mile.up_mbps) == (4.0, 1000.0, 1000.0)
        shown_to_hold(lab, "idle", lambda: check_idle(wan))

        (mile,) = miles(lab)

        def whole_way() -> None:
            check_idle(mile)
            parts = idle_rtt_ms(mile) + idle_rtt_ms(wan)
            found = statistics.median(ping_ms(lab.client, SERVER))
            near("RTT to the server", found, parts, part=0.02, plus=1.0)

        def delays_ms() -> list[float]:
            load = Load(1514, int(SPARSE_PER_S), SPARSE_PER_S)
            found = udp([(way, load) for way in ways(wan)], tmp_path)
            for got in found:
                if got.lost() or not got.in_order():
                    raise Wrong(f"lost {len(got.lost())}, in order: {got.in_order()}")
            return [statistics.median(got.delays_ms()) for got in found]

        def no_loss_and_no_queue() -> None:
            """20 Mbit/s each way are nothing to it: nothing is lost, nothing waits."""
            for found in delays_ms():
                near("delay", found, 2.0, part=0.02, plus=0.5)

        shown_to_hold(lab, "the whole way", whole_way)
        shown_to_hold(lab, "load", no_loss_and_no_queue)
