# SPDX-License-Identifier: MIT
"""What a link can do besides rate and delay; and that a link that is not as declared is refused."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path

import pytest

from base.shell import CommandError, until
from tests.net.measure import (
    Load,
    Way,
    Wrong,
    idle_rtt_ms,
    near,
    overload,
    shown_to_hold,
    udp,
    ways,
)
from topologies import qdisc
from topologies.lab import Lab
from topologies.linkem import LinkemLink
from topologies.links import EmulatedLink, LinkMismatch
from topologies.nodes import SettingRefused
from topologies.parameter import ParameterError
from topologies.programs import program
from topologies.proxies import capture
from topologies.topos import LastMile

SMALL = Load(frame=100, packets=1000, packets_per_s=2000.0)
FULL = 1514
# A sender that was late sends what is missing at once: that shall not be lost in the queue.
ROOM = {"queue_ms": 20_000.0}
LabOf = Callable[..., AbstractContextManager[Lab]]


def down(lab: Lab) -> Way:
    return ways(lab.links["mile"])[0]


def linkem(lab: Lab) -> LinkemLink:
    link = lab.links["mile"]
    assert isinstance(link, LinkemLink)
    return link


# --- traces -----------------------------------------------------------------------------------

TRACE_MS = (1, 1, 1, 4, 7, 7, 12, 30, 31, 32, 33, 33, 33, 60, 90, 91, 100)


def opportunities(elapsed_ms: float) -> int:
    """How many the trace has given after so long: it repeats, its last line ends a round."""
    rounds, rest = divmod(elapsed_ms, TRACE_MS[-1])
    return int(rounds) * len(TRACE_MS) + sum(at <= rest for at in TRACE_MS)


def test_a_trace_is_followed_to_the_packet(labs: Path, tmp_path: Path) -> None:
    """While packets wait, each opportunity carries one, and there are as many as the trace has."""
    trace = tmp_path / "trace"
    trace.write_text("".join(f"{at}\n" for at in TRACE_MS))
    with Lab(LastMile("wired", trace_down=str(trace), queue_down_ms=20_000.0)) as lab:
        assert lab.topo.choice.realisation == "linkem"
        load = Load(FULL, packets=300, packets_per_s=1e5)
        with ThreadPoolExecutor(1) as beside:
            sending = beside.submit(udp, [(down(lab), load)], tmp_path)
            early = until("a busy trace", lambda: busy(lab, 50), 20.0)
            late = until("a trace still busy", lambda: busy(lab, 200), 20.0)
            (got,) = sending.result()
        # While packets waited, every opportunity was used.
        passed = late["trace_opportunities"] - early["trace_opportunities"]
        assert late["trace_used"] - early["trace_used"] == passed >= 100
        truth = linkem(lab).truth()
        counters = truth["ba"]["counters"]
        assert counters["trace_opportunities"] == opportunities(truth["elapsed_ms"])
        assert counters["trace_used"] == counters["out_packets"] == len(got.numbers) == 300
        assert got.in_order()


def test_a_trace_may_end_in_no_limit(labs: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("1\n")
    with Lab(LastMile("wired", trace_down=str(trace))) as lab:
        lab.change(trace_down=None, down_mbps=None)
        assert linkem(lab).ask("get")["ba"]["trace"] is None
        linkem(lab).ask(f"set ba trace={trace}")
        with pytest.raises(LinkMismatch, match=r"trace down is .*, not none"):
            lab.check()


def busy(lab: Lab, used: int) -> dict[str, int] | None:
    """The counters, once so many opportunities were used and as long as packets wait."""
    there = linkem(lab).truth()["ba"]
    if there["counters"]["trace_used"] < used:
        return None
    assert there["now"]["queue_packets"] > 0, "the queue ran dry"
    return there["counters"]


# --- loss -------------------------------------------------------------------------------------


def test_a_list_says_which_packets_are_lost(labs: Path, tmp_path: Path) -> None:
    options = {"loss_model": "list", "loss_list_down": "3,7,500-520", "loss_list_up": "0"}
    with Lab(LastMile("wired", **options)) as lab:
        both = ways(lab.links["mile"])
        got_down, got_up = udp([(way, SMALL) for way in both], tmp_path)
        assert got_down.lost() == {3, 7, *range(500, 521)}
        assert got_up.lost() == {0}
        assert got_down.in_order() and got_up.in_order()


def test_periodic_loss(labs: Path, tmp_path: Path) -> None:
    with Lab(LastMile("wired", loss_model="periodic", loss_down=0.1)) as lab:
        got_down, got_up = udp([(way, SMALL) for way in ways(lab.links["mile"])], tmp_path)
        assert got_down.lost() == set(range(9, 1000, 10))
        assert not got_up.lost()


def test_bursts_are_as_long_and_as_frequent_as_declared(lab_of: LabOf, tmp_path: Path) -> None:
    """5 % in bursts of 5: some 60 bursts in 6000 packets, as it comes with linkem's seed 1."""
    options = {"loss_model": "bursty", "loss_down": 0.05, "loss_burst_packets": 5.0, **ROOM}
    with lab_of("wired", **options) as lab:
        load = Load(100, packets=6000, packets_per_s=2000.0)
        (got,) = udp([(down(lab), load)], tmp_path)
        lost = sorted(got.lost())
        runs = [list(run) for _, run in groupby(enumerate(lost), lambda pair: pair[1] - pair[0])]
        assert 0.025 < len(lost) / 6000 < 0.085
        assert 3.0 < len(lost) / len(runs) < 8.0


