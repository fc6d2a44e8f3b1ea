# SPDX-License-Identifier: MIT
"""A batch of messages in packets: by hand, beside the fluid, and what it says of short messages."""

from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.catalogue import paths_objects
from experiments.oracle import batch, optimum
from experiments.oracle.fluid import Message, simulate
from experiments.oracle.packets import PACKET
from experiments.oracle.path import OracleError, Path
from experiments.workloads import rates

NEAR, FAR = Path("near", 146e3, 0.010), Path("far", 146e3, 0.050)  # a packet is 10 ms
SMALL = st.lists(
    st.builds(Message, st.integers(1, 20_000), st.floats(0, 0.5, width=32)), min_size=1, max_size=12
)


def test_by_hand() -> None:
    """The second packet would be there by the far path at 60 ms, by the near one at 30."""
    two = [Message(2 * PACKET)]
    assert batch.times([NEAR, FAR], two, path="minrtt") == [pytest.approx(0.060)]
    assert batch.times([FAR, NEAR], two) == [pytest.approx(0.030)]


def test_the_shortest_goes_first() -> None:
    """It comes while a packet is sent, and waits for that one alone."""
    long, short = Message(10 * PACKET), Message(PACKET, 0.005)
    assert batch.times([NEAR], [long, short])[1] == pytest.approx(0.005 + 0.010 + 0.010)
    assert batch.times([NEAR], [long, short], "fcfs")[1] == pytest.approx(0.095 + 0.010 + 0.010)


def test_what_was_given_ahead_goes_first() -> None:
    """It comes while three packets are under way, and the next turn is when two are left."""
    long, short = Message(10 * PACKET), Message(PACKET, 0.005)
    took = batch.times([NEAR], [long, short], ahead=2 * PACKET)
    assert took == [pytest.approx(0.110 + 0.010), pytest.approx(0.040 + 0.010 - 0.005)]
    with pytest.raises(OracleError, match="-1 bytes ahead"):
        batch.times([NEAR], [long], ahead=-1)


@given(
    SMALL,
    st.sampled_from(batch.CONNECTIONS),
    st.sampled_from(batch.PATHS),
    st.sampled_from((0.0, 1.0, 5000.0)),
)
def test_no_message_is_there_before_it_can(
    messages: list[Message], connection: str, path: str, ahead: float
) -> None:
    paths = [NEAR, FAR]
    took = batch.times(paths, messages, connection, path, ahead)
    for message, seconds in zip(messages, took, strict=True):
        assert seconds >= optimum.completion(paths, message.size) - 1e-9


@given(SMALL, st.sampled_from(batch.CONNECTIONS))
def test_one_path_is_as_busy_as_a_fluid(messages: list[Message], connection: str) -> None:
    took = batch.times([NEAR], messages, connection)
    whole = simulate([NEAR], messages, connection, "minrtt").times
    ends = [
        max(t + it.arrival for t, it in zip(all_, messages, strict=True)) for all_ in (took, whole)
    ]
    assert ends[0] == pytest.approx(ends[1])


def test_short_objects_gain_nothing_by_the_rule() -> None:
    """132 objects in three bursts: a fluid's 10th percentile under SRPT-ECF is less than half of
    that under SRPT-MinRTT, because minrtt gives the far path a part of each; in packets what is
    shorter than one goes over the near path under both."""
    paths = [Path("near", 125e3, 0.0335), Path("far", 89e3, 0.0755)]
    ratios: dict[str, list[float]] = {"fluid": [], "packets": []}
    for seed in range(1, 6):
        load = paths_objects.load_of(seed, paths_objects.OBJECTS, 3000, 1.2, 1.0)
        messages = [Message(size, at) for size, at in zip(load.sizes, load.at_s, strict=True)]
        for name, times in (
            ("fluid", lambda it, path: simulate(paths, it, "srpt", path).times),
            ("packets", lambda it, path: batch.times(paths, it, "srpt", path)),
        ):
            ecf, minrtt = (rates.quantile(times(messages, it), 0.1) for it in ("ecf", "minrtt"))
            ratios[name].append(ecf / minrtt)
    assert median(ratios["fluid"]) < 0.5
    assert 0.9 < median(ratios["packets"]) < 1.05


def test_what_is_ahead_makes_an_order_late() -> None:
    """132 objects in three bursts, four packets ahead: the mean over that of the fluid."""
    paths = [Path("near", 125e3, 0.0335), Path("far", 89e3, 0.0755)]
    over: dict[str, list[float]] = {"srpt ecf": [], "fcfs minrtt": []}
    for seed in range(1, 6):
        load = paths_objects.load_of(seed, paths_objects.OBJECTS, 3000, 1.2, 1.0)
        messages = [Message(size, at) for size, at in zip(load.sizes, load.at_s, strict=True)]
        for name, ratios in over.items():
            policies = name.split()
            took = batch.times(paths, messages, *policies, ahead=4 * PACKET)
            ratios.append(fmean(took) / simulate(paths, messages, *policies).mean)
    assert 1.1 < median(over["srpt ecf"]) < 1.25
    assert 0.99 < median(over["fcfs minrtt"]) < 1.02


@pytest.mark.parametrize(("connection", "path"), [("rr", "ecf"), ("srpt", "rr")])
def test_a_policy_that_it_does_not_know(connection: str, path: str) -> None:
    with pytest.raises(OracleError, match="policy rr: none of"):
        batch.times([NEAR], [Message(1)], connection, path)
