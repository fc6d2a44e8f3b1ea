# SPDX-License-Identifier: MIT
"""Wrong parameters are refused by name, before anything is made. Needs no root."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from inspect import signature
from pathlib import Path

import pytest

from topologies import parameters
from topologies.mile import MILE, Mile
from topologies.parameter import ParameterError, unit_of
from topologies.presets import PRESETS, one_mile, table, two_miles

PUBLISHED = {  # down, up, RTT, queue down, queue up, loss: as the sources have them
    "wired": (10, 10, 50, 100, 100, 0),
    "lossy": (10, 10, 50, 100, 100, 0.01),
    "dsl": (10, 1, 50, 100, 500, 0),
    "wifi": (7.04, 2.02, 50, 50, 50, 0),
    "lte": (9.185, 2.286, 70, 500, 500, 0),
    "thin": (100, 100, 20, 100, 100, 0.02),
    "satellite": (20, 3, 600, 1000, 1000, 0.005),
}


@pytest.mark.parametrize(("name", "figures"), PUBLISHED.items())
def test_presets_are_the_published_profiles(name: str, figures: tuple[float, ...]) -> None:
    (mile,) = PRESETS[name]
    down, up, rtt, queue_down, queue_up, loss = figures
    assert (mile.down_mbps, mile.up_mbps, mile.rtt_ms) == (down, up, rtt)
    assert (mile.queue_down_ms, mile.queue_up_ms) == (queue_down, queue_up)
    assert (mile.loss_down, mile.loss_up) == (loss, loss)
    assert name in table()


def test_mobile_dsl_is_two_paths() -> None:
    first, second = PRESETS["mobile-dsl"]
    assert (first.down_mbps, first.up_mbps, first.rtt_ms) == (1.05, 1.05, 67)
    assert (second.down_mbps, second.up_mbps, second.rtt_ms) == (0.75, 0.75, 151)
    assert set(PRESETS) == {*PUBLISHED, "mobile-dsl", "wifi-lte", "bt-wifi"}


def test_wifi_and_lte_are_one_client_s() -> None:
    (wifi,), (lte,) = PRESETS["wifi"], PRESETS["lte"]
    assert PRESETS["wifi-lte"] == (wifi, lte.with_(seed=wifi.seed + 1))


WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("down_mbps", lambda: Mile(down_mbps=-1), "-1 is not from"),
    ("up_mbps", lambda: Mile(up_mbps=0), "0 is not from"),
    ("up_mbps", lambda: Mile(up_mbps=10_000_000), "not from 0.01 to 10000 Mbit/s"),
    ("down_mbps", lambda: Mile(down_mbps="10Mbit"), "without its unit"),
    ("down_mbps", lambda: Mile(down_mbps=math.nan), "not a number"),
    ("down_mbps", lambda: Mile(down_mbps=True), "not a number"),
    ("rtt_ms", lambda: Mile(rtt_ms=-50), "not from 0 to 20000 ms"),
    ("rtt_ms", lambda: Mile(rtt_ms="50ms"), "without its unit"),
    ("rtt_ms", lambda: Mile(rtt_ms=None), "not a number"),
    ("rtt_ms", lambda: Mile(rtt_ms=math.inf), "not a number"),
    ("queue_up_ms", lambda: Mile(queue_up_ms=0), "not from 1 to"),
    ("loss_down", lambda: Mile(loss_down=2), "2 % is 0.02"),
    ("loss_up", lambda: Mile(loss_up=-0.1), "not from 0 to 1"),
    ("loss_up", lambda: Mile(loss_up="1%"), "not a number"),
    ("loss_model", lambda: Mile(loss_model="sometimes"), "none of bernoulli"),
    ("loss_burst_packets", lambda: Mile(loss_burst_packets=0.5), "not from 1"),
    ("loss_list_down", lambda: Mile(loss_list_down="1,2"), "loss_model=list"),
    ("loss_down", lambda: Mile(loss_model="list", loss_down=0.1), "the list says it all"),
    ("loss_up", lambda: Mile(loss_model="bursty", loss_up=1), "no room"),
    ("loss_up", lambda: Mile(loss_model="periodic", loss_up=0.4), "next are 0.3333 and 0.5"),
    ("loss_down", lambda: Mile(loss_model="periodic", loss_down=0.7), "next are 0.5 and 1"),
    ("jitter_ms", lambda: Mile(jitter_ms=-1), "not from 0"),
    ("jitter_dist", lambda: Mile(jitter_dist="odd"), "none of uniform"),
    ("jitter_reorder", lambda: Mile(jitter_reorder="maybe"), "neither yes nor no"),
    ("reorder", lambda: Mile(reorder=5), "not from 0 to 1"),
    ("duplicate", lambda: Mile(duplicate=-0.5), "not from 0 to 1"),
    ("aqm", lambda: Mile(aqm="red"), "none of tail, codel"),
    ("aqm", lambda: Mile(radio="both", aqm="codel"), "host=codel"),
    ("trace_down", lambda: Mile(trace_down="/nowhere/trace"), "no such file"),
    ("delay_trace", lambda: Mile(delay_trace="/nowhere/delays"), "no such file"),
    ("radio", lambda: Mile(radio="sideways"), "none of none, up, down, both"),
    ("radio", lambda: Mile(radio="up", up_mbps=None), "needs a rate or a trace up"),
    ("gate", lambda: Mile(gate="bytes:2000"), "needs a radio"),
    ("gate", lambda: Mile(radio="up", gate="2000"), "none of none, bytes:N, delay:MS"),
    ("gate", lambda: Mile(radio="up", gate="bytes:300001"), "300.001 KB up are more than"),
    ("gate", lambda: Mile(radio="both", up_mbps=8.0, gate="delay:250"), "312.5 KB down are more"),
    ("host", lambda: Mile(host="prio"), "needs a radio"),
    ("host", lambda: Mile(radio="up", host="red"), "none of fifo, prio, codel"),
    ("interactive", lambda: Mile(radio="up", interactive="46"), "neither none nor like"),
    ("report_levels", lambda: Mile(radio="up", report_levels=50), "50 is none of 32, 64, 256"),
    ("grant_delay_ms", lambda: Mile(radio="up", grant_delay_ms=0), "0 is not from 0.1 to 1000"),
    ("telemetry_ms", lambda: Mile(radio="up", telemetry_ms=501), "not from 0 to 500"),
    ("mtu", lambda: Mile(mtu=100), "not from 576 to 9000 bytes"),
    ("mtu", lambda: Mile(mtu=1500.5), "not a whole number"),
    ("seed", lambda: Mile(seed=-1), "not from 0"),
    ("preset", lambda: one_mile("lete"), "none of wired, lossy"),
    ("preset", lambda: one_mile("mobile-dsl"), "use twolastmiles"),
    ("rtt", lambda: one_mile("lte", rtt=50), "no such parameter"),
    ("loss", lambda: one_mile("lte", loss=50), "2 % is 0.02"),
    ("preset", lambda: two_miles("dial-up"), "none of"),
    ("second_rtt_ms", lambda: one_mile("lte", second_rtt_ms=70.0), "has one last mile"),
    ("second_rtt_ms", lambda: two_miles("wifi-lte", second_rtt_ms=-1.0), "not from 0 to 20000 ms"),
    ("second_loss", lambda: two_miles("wired", second_loss=2), "2 % is 0.02"),
    ("second_mtu", lambda: two_miles("wired", second_mtu=1400), "no such parameter"),
]


@pytest.mark.parametrize(
    ("name", "make", "says"),
    WRONG,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(WRONG)],
)
def test_wrong_parameters_are_named(name: str, make: Callable[[], object], says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(f"{name}: ")
    assert says in str(caught.value)


def test_shorthands_stand_for_both_directions() -> None:
    mile = one_mile("wired", mbps=5.0, queue_ms=30.0, loss=0.01, loss_up=0.02)
    assert (mile.down_mbps, mile.up_mbps) == (5.0, 5.0)
    assert (mile.queue_down_ms, mile.queue_up_ms) == (30.0, 30.0)
    assert (mile.loss_down, mile.loss_up) == (0.01, 0.02)


def test_the_second_mile_may_have_values_of_its_own() -> None:
    first, second = two_miles("wifi-lte", second_rtt_ms=470.0, second_mbps=5.0, queue_ms=80.0)
    assert (first.rtt_ms, second.rtt_ms) == (50, 470)
    assert (first.down_mbps, second.down_mbps, second.up_mbps) == (7.04, 5, 5)
    assert first.queue_down_ms == second.queue_down_ms == 80
    first, second = two_miles("wifi-lte", down_mbps=3.0, second_mbps=5.0)
    assert (first.down_mbps, second.down_mbps) == (3, 5)


def test_two_miles_of_one_profile_differ_in_their_seeds() -> None:
    first, second = two_miles("lossy", seed=7)
    assert (first.seed, second.seed) == (7, 8)
    assert first.with_(seed=8) == second


def test_what_is_of_the_second_mile_leaves_the_first_alone() -> None:
    first, second = two_miles("wired", mbps=20.0, second_mbps=2.0, second_rtt_ms=9.0, queue_ms=30.0)
    assert (first.down_mbps, first.up_mbps, first.rtt_ms) == (20.0, 20.0, 50.0)
    assert (second.down_mbps, second.up_mbps, second.rtt_ms) == (2.0, 2.0, 9.0)
    assert first.queue_down_ms == second.queue_down_ms == 30.0


def test_a_mile_is_frozen() -> None:
    mile = Mile()
    with pytest.raises(FrozenInstanceError):
        mile.rtt_ms = 3.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("link", {"link": "magic"}, "none of auto, netem, linkem, veth"),
        ("link", {"link": "veth", "wan_rtt_ms": 0}, "veth will not do: rtt_ms"),
        ("wan_rtt_ms", {"link": "veth", "rtt_ms": 0}, "a veth pair has none"),
        ("bottleneck", {"link": "veth", "rtt_ms": 0, "wan_rtt_ms": 0}, "sender's own queue"),
        ("bottleneck", {"bottleneck": "nowhere"}, "none of network, sender"),
        ("bottleneck", {"bottleneck": "sender", "down_mbps": None}, "needs a rate"),
        ("radio", {"bottleneck": "sender", "radio": "up"}, "needs bottleneck network"),
        ("wan_rtt_ms", {"wan_rtt_ms": -4}, "not from 0"),
        ("initcwnd", {"initcwnd": 0}, "not from 1"),
        ("servers", {"servers": 4}, "not from 1 to 3"),
        ("servers", {"servers": 0}, "not from 1 to 3"),
        ("sysctls", {"sysctls": {"kernel.panic": "1"}}, "not of a network namespace"),
        ("preset", {"mile": Mile(), "preset": "lte"}, "either a preset or mile"),
        ("rtt_ms", {"mile": Mile(), "rtt_ms": 3}, "put it into mile"),
        ("down_mpbs", {"down_mpbs": 3}, "no such parameter"),
        ("jitter_reorder", {"jitter_reorder": "maybe"}, "neither yes nor no"),
    ],
)
def test_wrong_options_of_a_topology(name: str, options: dict[str, object], says: str) -> None:
    pytest.importorskip("mininet", reason="no Mininet for this Python: make setup")
    from topologies.topos import LastMile

    with pytest.raises(ParameterError) as caught:
        LastMile(**options)
    assert str(caught.value).startswith(f"{name}: ")
    assert says in str(caught.value)


OF_TOPOLOGY = (parameters.LINK, parameters.BOTTLENECK, parameters.CLIENT, parameters.SERVERS)


def test_what_is_left_out_is_what_the_table_says() -> None:
    pytest.importorskip("mininet", reason="no Mininet for this Python: make setup")
    from topologies.choice import REALISATION
    from topologies.proxies import proxies
    from topologies.topos import LastMile, TwoLastMiles

    assert parameters.LINK.choices == ("auto", *REALISATION)
    for take, known in (
        (LastMile.build, OF_TOPOLOGY),
        (TwoLastMiles.build, OF_TOPOLOGY),
        (proxies, (parameters.PIPES, parameters.TRANSPORT, parameters.EXTEND)),
    ):
        there = signature(take).parameters
        assert {it.name: there[it.name].default for it in known} == {
            it.name: it.default for it in known
        }
    assert LastMile().preset == parameters.PRESET.default


def test_a_parameter_says_what_it_may_be() -> None:
    rate, loss = MILE["down_mbps"], MILE["loss_down"]
    assert (rate.unit, rate.noun) == ("Mbit/s", "downlink rate")
    assert rate.values() == "0.01 to 10000 Mbit/s"
    assert (loss.unit, loss.values()) == ("share", "0 to 1")
    assert MILE["rtt_ms"].default == Mile().rtt_ms
    assert {it.name for it in MILE.values()} == set(Mile().as_dict())
    assert [unit_of(it) for it in ("ahead_s", "s", "mbps", "plain")] == ["s", "", "Mbit/s", ""]


@pytest.mark.parametrize(
    ("share", "packets"), [(1, 1), (0.5, 2), (0.3333, 3), (0.0101, 99), (0.001, 1000)]
)
def test_of_a_periodic_loss_one_packet_in_n_is_lost(share: float, packets: int) -> None:
    pytest.importorskip("mininet", reason="no Mininet for this Python: make setup")
    from topologies.linkem import words

    mile = Mile(loss_model="periodic", loss_up=share)
    assert words(mile, "up", rate=True)["loss"] == f"every:{packets}"


def test_a_trace_is_ended_by_name(tmp_path: Path) -> None:
    """Where no rate takes its place, nothing else would end it or be read back."""
    pytest.importorskip("mininet", reason="no Mininet for this Python: make setup")
    from topologies.linkem import words

    trace = tmp_path / "trace"
    trace.write_text("1\n")
    mile = Mile(trace_down=str(trace))
    for there, rate, told in (
        (mile, "none", str(trace)),
        (mile.with_(trace_down=None), "10", "none"),
        (mile.with_(trace_down=None, down_mbps=None), "none", "none"),
    ):
        found = words(there, "down", rate=True)
        assert (found["rate_mbps"], found["trace"]) == (rate, told)


def test_a_radio_is_told_to_linkem_in_its_words() -> None:
    pytest.importorskip("mininet", reason="no Mininet for this Python: make setup")
    from topologies.linkem import same, words

    mile = Mile(radio="up", gate="delay:20", host="prio", interactive="port:53,dscp:8-9")
    up, down = words(mile, "up", rate=True), words(mile, "down", rate=True)
    assert (up["grants"], up["report_levels"]) == ("5ms,delay=8ms", "64,cap=150KB")
    assert (up["gate"], up["host"], up["aqm"]) == ("delay:20", "prio", "tail")
    assert (down["grants"], down["gate"], down["host"]) == ("none", "none", "fifo")
    assert "firmware_kb" not in down
    assert words(mile.with_(aqm="codel"), "down", rate=True)["aqm"] == "codel"
    assert same(up["interactive"], "dscp:8-9,port:53")
    assert not same(up["interactive"], "dscp:8,port:53")
    assert not same(up["grants"], "5ms,delay=9ms")