def test_loss_acts_on_packets_not_on_super_packets(lab_of: LabOf, tmp_path: Path) -> None:
    """A TCP transfer is as many packets as it has segments, none larger than the MTU."""
    size = 2_000_000
    with lab_of("wired", mbps=50.0, loss_down=0.01) as lab:
        (tmp_path / "payload").write_bytes(bytes(size))
        serve = ["python3", "-m", "http.server", "-d", tmp_path, "8000"]
        with (
            program(lab.state, "rp", "http", serve),
            capture(lab, lab.client, "seen", "client-eth0", "tcp and greater 60"),
        ):
            got = lab.client.inside(
                *("curl", "-sS", "--retry", "20", "--retry-connrefused", "--retry-delay", "1"),
                *("-o", "/dev/null", "-w", "%{size_download}", "http://10.0.1.2:8000/payload"),
            )
        assert int(got) == size
        seen = lab.client.inside("tcpdump", "-nn", "-q", "-e", "-r", str(tmp_path / "seen.pcap"))
        lengths = [int(line.split("length ")[1].split(":")[0]) for line in seen.splitlines()]
        assert max(lengths) == FULL
        if lab.topo.choice.realisation == "linkem":
            counters = linkem(lab).truth()["ba"]["counters"]
            assert counters["in_packets"] >= size // 1448
            assert 0.002 < counters["lost_packets"] / counters["in_packets"] < 0.03


# --- order and time ---------------------------------------------------------------------------


def test_jitter_keeps_the_order_unless_asked(lab_of: LabOf, tmp_path: Path) -> None:
    with lab_of("wired", jitter_ms=10.0, **ROOM) as lab:
        (got,) = udp([(down(lab), SMALL)], tmp_path)
        assert got.in_order() and not got.lost()
        assert max(got.delays_ms()) - min(got.delays_ms()) > 8.0
        lab.change(jitter_reorder=True)
        (got,) = udp([(down(lab), SMALL)], tmp_path)
        assert not got.in_order() and not got.lost()


def test_reordering_and_duplicates_on_demand(labs: Path, tmp_path: Path) -> None:
    with Lab(LastMile("wired", link="linkem", reorder=0.05, reorder_ms=5.0)) as lab:
        (got,) = udp([(down(lab), SMALL)], tmp_path)
        assert not got.in_order() and not got.lost()
        lab.change(reorder=0.0, duplicate=0.1)
        (got,) = udp([(down(lab), SMALL)], tmp_path)
        assert 50 < len(got.numbers) - len(set(got.numbers)) < 160


@pytest.mark.parametrize("mtu", [1500, 1280])
def test_the_mtu_is_a_limit(lab_of: LabOf, mtu: int) -> None:
    with lab_of("wired", mtu=mtu) as lab:
        ping = ["ping", "-n", "-c", "1", "-W", "3", "-M", "do", "-s"]
        lab.client.inside(*ping, str(mtu - 28), "10.0.1.2")
        lab.rp.inside(*ping, str(mtu - 28), "10.0.1.1")
        with pytest.raises(CommandError, match="too long"):
            lab.client.inside(*ping, str(mtu - 27), "10.0.1.2")


def test_parameters_change_while_it_runs(lab_of: LabOf) -> None:
    with lab_of("wired") as lab:
        link = lab.links["mile"]

        def rtt(wanted: float) -> None:
            def check() -> None:
                near("RTT", idle_rtt_ms(link), wanted, part=0.02, plus=1.1)

            shown_to_hold(lab, "RTT", check)

        rtt(50.0)
        lab.change(rtt_ms=120.0, down_mbps=3.0)
        rtt(120.0)
        assert link.describe()["mile"]["down_mbps"] == 3.0
        with pytest.raises(ParameterError, match=r"^rtt_ms: "):
            lab.change(rtt_ms=-1)
        with pytest.raises(ParameterError, match=r"^mtu or seed: "):
            lab.change(seed=5)
        rtt(120.0)


