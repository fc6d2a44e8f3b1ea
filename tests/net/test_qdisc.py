# SPDX-License-Identifier: MIT
"""What is asked of tc, and whether its answers are understood. Needs no root and no netem."""

import pytest

from topologies import qdisc
from topologies.mile import Mile
from topologies.parameter import ParameterError


def gate(mile: Mile, *, rate: bool = True) -> str:
    return " ".join(qdisc.netem_gate(mile, mile.direction("down"), rate=rate)[0])


def line(mile: Mile) -> str:
    return " ".join(qdisc.netem_line(mile, mile.direction("down"))[0])


def test_loss_and_rate_come_first_and_delay_second() -> None:
    mile = Mile(loss_down=0.01)
    assert gate(mile) == "netem limit 84 rate 10000000bit loss random 1%"
    assert line(mile) == "netem limit 1000000 delay 25ms"


def test_a_queue_is_as_many_full_packets_as_take_its_time() -> None:
    """Beside the one that is just being sent."""
    lte = Mile(down_mbps=9.185, queue_down_ms=500.0)
    assert gate(lte) == "netem limit 380 rate 9185000bit"
    assert round((380 - 1) * 1514 * 8 / 9185) == 500


def test_without_a_rate_there_is_no_queue() -> None:
    assert gate(Mile(down_mbps=None)) == "netem limit 1000000"
    assert gate(Mile(), rate=False) == "netem limit 1000000"


def test_bursts() -> None:
    mile = Mile(loss_model="bursty", loss_down=0.05, loss_burst_packets=5.0)
    into, out = qdisc.bursts(0.05, 5.0)
    assert out == 0.2
    assert into / (into + out) == pytest.approx(0.05)
    assert "loss gemodel 1.05263158% 20% 100% 0%" in gate(mile)
    with pytest.raises(ParameterError, match=r"^loss_burst_packets: "):
        qdisc.bursts(0.9, 1.0)


def test_jitter_keeps_the_order_by_a_rate() -> None:
    assert line(Mile(jitter_ms=5.0)).endswith("delay 25ms 5ms rate 100gbit")
    assert line(Mile(jitter_ms=5.0, jitter_reorder=True)).endswith("delay 25ms 5ms")


@pytest.mark.parametrize(
    ("name", "mile"),
    [
        ("loss_model", Mile(loss_model="periodic", loss_down=0.1)),
        ("loss_model", Mile(loss_model="list", loss_list_down="3")),
        ("aqm", Mile(aqm="codel")),
        ("radio", Mile(radio="up")),
        ("jitter_dist", Mile(jitter_ms=1.0, jitter_dist="exponential")),
        ("trace", Mile(trace_down=__file__)),
        ("delay_trace", Mile(delay_trace=__file__)),
        ("reorder", Mile(reorder=0.1, reorder_ms=5.0)),
    ],
)
def test_what_only_linkem_can_do_is_named(name: str, mile: Mile) -> None:
    assert (qdisc.why_not_by_netem(mile) or "").startswith(f"{name}: ")


def test_netem_can_do_the_presets() -> None:
    assert qdisc.why_not_by_netem(Mile(loss_down=0.02)) is None


# As iproute2 6.1 wrote it for the words of tbf() below.
TBF = {
    "kind": "tbf",
    "handle": "8005:",
    "root": True,
    "refcnt": 2,
    "options": {"rate": 1250000, "burst": 3027, "lat": 97578},
    "backlog": 0,
}


def test_a_token_bucket_is_read_back() -> None:
    words, wanted = qdisc.tbf(Mile().direction("down"), 1500)
    assert " ".join(words) == "tbf rate 10000000bit burst 3028 limit 125000"
    qdisc.check([TBF], "eth0", wanted)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([], "0 root qdiscs"),
        ([TBF, TBF], "2 root qdiscs"),
        ([{"kind": "noqueue", "root": True}], "kind is 'noqueue', not 'tbf'"),
        ([{**TBF, "options": {**TBF["options"], "rate": 1_100_000}}], "options.rate is 1100000"),
        ([{**TBF, "options": {**TBF["options"], "lat": 9}}], "options.lat is 9"),
        ([{"kind": "tbf", "root": True}], "options.rate is None"),
    ],
)
def test_a_mismatch_is_refused(found: list, says: str) -> None:
    _, wanted = qdisc.tbf(Mile().direction("down"), 1500)
    with pytest.raises(qdisc.QdiscMismatch, match=says):
        qdisc.check(found, "eth0", wanted)


# As iproute2 6.1 on Linux 6.1 wrote it, each for the words that the mile asks for.
PLAIN_RATE = {"rate": 1250000, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0}
NETEM = {
    "gate": (
        Mile(),
        {"limit": 84, "rate": PLAIN_RATE, "ecn": False, "gap": 0},
    ),
    "lossy gate": (
        Mile(loss_down=0.01),
        {"limit": 84, "loss-random": {"loss": 0.01, "correlation": 0}, "rate": PLAIN_RATE},
    ),
    "bursty gate": (
        Mile(loss_model="bursty", loss_down=0.05),
        {
            "limit": 84,
            "loss-gemodel": {"p": 0.00657895, "r": 0.125, "1-h": 1, "1-k": 0},
            "rate": PLAIN_RATE,
        },
    ),
}
DELAY = {"limit": 1000000, "delay": {"delay": 0.025, "jitter": 0, "correlation": 0}}


@pytest.mark.parametrize("name", NETEM)
def test_netem_is_read_back(name: str) -> None:
    mile, options = NETEM[name]
    _, wanted = qdisc.netem_gate(mile, mile.direction("down"), rate=True)
    qdisc.check([{"kind": "netem", "root": True, "options": options}], "eth0", wanted)
    for other in set(NETEM) - {name}:
        with pytest.raises(qdisc.QdiscMismatch):
            found = {"kind": "netem", "root": True, "options": NETEM[other][1]}
            qdisc.check([found], "eth0", wanted)


def test_a_rate_left_over_from_an_earlier_netem_is_refused() -> None:
    """Seen: `tc qdisc replace` of one netem by another without a rate keeps the rate."""
    _, wanted = qdisc.netem_line(Mile(), Mile().direction("down"))
    qdisc.check([{"kind": "netem", "root": True, "options": DELAY}], "eth0", wanted)
    left_over = {"kind": "netem", "root": True, "options": {**DELAY, "rate": PLAIN_RATE}}
    with pytest.raises(qdisc.QdiscMismatch, match=r"options\.rate"):
        qdisc.check([left_over], "eth0", wanted)
