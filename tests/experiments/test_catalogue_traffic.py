# SPDX-License-Identifier: MIT
"""The experiments with transfers: what they say of themselves, and each once in a small lab."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import sweep
from experiments.catalogue import find, loss_blocking, share
from experiments.catalogue.fairness import shares
from experiments.catalogue.sender_blocking import TABLE
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.model import Experiment
from experiments.workloads import rivals, traffic
from experiments.workloads.actors import Pause
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.parameter import Params

__all__ = ["labs"]

NAMES = (
    *("asymmetric", "blocking", "download", "fairness", "host-cc", "loss-blocking", "object"),
    *(
        "object-size",
        "overhead",
        "reordering",
        "sender-blocking",
        "sender-blocking-lte",
        "share",
        "short-connections",
        "slow-reader-crowd",
        "extension-costs",
        "extension-lossy",
        "thin",
        "throughput",
        "udp",
        "video",
    ),
    *("recovery", "slow-reader", "walkthrough", "web-beside"),
)
# LTE's lines; most cases
ONLY_IN_FULL = (
    *("reordering", "blocking", "share", "slow-reader", "thin", "web-beside"),
    *("extension-costs", "extension-lossy", "udp"),
)


def has(params: list[Params], wanted: Params) -> bool:
    return any(all(it[name] == value for name, value in wanted.items()) for it in params)


@pytest.mark.parametrize("name", NAMES)
def test_the_runs_that_a_claim_is_about_are_in_the_sweep(name: str) -> None:
    experiment = find(name)
    for quick in (False, True):
        params = sweep.configurations(experiment, {}, quick=quick)
        assert params
        for claim in experiment.claims:
            for wanted in filter(None, (claim.of, claim.over)):
                there = has(params, wanted) or (quick and name in ONLY_IN_FULL)
                assert there, f"{claim.says}: no run with {wanted}"


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_a_quick_sweep_have_runs_enough_to_be_decided(name: str) -> None:
    experiment = find(name)
    assert not experiment.claims or min(experiment.quick_reps, experiment.reps) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_figures_and_claims_use_what_there_is(name: str) -> None:
    experiment = find(name)
    own = {it.name for it in experiment.metrics} | {"completion_s"}
    known = set(sweep.configurations(experiment, {}, quick=True)[0])
    for figure in experiment.figures:
        used = {figure.x, figure.hue, figure.facet} - {""}
        assert used <= known | own, figure.name
    for claim in experiment.claims:
        assert claim.metric in own, claim.says


BY_LOAD = ("extension-costs",)  # each run measures what its load is about
EXTENDS = ("auto", "never")
SMALL: dict[str, list[dict[str, Any]]] = {
    "asymmetric": [
        {"size": 50_000, "transfer": transfer, "up_mbps": 5.0}
        for transfer in ("down", "up", "down-beside-up")
    ],
    "blocking": [
        {"bulks": 3, "bulk_way": "up"},
        {"trace_down": "synthetic-lte", "loss": 0.01, "rivals": 1},
        {"bulk_way": "up", "binding": "early", "jitter_ms": 2.0},
        {"bottleneck": "sender", "link": "veth", "rtt_ms": 0.0, "wan_rtt_ms": 0.0, "mbps": 50.0},
    ],
    "download": [{"size": 50_000, "way": way} for way in ("pipes", "direct", "mptcp")],
    "extension-costs": [
        {"load": "stream", "seconds": 1.0, "extend": "never"},
        {"load": "object", "seconds": 1.0, "bottleneck": "sender"},
        {"load": "both-ways", "seconds": 1.0, "up_mbps": 2.0},
    ],
    "extension-lossy": [{"size": 50_000, "loss": 0.01, "extend": extend} for extend in EXTENDS],
    "fairness": [{"plain": 2, "seconds": 1.0, "way": way} for way in ("pipes", "direct")],
    "host-cc": [
        {"seconds": 1.0, "plain": 1, "aggregate": "dswa", "lambda": 2.0},
        {"seconds": 1.0, "way": "direct"},
    ],
    "loss-blocking": [
        {"seconds": 1.0, "loss": 0.05, "connections": 3},
        {"seconds": 1.0, "connections": 2, "way": "direct"},
    ],
    "object": [{"bulk": False}, {"bulk": True, "bulk_way": "up"}, {"way": "direct"}],
    "object-size": [{"beside": 0}, {"beside": 200_000, "binding": "early"}],
    "overhead": [{"load": load} for load in ("file", "upload", "objects", "short", "video")],
    "recovery": [{"event": "reset", "at_s": 0.5, "after_s": 1.0, "extend": "never"}],
    "reordering": [{"size": 2_500_000, "binding": "early", "pipe_sndbuf": 100_000}],
    "sender-blocking": [
        {"bottleneck": "sender", "binding": "early", "app_buffer": 50_000},
        {"bottleneck": "sender", "way": "direct"},
    ],
    "sender-blocking-lte": [{"bottleneck": "network"}],
    "share": [
        {"seconds": 1.0, "rivals": 2, "rival_cc": "reno", **way}
        for way in ({"way": "pipes"}, {"way": "direct"})
    ],
    "slow-reader": [{"readers": 2, "takes": "1.2MB/s", "alone_s": 0.5, "beside_s": 0.5}],
    "slow-reader-crowd": [{"readers": 200, "alone_s": 0.5, "beside_s": 0.5}],
    "thin": [{"queries": 10}, {"queries": 5, "way": "direct"}],
    "short-connections": [{"count": 10, "parallel": 4}],
    "throughput": [{"direction": "both", "seconds": 1}],
    "udp": [{"seconds": 0.5}, {"seconds": 0.5, "load": "alone", "way": "direct"}],
    "video": [{"seconds": 1.0, "bulk": True}, {"seconds": 1.0, "bulk": False}],
    "walkthrough": [{"count": 3}],
    "web-beside": [
        {"rounds": 1, "bulk_s": 1.0, "binding": "early", "jitter_ms": 2.0},
        {"rounds": 1, "bulk_s": 1.0, "rivals": 1, "loss": 0.01},
    ],
}


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def whole(experiment: Experiment, params: Params) -> None:
    """What is compared and drawn has to be there: without pipes, what does not need them."""
    assert set(params) >= {"way", "pipes"}
    assert experiment.title
    assert experiment.question.endswith("?")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_once(kept: Labs, tmp_path: Path, name: str) -> None:
    experiment = find(name)
    seen: set[str] = set()
    for number, chosen in enumerate(SMALL[name]):
        params = configuration(experiment.parameters, **chosen)
        whole(experiment, params)
        with live(kept, tmp_path / str(number), params) as made:
            measures = made.noted | experiment.measure(made)
        floor = experiment.floor_s(params)
        if floor is not None:
            assert measures["completion_s"] >= 0.95 * floor
        if "completion_s" in measures:
            assert measures["completion_s"] > 0
        seen |= set(measures)
        if params["pipes"] and name not in BY_LOAD:
            missing = {it.name for it in experiment.metrics} - set(measures)
            optional = {"upload_mbps", "bulk_mbps", "up_mbps", "down_mbps"}
            assert missing <= optional, f"{missing} of {name} {chosen}"
    if name in BY_LOAD:
        assert {it.name for it in experiment.metrics} <= seen


def test_nobody_is_faster_than_the_rate(kept: Labs, tmp_path: Path) -> None:
    """All that share a last mile have its rate together."""
    experiment = find("fairness")
    params = configuration(experiment.parameters, plain=2, seconds=2.0, mbps=8.0)
    with live(kept, tmp_path / "run", params) as made:
        measures = experiment.measure(made)
    assert 6.0 < measures["total_mbps"] < 8.5
    assert 0 < measures["share"] < 1


def test_shares() -> None:
    found = shares(6.0, [2.0, 2.0], pipes=3)
    assert found["share"] == 0.6
    assert found["jain_pipes"] == pytest.approx(1)
    assert found["jain"] == pytest.approx(100 / (3 * 44))
    assert found["plain_mbps"] == 2.0
    assert shares(5.0, [5.0], pipes=0)["jain_pipes"] == pytest.approx(1)


def test_a_connection_that_ended_as_it_began_has_no_shares() -> None:
    lived = {"own": 0.1, "others": 0.2, "order": 0.0, "lived": 1.0}
    ended = {"own": 0.0, "others": 0.0, "order": 0.0, "lived": 0.0}
    assert loss_blocking.shares([lived, ended]) == {
        **{"own_share": 0.1, "others_share": 0.2, "order_share": 0.0},
        **{"lost_share": pytest.approx(0.3), "accounted": 1},
    }
    with pytest.raises(RunFailed, match="none of 1 connections"):
        loss_blocking.shares([ended])


def test_a_share_is_of_all_that_was_carried() -> None:
    found = share.shares(3.0, [4.0, 2.0, 3.0])
    assert found == {"share": 0.25, "download_mbps": 3.0, "rivals_mbps": 9.0, "total_mbps": 12.0}
    assert share.shares(0.0, [0.0])["share"] is None


def test_rivals_have_their_own_congestion_control_and_go_around_the_pipes(
    kept: Labs, tmp_path: Path
) -> None:
    params = configuration(find("share").parameters, rivals=2, rival_cc="reno", cc="cubic")
    with live(kept, tmp_path / "run", params) as made:
        there = {**rivals.actors(made), "clock": Pause(seconds=1.0)}
        found = traffic.play(made, there)
        assert made.pair is not None
        carried = sum(it["rx_bytes"] for it in made.pair.statistics("lp") if it["type"] == "pipe")
    assert all(found[name]["total"] > 100_000 for name in ("rival0", "rival1"))
    assert carried < 10_000, "rivals went through the pipes"


def test_a_queue_in_the_proxy_is_shared_out_to_the_pipes() -> None:
    """The published one is for all pipes, the proxies' is for each."""
    for row in TABLE:
        early = row.early()
        total = (early["app_buffer"] or 0) * row.pipes  # type: ignore[operator]
        assert total == (row.app or 0)
        assert row.late()["app_buffer"] is None