# --- what is refused --------------------------------------------------------------------------


def test_a_pair_of_devices_has_only_a_rate(labs: Path, tmp_path: Path) -> None:
    """A link that emulates nothing, for rates that no emulator carries."""
    alone = {"bottleneck": "sender", "rtt_ms": 0.0, "wan_rtt_ms": 0.0}
    with Lab(LastMile("wired", link="veth", mbps=20.0, **alone)) as lab:
        link = lab.links["mile"]
        assert link.describe()["realisation"] == "veth"

        def holds() -> None:
            near("round trip, ms", idle_rtt_ms(link), 0.0, plus=1.0)
            for way in ways(link):
                (got,) = udp([(way, overload(way, 0.7, offered=1.3, full=True))], tmp_path)
                near(f"rate {way.name}, Mbit/s", got.mbps(), link.mile.down_mbps or 0, part=0.03)

        shown_to_hold(lab, "a pair of devices at 20 Mbit/s", holds)
        link.change(mbps=40.0)
        shown_to_hold(lab, "a pair of devices at 40 Mbit/s", holds)
        with pytest.raises(ParameterError, match=r"^link: veth will not do: rtt_ms"):
            link.change(rtt_ms=3.0)
        with pytest.raises(ParameterError, match=r"^link: veth will not do: loss_down"):
            link.change(loss=0.01)


def test_a_link_that_was_tampered_with_is_refused(labs: Path) -> None:
    with Lab(LastMile("wired", link="linkem", bottleneck="sender")) as lab:
        lab.check()
        linkem(lab).ask("set ab delay_ms=7")
        with pytest.raises(LinkMismatch, match="delay_ms up is 7, not 25"):
            lab.check()
        linkem(lab).ask("set ab delay_ms=25")
        qdisc.replace(
            lab.rp.namespace,
            "rp-eth0",
            ["tbf", "rate", "9mbit", "burst", "3028", "limit", "125000"],
        )
        with pytest.raises(qdisc.QdiscMismatch, match=r"rp-eth0: options.rate is 1125000"):
            lab.check()
        qdisc.replace(lab.rp.namespace, "rp-eth0", ["pfifo_fast"])
        with pytest.raises(qdisc.QdiscMismatch, match="kind is 'pfifo_fast', not 'tbf'"):
            lab.check()


def test_settings_are_read_back(labs: Path) -> None:
    sysctls = {"net.ipv4.tcp_sack": "0"}
    with Lab(LastMile("wired", initcwnd=23, sysctls=sysctls)) as lab:
        for node in (lab.client, lab.rp, lab.server):
            assert node.sysctls()["net.ipv4.tcp_sack"] == "0"
            routes = [line for line in node.inside("ip", "route").splitlines() if line]
            assert routes and all("initcwnd 23" in line for line in routes)
    with pytest.raises((SettingRefused, CommandError), match=r"nonsense|tcp_congestion_control"):
        with Lab(LastMile("wired", sysctls={"net.ipv4.tcp_congestion_control": "nonsense"})):
            pass


def test_an_unknown_realisation_of_this_kernel_is_refused(labs: Path) -> None:
    missing = qdisc.why_no_netem()
    if missing is None:
        assert LastMile("wired").choice.realisation == "netem"
        with pytest.raises(ParameterError, match=r"^link: netem will not do: aqm"):
            LastMile("wired", link="netem", aqm="codel")
        return
    assert LastMile("wired").choice.realisation == "linkem"
    with pytest.raises(ParameterError, match=r"^link: netem will not do: no netem"):
        LastMile("wired", link="netem")


def test_two_labs_at_once(labs: Path) -> None:
    """The same names and addresses twice on one machine, each with its own last mile."""
    with Lab(LastMile("wired")) as one, Lab(LastMile("lte")) as other:
        assert one.name != other.name
        for lab, wanted in ((one, 50.0), (other, 70.0)):
            link = lab.links["mile"]

            def check(link: EmulatedLink = link, wanted: float = wanted) -> None:
                near("RTT", idle_rtt_ms(link), wanted, part=0.02, plus=1.3)

            shown_to_hold(lab, "RTT", check)


def test_wrong_is_an_assertion() -> None:
    """A measured deviation fails a test like any other."""
    with pytest.raises(AssertionError):
        near("something", 1.04, 1.0, part=0.03)
    near("something", 1.02, 1.0, part=0.03)
    assert issubclass(Wrong, AssertionError)
