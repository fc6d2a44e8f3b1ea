# SPDX-License-Identifier: MIT
"""A path goes away under a transfer over two of them: what is seen of it, and for how long.

How long the machine itself kept everybody waiting is measured beside, and allowed for.
"""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.relay import payload, records
from tests.relay.ends import read_exactly, serving, socks
from tests.relay.late import Lateness, lateness
from tests.relay.miles import (
    PATHS,
    PIPES,
    PORT,
    RATE_MBPS,
    RP,
    Miles,
    Stream,
    leads_to_rp,
    miles,
    proxies,
    streaming,
    up,
)
from tests.relay.soak import LONG, SOAK_S, Held
from tests.relay.waiting import until

DELAY_MS = 25.0
RTT_S = 2 * DELAY_MS / 1000
EVENT_S = 2 * RTT_S + 0.1
SILENCE_S = 1.0
BEFORE_S = 0.05  # what was on its way when it happened arrives after it
# Of a path a transfer has so much: headers take the rest.
ALONE_MBPS = RATE_MBPS * 0.95
# On a busy machine the limit to what a path's pipes hold may stay at 0.8, see decision 0022.
LEFT_MBPS, BOTH_MBPS = 0.8 * ALONE_MBPS, 1.4 * ALONE_MBPS
WAYS = pytest.mark.parametrize("down", [True, False], ids=["download", "upload"])


@pytest.fixture
def two_miles(tmp_path: Path) -> Iterator[Miles]:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with miles(tmp_path / "links", DELAY_MS) as at:
        yield at


def pauses(stream: Stream, since: float, most: float, late: Lateness) -> None:
    until("it goes on", lambda: stream.at[-1][0] > since + most + 1, 20)
    pause = stream.longest_pause(since - BEFORE_S)
    assert pause < late.allowed(most), f"paused for {pause:.3f} s; {late.worst:.3f} s late"


def goes_on(stream: Stream, least: float) -> None:
    """In Mbit/s, over the next 2 s; or within some such time."""
    rates: list[float] = []

    def enough() -> bool:
        begin = time.monotonic()
        time.sleep(2)
        rates.append(stream.rate(begin, begin + 2))
        return rates[-1] >= least

    try:
        until(f"{least:.1f} Mbit/s", enough, 24)
    except AssertionError as late:
        seen = ", ".join(f"{rate:.1f}" for rate in rates)
        raise AssertionError(f"{late}; over 2 s each: {seen} Mbit/s") from None


@WAYS
def test_a_device_that_is_down(two_miles: Miles, tmp_path: Path, down: bool) -> None:
    """And up again: then the path is used as before."""
    at = two_miles
    with (
        proxies(at, tmp_path) as (rp, lp),
        streaming(at, down) as stream,
        lateness() as late,
    ):
        goes_on(stream, BOTH_MBPS)
        since = time.monotonic()
        at.near.ip("link", "set", "wifi", "down")
        pauses(stream, since, EVENT_S, late)
        lp.expect("session 1: path wifi is down")
        assert len(lp.lines("where it leaves from, has a device that is down")) == 2
        assert not lp.lines("10.2.0.1, where it leaves from")
        goes_on(stream, LEFT_MBPS)
        at.near.ip("link", "set", "wifi", "up")
        leads_to_rp(at.near, "wifi")
        lp.expect(up("wifi"), count=2)
        goes_on(stream, BOTH_MBPS)
        assert not rp.lines("session 2") and not rp.lines("sent away")


@WAYS
def test_silence_without_an_event(two_miles: Miles, tmp_path: Path, down: bool) -> None:
    at = two_miles
    with (
        proxies(at, tmp_path) as (rp, lp),
        streaming(at, down) as stream,
        lateness() as late,
    ):
        goes_on(stream, BOTH_MBPS)
        since = time.monotonic()
        at.wifi.set("both", loss=1.0)
        pauses(stream, since, SILENCE_S, late)
        goes_on(stream, LEFT_MBPS)
        assert not lp.lines("is down")
        at.wifi.set("both", loss=0.0)
        goes_on(stream, BOTH_MBPS)
        assert not rp.lines("session 2")


def all_arrived(stats: Path) -> bool:
    """rp's pipes are up, and what they sent is acknowledged: the next answer takes both paths."""
    pipes = records.last_of_pipes(stats)
    return len(pipes) == PIPES and all(
        pipe["state"] == "up" and not pipe["unsent"] + pipe["in_flight"] for pipe in pipes
    )


