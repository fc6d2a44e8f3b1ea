# SPDX-License-Identifier: MIT
"""linkem by itself is what it says: measured from outside, between two namespaces."""

import json
import socket
import statistics
import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.net.lab import Bed, bed, conserved, measure, tcp_goodput_mbps
from tests.net.measure import Wrong, again_if_late, lateness_of, near
from tests.net.probe import Arrival, rate_mbps, receiving, send
from tests.relay.netns import Namespace, namespace
from tests.relay.waiting import until

FULL = 1500
Ends = tuple[Namespace, Namespace]


@pytest.fixture
def ends() -> Iterator[Ends]:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with namespace("a") as a, namespace("b") as b:
        yield a, b


def numbers(arrivals: list[Arrival]) -> list[int]:
    return [arrival.number for arrival in arrivals]


def median_ms(arrivals: list[Arrival]) -> float:
    return statistics.median(arrival.delay_ms for arrival in arrivals)


def least_ms(arrivals: list[Arrival]) -> float:
    """None is early, and not all are late, however late the machine."""
    return min(arrival.delay_ms for arrival in arrivals)


def shown_to_hold(lab: Bed, what: str, attempt: Callable[[], None]) -> None:
    again_if_late(lambda: lateness_of("the link", lab.link.truth()), what, attempt)


def json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- time ---


def test_delay_is_as_declared_in_each_direction(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"delay_ms": 20}, ba={"delay_ms": 35, "rate_mbps": 2}) as lab:
        for direction, declared in (("ab", 20.0), ("ba", 35 + 114 * 8 / 2000)):
            shown_to_hold(lab, "delay", partial(check_delay, lab, direction, declared))


def check_delay(lab: Bed, direction: str, declared_ms: float) -> None:
    got = measure(lab, direction, 60, 0.01, ip_bytes=100)
    assert numbers(got) == list(range(60))
    assert least_ms(got) >= declared_ms
    within("delay", median_ms(got), declared_ms - 0.1, declared_ms + 0.5)


@pytest.mark.parametrize("direction", ["ab", "ba"])
def test_rate_and_depth_of_the_queue_under_load(ends: Ends, tmp_path: Path, direction: str) -> None:
    declared = {"rate_mbps": 10, "delay_ms": 25, "queue_ms": 100}
    with bed(ends, tmp_path, **{direction: declared}) as lab:
        shown_to_hold(lab, "load", lambda: check_load(lab, direction))
        assert conserved(lab.link.truth()[direction])


