# SPDX-License-Identifier: MIT
"""What applications see of pipes that die: the arithmetic, and what is done to pipes in a lab."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from base.shell import until
from experiments.catalogue import recovery
from experiments.labs import Labs
from experiments.workloads import outage
from experiments.workloads.actors import BIN_S
from experiments.workloads.exchange import CutShort
from experiments.workloads.redialling import Ends, _Clock
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.lab import Lab

__all__ = ["labs"]


def test_a_silence_is_the_longest_one_within() -> None:
    came = [1.0, 1.1, 1.9, 2.0, 2.1, 9.0]
    assert recovery.silence(came, 0.5, 2.2) == (pytest.approx(0.8), 1.9)
    assert recovery.silence(came, 1.5, 2.2) == (pytest.approx(0.4), 1.9)
    assert recovery.silence(came, 2.0, 5.0) == (pytest.approx(2.9), 5.0), "cut off at the end"
    assert recovery.silence([], 2.0, 5.0) == (3.0, 5.0)


def test_a_query_waits_until_it_is_answered_or_the_time_is_up() -> None:
    echo = {"due": [1.0, 2.0, 3.0], "wait": [0.05, 4.0, 0.1]}
    assert recovery.longest_wait(echo, 0.0, 1.9) == 0.05
    assert recovery.longest_wait(echo, 1.04, 1.9) == 0.05, "under way when it began"
    assert recovery.longest_wait(echo, 2.5, 5.0) == 3.0
    assert recovery.longest_wait(echo, 6.5, 7.0) is None


def told(came: list[float], **more: Any) -> dict[str, Any]:
    """1 MB in each tenth of a second in which something came."""
    bins = [0] * (int(max(came) / BIN_S) + 1)
    for at in came:
        bins[int(round(at, 6) / BIN_S)] = 1_000_000
    return {"began": 0.0, "came": came, "bins": bins, "resets": [], "clean": [], **more}


def test_what_is_seen_of_a_silence() -> None:
    """A second without anything at 4 s, then half of the rate."""
    came = [n / 10 + 0.01 for n in range(100) if n < 40 or (n >= 50 and n % 2)]
    echo = {"due": [3.0, 4.0, 4.5], "wait": [0.05, 1.2, 0.7], "resets": [5.0, 4.2, 3.0]}
    found = recovery.seen(told(came), {**echo, "clean": [4.3]}, 4.0, 9.9, lasting=False)
    assert found["bulk_gap_s"] == pytest.approx(1.11)
    assert (found["echo_gap_s"], found["echo_usual_s"]) == (1.2, 0.05)
    assert (found["before_mbps"], found["after_mbps"]) == (
        pytest.approx(80),
        pytest.approx(40, 0.1),
    )
    assert found["rate_kept"] == pytest.approx(0.5, 0.1)
    assert (found["resets"], found["reset_after_s"]) == (2, pytest.approx(0.2))
    assert found["clean_ends"] == 1


def test_the_rate_of_a_lasting_nuisance_is_measured_from_its_begin() -> None:
    came = [n / 10 + 0.01 for n in range(100) if n < 40 or n >= 70]
    found = recovery.seen(
        told(came), {"due": [], "wait": [], "resets": [], "clean": []}, 4.0, 10.0, lasting=True
    )
    assert found["rate_kept"] == pytest.approx(0.5)
    assert found["echo_gap_s"] is None


def test_a_silence_until_the_end_leaves_no_rate() -> None:
    found = recovery.seen(
        told([n / 10 + 0.01 for n in range(40)]),
        {"due": [], "wait": [], "resets": [], "clean": []},
        4.0,
        8.0,
        lasting=False,
    )
    assert (found["rate_kept"], found["after_mbps"]) == (0.0, None)


def test_queries_wait_for_the_next_connection_where_theirs_ended() -> None:
    clock = _Clock(10.0, 1.0)
    clock.upto(12.0)
    clock.answered(1, 12.5)
    assert (clock.due, clock.wait) == ([10.0, 11.0, 12.0], [2.5])
    clock.upto(13.9)  # its connection ended; one more was due meanwhile
    clock.answered(clock.ask() + 1, 14.5)
    assert clock.wait == [2.5, 3.5, 2.5, 1.5, 0.5]
    clock.all_until(20.0)
    assert len(clock.wait) == len(clock.due) == 5


def test_a_fin_is_told_from_a_reset() -> None:
    ends = Ends()
    ends.add(ConnectionResetError())
    ends.add(CutShort("a FIN"))
    assert (len(ends.resets), len(ends.clean)) == (1, 1)


def test_ports_are_read_off_a_listing() -> None:
    listing = (
        "0      0          10.0.1.1:44318       10.0.1.2:6010\n0 36 10.0.1.1:9 10.0.1.2:6000 \n"
    )
    assert outage.ports_in(listing) == [9, 44318]


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def test_what_befalls_pipes(kept: Labs, tmp_path: Path) -> None:
    """By the kernel's word, not the proxies': packets are dropped or refused, and then no more."""
    for event in outage.EVENTS:
        with live(kept, tmp_path / event, configuration(pipes=2, extend="never")) as made:
            with outage.applications_elsewhere(made.lab):
                befallen(made.lab, event)
                server = made.lab.client.inside("ip", "route", "get", "10.0.9.2")
                assert " src 10.0.77.1 " in server, "it went with the pipes' address"
            assert "outage" not in made.lab.rp.inside("nft", "list", "tables")
            assert " 10.0.1.1/24 " in made.lab.client.inside("ip", "-4", "address", "show")
            assert "congctl cubic" in made.lab.client.inside("ip", "route", "show", "default")


def befallen(lab: Lab, event: str) -> None:
    before = set(outage.pipes_of(lab.client))
    assert len(before) == 2
    with ExitStack() as stack:
        it = stack.enter_context(outage.possible(lab, seed=1))
        it.befall(event, stack, every_s=0.05, dark_s=0.2, until=time.monotonic() + 0.2)
        if event == "address":
            assert " 10.0.1.77/24 " in lab.client.inside("ip", "-4", "address", "show")
        elif event != "dark":
            assert len(it.dead & before) == 2 if event == "nat" else it.dead & before
            assert not it.dead & set(it.alive())
            listed = lab.client.inside("nft", "list", "table", "ip", "outage")
            assert all(str(port) in listed for port in it.dead)
        lab.client.inside("ping", "-c", "1", "-W", "5", "10.0.1.2")


def test_a_reset_pipe_ends_at_both_ends(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(pipes=2, extend="always")) as made:
        with outage.possible(made.lab, seed=1) as it:
            (port,) = it.one()
            it.reset([port])
            made.lab.client.inside("python3", "-c", TALK)
            for node, which in ((made.lab.client, "sport"), (made.lab.rp, "dport")):
                until(
                    f"the pipe to end in {node.name}",
                    lambda node=node, which=which: not node.connections(f"{which} = :{port}"),
                    20.0,
                )
            until("another pipe", lambda: len(it.alive()) == 2, 20.0)


# Bytes for both pipes, from a program that is redirected: nobody listens there, but rp is asked.
TALK = """
import contextlib, socket
for n in range(40):
    with contextlib.suppress(OSError):
        socket.create_connection(("10.0.9.2", 9), 5).recv(1)
"""
