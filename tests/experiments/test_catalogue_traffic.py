# SPDX-License-Identifier: MIT
"""The experiments: what they say of themselves, and those with transfers in a small lab."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import catalogue, preflight, sweep
from experiments.catalogue import find, loss_blocking, share
from experiments.catalogue.fairness import shares
from experiments.catalogue.sender_blocking import TABLE
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.model import Experiment
from experiments.prepare import wanted_by
from experiments.workloads import rivals, traffic
from experiments.workloads.actors import Pause
from tests.experiments.small_runs import FEWER, SETTLED_S, SETTLES, SMALL
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.parameter import Params

__all__ = ["labs"]

EXPERIMENTS = tuple(it.name for it in catalogue.experiments())
# LTE's lines; most cases
ONLY_IN_FULL = {
    *("blocking", "download", "extension-costs", "extension-lossy", "page-busy"),
    *("paths-file", "paths-rates", "paths-share", "paths-split", "paths-vary", "radio-apps"),
    *("radio-qcut", "reordering", "share", "slow-reader", "thin", "thin-loss", "udp"),
    "web-beside",
}
BY_LOAD = ("extension-costs", "radio-apps")  # each run measures what its load is about


def has(params: list[Params], wanted: Params) -> bool:
    return any(all(it[name] == value for name, value in wanted.items()) for it in params)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_runs_that_a_claim_is_about_are_in_the_sweep(name: str) -> None:
    experiment = find(name)
    asked = [it for claim in experiment.claims for it in (claim.of, claim.over) if it]
    full, quick = (sweep.configurations(experiment, {}, quick=it) for it in (False, True))
    assert not [it for it in asked if not has(full, it)]
    missing = [it for it in asked if not has(quick, it)]
    assert bool(missing) == (name in ONLY_IN_FULL), missing


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_of_a_quick_sweep_have_runs_enough_to_be_decided(name: str) -> None:
    """Each unit, a page for instance, counts as one."""
    experiment = find(name)
    quick = sweep.configurations(experiment, {}, quick=True)
    units = len({tuple(it[unit] for unit in experiment.units) for it in quick})
    assert not experiment.claims or units * min(experiment.quick_reps, experiment.reps) >= 5


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_figures_and_claims_use_what_there_is(name: str) -> None:
    experiment = find(name)
    own = {it.name for it in experiment.metrics} | {"completion_s"}
    known = set(sweep.configurations(experiment, {}, quick=True)[0])
    for figure in experiment.figures:
        used = {figure.hue, figure.facet} - {""}
        used |= set() if figure.kind == "ccdf" else {figure.x}  # a list that runs have
        assert used <= known | own, figure.name
    for claim in experiment.claims:
        assert claim.metric in own, claim.says


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
@pytest.mark.timeout(400)  # some do five runs, which take half a minute alone
@pytest.mark.parametrize("name", sorted(SMALL))
def test_each_once(kept: Labs, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, settles in SETTLES:
        monkeypatch.setattr(module, settles, SETTLED_S)
    for module, each, fewer in FEWER:
        monkeypatch.setattr(module, each, fewer)
    experiment = find(name)
    try:
        preflight.check_programs(experiment.packages)
        preflight.check_modules(experiment.modules)
    except preflight.CannotServe as missing:
        pytest.skip(str(missing))
    seen: set[str] = set()
    for number, chosen in enumerate(SMALL[name]):
        params = configuration(experiment.parameters, **chosen)
        whole(experiment, params)
        folder = tmp_path / str(number)
        folder.mkdir()
        with live(kept, folder, params, more=wanted_by(experiment, params, folder)) as made:
            measures = made.noted | experiment.measure(made)
        floor = experiment.floor_s(params)
        if floor is not None:
            assert measures["completion_s"] >= 0.95 * floor
        if "completion_s" in measures:
            assert measures["completion_s"] > 0
        seen |= set(measures)
        if params["pipes"] and name not in BY_LOAD:
            missing = {it.name for it in experiment.metrics} - set(measures)
            optional = {"upload_mbps", "bulk_mbps", "bulk_kept", "up_mbps", "down_mbps"}
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


@pytest.mark.parametrize("name", ["share", "web-beside"])
def test_rivals_are_of_the_same_kind_as_the_pipes(name: str) -> None:
    params = sweep.configurations(find(name), {}, quick=False)
    assert {it["cc"] for it in params if it["rivals"]} == {"cubic", "bbr"}
    assert all(it["rival_cc"] == it["cc"] for it in params if it["rivals"])


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