def check_load(lab: Bed, direction: str) -> None:
    """1.1 times 10 Mbit/s for 3 s, for a queue of 100 ms behind which there are 25 ms.

    Once linkem may stand still, and tells for how long: nothing leaves then, or leaves late.
    """
    gap_s = (FULL + 14) * 8 / 11e6
    sent = int(3 / gap_s)
    before = lab.link.truth()[direction]["counters"]["dropped_queue_packets"]
    got = measure(lab, direction, sent, gap_s)
    truth = lab.link.truth()[direction]
    assert truth["counters"]["dropped_queue_packets"] - before == sent - len(got) > 0
    late_ms = truth["late_us"]["max"] / 1000
    within("rate", rate_mbps(got), 10 * (0.99 - late_ms / 3000), 10.1)
    packet_ms = (FULL + 14) * 8 / 10000
    waits_ms = [arrival.delay_ms - 25 - packet_ms for arrival in got]
    full_ms = statistics.median(waits_ms[len(got) // 2 :])  # it is full after a second
    within("queue", full_ms, 100 - 2 * packet_ms, 100 + packet_ms)
    within("deepest", max(waits_ms), 100 - packet_ms, 100 + packet_ms + 2 + late_ms)


def within(what: str, value: float, low: float, high: float) -> None:
    print(f"{what}: {value:.5g}, wanted {low:.5g} to {high:.5g}")
    if not low < value < high:
        raise Wrong(f"{what} is {value:.4g}, not from {low:.4g} to {high:.4g}")


def test_tcp_gets_what_its_headers_leave(ends: Ends, tmp_path: Path) -> None:
    declared = {"rate_mbps": 20, "delay_ms": 10, "queue_ms": 100}
    with bed(ends, tmp_path, ab=declared, ba=declared) as lab:

        def check() -> None:
            goodput = tcp_goodput_mbps(lab, warm_s=2, seconds=4)
            near("goodput", goodput, 20 * 1448 / 1514, part=0.03)

        shown_to_hold(lab, "TCP", check)
        truth = lab.link.truth()
    assert truth["a"]["unread_dropped"] == truth["b"]["unread_dropped"] == 0


def test_a_trace_delivers_what_it_allows_to_a_packet(ends: Ends, tmp_path: Path) -> None:
    """A period of 100 ms: three at once, a lone one, an outage, two at its end."""
    outage, path = tmp_path / "outage.trace", tmp_path / "some cell.trace"
    outage.write_text("600000\n")
    period_ms = [10, 10, 10, 40, 100, 100]
    path.write_text("".join(f"{at}\n" for at in period_ms))
    with bed(ends, tmp_path, ab={"queue_packets": 10000}) as lab:

        def check() -> None:
            lab.link.set("ab", trace=outage)
            sender, receiver, to = lab.to("ab")
            used = counted(lab, "trace_used")
            with receiving(receiver) as got:
                send(sender, to, FULL, 120, 0)
                until("all to wait", lambda: lab.link.truth()["ab"]["now"]["queue_packets"] == 120)
                changed = lab.link.set("ab", trace=path)
                lab.settle("ab")
            began_ms = lab.link.ready["started_unix"] * 1e3 + changed["t_ms"]
            assert changed["ab"]["trace"] == str(path)
            assert numbers(got.arrivals) == list(range(120))
            assert counted(lab, "trace_used") - used == 120
            # Each at an opportunity of its own, without leaving one out.
            allowed_ms = [began_ms + 100 * n + at for n in range(20) for at in period_ms]
            came_ms = [arrival.received_ns / 1e6 for arrival in got.arrivals]
            late_ms = [came - at for came, at in zip(came_ms, allowed_ms, strict=True)]
            assert min(late_ms) > -0.1
            within("usually late by", statistics.median(late_ms), -0.1, 0.5)
            within("most late by", sorted(late_ms)[110], -0.1, 3)

        shown_to_hold(lab, "a trace", check)


def test_a_delay_follows_its_trace(ends: Ends, tmp_path: Path) -> None:
    """10 ms for 200 ms, then 40 for 200. Who is sent as it falls waits for those before."""
    path = tmp_path / "delays"
    path.write_text("200 10\n200 40\n")
    with bed(ends, tmp_path, ab={"delay_ms": 5}) as lab:
        changed = lab.link.set("ab", delay_trace=path)
        got = measure(lab, "ab", 120, 0.01, ip_bytes=100)
        began_ns = (lab.link.ready["started_unix"] * 1e3 + changed["t_ms"]) * 1e6
    assert changed["ab"]["delay_trace"] == str(path)
    assert numbers(got) == list(range(120))
    late_ms, floor_ns = [], 0.0
    for it in got:
        into_ms = (it.sent_ns - began_ns) / 1e6 % 400
        due_ns = it.sent_ns + (10 if into_ms < 200 else 40) * 1e6
        floor_ns = max(floor_ns, due_ns)
        if 3 < into_ms % 200 < 197:  # which of both it has is sure
            late_ms.append((it.received_ns - floor_ns) / 1e6)
    assert len(late_ms) > 100
    assert min(late_ms) > -0.1
    assert statistics.median(late_ms) < 0.5


# --- chance ---


def lost_in(ends: Ends, folder: Path, seed: int, loss: str) -> tuple[set[int], dict]:
    folder.mkdir()
    drops = folder / "drops"
    with bed(ends, folder, ab={"loss": loss}, seed=seed, options=["--drops", drops]) as lab:
        got = measure(lab, "ab", 3000, 0.0002, ip_bytes=200)
        truth = lab.link.truth()["ab"]
    lost = set(range(3000)) - set(numbers(got))
    assert lost == {line["n"] for line in json_lines(drops) if line["why"] == "loss"}
    assert truth["counters"]["lost_packets"] == len(lost)
    assert conserved(truth)
    return lost, truth


def test_the_same_seed_loses_the_same_packets(ends: Ends, tmp_path: Path) -> None:
    first, _ = lost_in(ends, tmp_path / "1", 5, "0.02")
    again, _ = lost_in(ends, tmp_path / "2", 5, "0.02")
    other, _ = lost_in(ends, tmp_path / "3", 6, "0.02")
    assert first == again != other
    # 60 are expected; 99.9 % lie within these bounds.
    assert 36 <= len(first) <= 86
    assert 36 <= len(other) <= 86


def test_losses_of_a_list_and_of_a_period(ends: Ends, tmp_path: Path) -> None:
    assert lost_in(ends, tmp_path / "1", 1, "list:0,5-7,2999")[0] == {0, 5, 6, 7, 2999}
    assert lost_in(ends, tmp_path / "2", 1, "every:100")[0] == set(range(99, 3000, 100))


def test_bursts_are_bursts(ends: Ends, tmp_path: Path) -> None:
    lost, _ = lost_in(ends, tmp_path / "1", 3, "ge:0.01,0.2,1")
    bursts = sum(1 for n in lost if n - 1 not in lost)
    assert 60 <= len(lost) <= 260
    assert 3 < len(lost) / bursts < 8


def test_jitter_keeps_the_order(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"delay_ms": 20, "jitter_ms": 8}) as lab:
        got = measure(lab, "ab", 400, 0.003)
    assert numbers(got) == list(range(400))
    delays = [arrival.delay_ms for arrival in got]
    assert 12 <= min(delays) < 15
    assert statistics.pstdev(delays) > 2


def test_reordering_and_duplicates_are_counted(ends: Ends, tmp_path: Path) -> None:
    declared = {"delay_ms": 5, "reorder": 0.1, "reorder_ms": 4, "duplicate": 0.1}
    with bed(ends, tmp_path, ab=declared) as lab:
        got = numbers(measure(lab, "ab", 1000, 0.001))
        truth = lab.link.truth()["ab"]
    highest, reordered = -1, 0
    for number in got:
        reordered += number < highest
        highest = max(highest, number)
    assert set(got) == set(range(1000))
    assert len(got) - 1000 == truth["counters"]["duplicated_packets"] > 50
    assert reordered == truth["counters"]["reordered_packets"] > 50
    assert conserved(truth)


# --- packets ---


def captured(path: Path) -> list[tuple[int, bytes]]:
    """Time in ns and bytes of each frame."""
    data = path.read_bytes()
    magic, major, minor, _, _, _, kind = struct.unpack_from("=IHHiIII", data)
    assert (magic, major, minor, kind) == (0xA1B23C4D, 2, 4, 1)
    frames, at = [], 24
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("=IIII", data, at)
        assert nanoseconds < 10**9 and kept == length
        frames.append((seconds * 10**9 + nanoseconds, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return frames


def test_no_super_packets_and_captures_of_both_sides(ends: Ends, tmp_path: Path) -> None:
    a, b = tmp_path / "a.pcap", tmp_path / "b.pcap"
    declared = {"rate_mbps": 50, "delay_ms": 5, "queue_ms": 50}
    options = ["--pcap-a", a, "--pcap-b", b]
    with bed(ends, tmp_path, ab=declared, ba=declared, options=options) as lab:
        assert not any(lab.link.ready["a"][name] for name in ("tso", "gso", "gro"))
        tcp_goodput_mbps(lab, warm_s=0.2, seconds=1)
        lab.settle("ab")
        lab.settle("ba")
        truth = lab.link.truth()
        shown = json.loads(ends[0].ip("-d", "-j", "link", "show", "linkem-a"))[0]
    assert shown["gso_max_segs"] == 1
    mac = bytes.fromhex(truth["a"]["mac"].replace(":", ""))
    entered = [(at, f) for at, f in captured(a) if f[6:12] == mac and f[12:14] == b"\x08\x00"]
    left = [(at, f) for at, f in captured(b) if f[6:12] == mac and f[12:14] == b"\x08\x00"]
    counters = truth["ab"]["counters"]
    assert len(entered) == counters["in_packets"] > 1000
    assert len(left) == counters["out_packets"]
    assert max(len(frame) for _, frame in entered) == 1514
    assert sum(len(frame) for _, frame in entered) == counters["in_bytes"]
    # What left did so in the order in which it entered, no sooner than the delay.
    dropped = counters["in_packets"] - counters["out_packets"]
    if not dropped:
        for (at, frame), (out, same) in zip(entered, left, strict=True):
            assert frame == same
            assert out - at >= 5_000_000


def test_mtu_and_addresses_are_as_told(ends: Ends, tmp_path: Path) -> None:
    options = ["--mtu", "1400", "--a-mac", "02:00:00:00:0a:01"]
    with bed(ends, tmp_path, options=options) as lab:
        shown = json.loads(ends[0].ip("-j", "link", "show", "linkem-a"))[0]
        assert (shown["mtu"], shown["address"]) == (1400, "02:00:00:00:0a:01")
        assert lab.link.ready["a"]["mac"] == "02:00:00:00:0a:01"
        sender, _, to = lab.to("ab")
        sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: never fragment
        with pytest.raises(OSError, match="too long"):
            sender.sendto(bytes(1400 - 27), to)
        assert numbers(measure(lab, "ab", 5, 0.001, ip_bytes=1400)) == list(range(5))


def test_arp_is_not_numbered(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"loss": "list:0,1"}) as lab:
        ends[0].ip("neigh", "flush", "dev", "linkem-a", "nud", "all")
        assert numbers(measure(lab, "ab", 10, 0.01)) == list(range(2, 10))
        counters = lab.link.truth()["ab"]["counters"]
    assert counters["in_packets"] == 10
    assert counters["other_in"] >= 1


def test_a_device_that_is_down_loses_and_says_so(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path) as lab:
        ends[1].ip("link", "set", "linkem-b", "down")
        assert measure(lab, "ab", 10, 0.001) == []
        truth = lab.link.truth()["ab"]
    assert truth["counters"]["dropped_device_packets"] == 10
    assert conserved(truth)


# --- changes and records ---


def test_parameters_change_while_it_runs(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"delay_ms": 5}) as lab:
        assert 5 <= least_ms(measure(lab, "ab", 20, 0.005)) < 6
        told = lab.link.set("ab", delay_ms=40, loss="list:20")
        assert told["ab"]["delay_ms"] == 40
        assert told["ba"]["delay_ms"] == 0
        assert told["from_packet"] == {"ab": 20, "ba": 0}
        later = measure(lab, "ab", 20, 0.005)
        assert numbers(later) == list(range(1, 20))
        assert 40 <= least_ms(later) < 41
        assert lab.link.get()["ab"] == told["ab"]


def test_the_queue_is_sampled(ends: Ends, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    declared = {"rate_mbps": 10, "queue_ms": 50}
    options = ["--samples", samples, "--samples-ms", "5"]
    with bed(ends, tmp_path, ab=declared, options=options) as lab:
        measure(lab, "ab", 500, 0.001)
    lines = [line for line in json_lines(samples) if line["dir"] == "ab"]
    times = [line["t_ms"] for line in lines]
    assert statistics.median(b - a for a, b in pairwise(times)) == (pytest.approx(5, abs=0.5))
    assert 48 < max(line["queue_ms"] for line in lines) <= 50
    assert lines[-1]["in"] == 500
    assert lines[-1]["out"] + lines[-1]["dropped_queue"] == 500


def test_codel_bounds_the_wait(ends: Ends, tmp_path: Path) -> None:
    declared = {"rate_mbps": 10, "queue_ms": 1000, "aqm": "codel"}
    gap_s = (FULL + 14) * 8 / 11e6
    with bed(ends, tmp_path, ab=declared) as lab:

        def check() -> None:
            got = measure(lab, "ab", int(4 / gap_s), gap_s)
            within("wait", median_ms(got[len(got) // 2 :]), 0, 100)

        shown_to_hold(lab, "CoDel", check)
        counters = lab.link.truth()["ab"]["counters"]
    assert counters["dropped_codel_packets"] > 20
    assert counters["dropped_queue_packets"] == 0


def test_a_radio_delays_by_what_its_firmware_holds(ends: Ends, tmp_path: Path) -> None:
    """1.5 times 8 Mbit/s, 40 KB in the firmware: 40 ms, and a gate of 10 ms has it hold less."""
    samples = tmp_path / "samples"
    radio = {"grants": "5ms,delay=8ms", "firmware_kb": 40, "rate_mbps": 8, "queue_packets": 20}
    gap_s = (FULL + 14) * 8 / 12e6
    with bed(ends, tmp_path, ab=radio, options=["--samples", samples]) as lab:

        def check() -> None:
            got = measure(lab, "ab", int(1 / gap_s), gap_s)
            waits_ms = 40 + 20 * 1514 * 8 / 8e3
            within("wait", median_ms(got[len(got) // 2 :]), waits_ms - 5, waits_ms + 5)
            assert numbers(got) == sorted(numbers(got))

        shown_to_hold(lab, "radio", check)
        there = lab.link.truth()["ab"]["radio"]
        assert 40_000 <= there["firmware_top_bytes"] < 40_000 + 2 * 1514  # one is partly sent
        assert there["granted_bytes"] - there["padded_bytes"] == counted(lab, "out_bytes")
        lab.link.set("ab", gate="delay:10")
        measure(lab, "ab", int(1 / gap_s), gap_s)
        truth = lab.link.truth()["ab"]
        assert conserved(truth)
        assert truth["radio"]["gate_falls"] == 0
    held = [it["firmware_bytes"] for it in json_lines(samples) if it["dir"] == "ab"]
    assert max(held) > 35_000
    assert 5_000 < statistics.median(it for it in held[len(held) // 2 :] if it) < 25_000


def counted(lab: Bed, name: str) -> int:
    return lab.link.truth()["ab"]["counters"][name]


def test_a_gate_without_telemetry_says_once_that_it_is_open(ends: Ends, tmp_path: Path) -> None:
    radio = {"grants": "5ms,delay=8ms", "rate_mbps": 8, "gate": "bytes:2000"}
    with bed(ends, tmp_path, ab={**radio, "telemetry_ms": None}) as lab:
        assert numbers(measure(lab, "ab", 50, 0)) == list(range(50))
        assert lab.link.truth()["ab"]["radio"]["gate_falls"] == 1
        told = [line for line in lab.link.log.splitlines() if "gate" in line]
    assert told == [
        "linkem: ab: packets wait and the radio tells nothing: its gate is open until it does"
    ]


def test_sanitizers_find_nothing(ends: Ends, tmp_path: Path) -> None:
    """Everything at once, and changed all the time, on the instrumented build."""
    declared = {"rate_mbps": 20, "queue_ms": 20, "jitter_ms": 3, "loss": "ge:0.01,0.3,1"}
    options = ["--drops", tmp_path / "drops", "--samples", tmp_path / "samples"]
    options += ["--pcap-a", tmp_path / "a.pcap", "--snaplen", "64", "--memory-mb", "1"]
    changes = [
        {"aqm": "codel"},
        {"rate_mbps": None, "delay_ms": 300},
        {"duplicate": 0.5, "reorder": 0.3, "reorder_ms": 10},
        {"rate_mbps": 0.5, "aqm": "tail", "queue_packets": 30},
        {"grants": "5ms,delay=8ms", "gate": "bytes:3000", "host": "prio", "interactive": "port:9"},
        {"telemetry_ms": None, "gate": "delay:20", "host": "codel"},
        {"grants": None, "gate": None, "host": "fifo"},
        {"jitter_reorder": True, "jitter_dist": "pareto", "loss": "every:3"},
    ]
    with bed(ends, tmp_path, ab=declared, ba=declared, options=options, asan=True) as lab:
        sender, _, to = lab.to("ab")
        for change in changes:
            lab.link.set("both", **change)
            send(sender, to, FULL, 400, 0.0002)
            assert conserved(lab.link.truth()["ab"])
        lab.link.set("both", rate_mbps=100)
        lab.settle("ab")


def test_two_links_at_once(ends: Ends, tmp_path: Path) -> None:
    with namespace("c") as c, namespace("d") as d:
        (tmp_path / "1").mkdir()
        (tmp_path / "2").mkdir()
        with (
            bed(ends, tmp_path / "1", ab={"delay_ms": 10}) as one,
            bed((c, d), tmp_path / "2", ab={"delay_ms": 30}) as two,
        ):
            first = least_ms(measure(one, "ab", 20, 0.005))
            second = least_ms(measure(two, "ab", 20, 0.005))
            assert 10 <= first < 30 <= second, "each has its own, however late the machine"


def test_a_stop_ends_it_with_its_truth(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"delay_ms": 200}) as lab:
        send(*(lab.to("ab")[i] for i in (0, 2)), 100, 3, 0)
        until("three packets to enter", lambda: lab.link.truth()["ab"]["now"]["in_flight"] == 3)
        lab.link.command("stop")
        truth = lab.link.stop()
        assert truth["state"] == "ended"
        assert truth["ab"]["now"]["in_flight"] == 3
        assert conserved(truth["ab"])
        assert not lab.link.control_path.exists()