@pytest.mark.parametrize("mode", ["timely", "mpflex"])
def test_what_a_silent_path_holds_goes_again(two_miles: Miles, tmp_path: Path, mode: str) -> None:
    """While the other one is idle, before pipes look dead; and each byte arrives once."""
    at, stats = two_miles, tmp_path / "rp.jsonl"
    told = ("--reinject", mode, "--thin", "off")
    writes = ("--stats", str(stats), "--stats-interval", "0.1")
    block = payload.seeded(100_000)

    def serve(sock: socket.socket) -> None:
        while sock.recv(1):
            sock.sendall(block)

    with (
        proxies(at, tmp_path, *PATHS, *told, rp_options=(*told, *writes)) as (rp, _),
        serving(at.far, serve, (RP, PORT)),
        socks(at.near, RP, PORT) as sock,
    ):
        for _ in range(3):  # round trips are known then
            sock.sendall(b"x")
            assert read_exactly(sock, len(block)) == block
        for _ in range(2):  # more of it than is allowed to go twice would wait for TCP
            until("wifi is in use again", lambda: all_arrived(stats), 20)
            at.wifi.set("ba", loss=1.0)  # of which rp knows nothing before it answers
            sock.sendall(b"x")
            assert read_exactly(sock, len(block)) == block
            at.wifi.set("ba", loss=0.0)
        assert rp.running() and not rp.lines("session 2")
    assert records.of(stats, "start")[0]["reinject"] == mode
    counters = records.of(stats, "counters")[-1]
    assert counters["reinjected"] > 0
    sent = sum(pipe["tx_bytes"] for pipe in records.last_of_pipes(stats))
    assert counters["reinjected_bytes"] < sent / 20 + 65536


@WAYS
def test_another_address(two_miles: Miles, tmp_path: Path, down: bool) -> None:
    """rp is told over the other path, and takes pipes of this one from where they come."""
    at = two_miles
    with (
        proxies(at, tmp_path) as (rp, lp),
        streaming(at, down) as stream,
        lateness() as late,
    ):
        goes_on(stream, BOTH_MBPS)
        since = time.monotonic()
        at.near.ip("address", "del", "10.1.0.1/24", "dev", "wifi")
        at.near.ip("address", "add", "10.1.0.7/24", "dev", "wifi")
        leads_to_rp(at.near, "wifi")
        pauses(stream, since, EVENT_S, late)
        lp.expect("10.1.0.1, where it leaves from, is this host's no more", count=2)
        rp.expect("session 1: pipes of path 0 come from 10.1.0.7")
        lp.expect(up("wifi"), count=2)
        goes_on(stream, BOTH_MBPS)
        assert not rp.lines("session 2") and not rp.lines("sent away")


def test_a_route_of_another_device_does_not_matter(two_miles: Miles, tmp_path: Path) -> None:
    """By which the kernel would send what is bound to no device."""
    at = two_miles
    with proxies(at, tmp_path) as (_, lp), streaming(at, True) as stream:
        at.near.ip("route", "add", "10.9.0.0/16", "via", "10.2.0.2", "dev", "lte")
        at.near.ip("route", "del", "10.9.0.1/32", "dev", "wifi", "metric", "1")
        leads_to_rp(at.near, "wifi")
        goes_on(stream, BOTH_MBPS)
        assert not lp.lines("goes another way now") and not lp.lines(r"pipes? (is|are) left")


@LONG
@WAYS
def test_devices_go_and_come_by_turns(two_miles: Miles, tmp_path: Path, down: bool) -> None:
    """Every 200 ms one goes down, and the other one comes up."""
    at = two_miles
    seconds = SOAK_S or 6.0
    with proxies(at, tmp_path) as (rp, lp), streaming(at, down) as stream:
        both = [Held(proxy, proxy.fd_count(), 1, PIPES) for proxy in (rp, lp)]
        end = time.monotonic() + seconds
        turns = 0
        while time.monotonic() < end or turns <= seconds:
            gone, there = ("wifi", "lte") if turns % 2 else ("lte", "wifi")
            at.near.ip("link", "set", there, "up")
            leads_to_rp(at.near, there)
            time.sleep(0.2)
            at.near.ip("link", "set", gone, "down")
            time.sleep(0.2)
            at.near.ip("link", "set", gone, "up")
            leads_to_rp(at.near, gone)
            turns += 1
            for one in both:
                one.look()
        before = stream.came
        until("bytes go on", lambda: stream.came > before + 500_000, 20)
        assert turns > seconds and not rp.lines("session 2")
        lp.expect("path lte is down")
        lp.expect("path wifi is down")
    for one in both:
        one.check()
