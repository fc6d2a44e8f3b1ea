# SPDX-License-Identifier: MIT
"""Flows over pipes and over MPTCP: which path MPTCP begins on, and what is compared with what."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters, sweep
from experiments.catalogue import find
from experiments.catalogue.paths_flows import COUNT, FILES, way
from experiments.catalogue.paths_proxy import PLACES
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.paper import ROWS
from experiments.prepare import wanted_by
from experiments.workloads import arrivals, traffic
from experiments.workloads.actors import Transfer
from tests.experiments.workload_run import live
from tests.net.conftest import labs

__all__ = ["labs"]


def params_of(**chosen: Any) -> dict[str, Any]:
    experiment = find("paths-flows")
    return dict(parameters.complete(experiment.parameters, {"preset": "wifi-lte", **chosen}))


def test_published_rows_have_titles() -> None:
    """And each claim of these is about one of them."""
    rows = {it.row for it in ROWS}
    for name in ("paths-flows", "paths-proxy"):
        its = find(name).claims
        assert its and {it.row for it in its} <= rows
        assert not any(it.is_own or it.paper is not None for it in its), "bars are not claimed"


def test_each_pattern_is_compared_with_either_path_first() -> None:
    claims = find("paths-flows").claims
    over = {"wifi": 0, "lte": 0}
    for it in claims:
        if it.over and it.over["way"] == "mptcp":
            over[str(it.over["primary"])] += 1
            same = ("size", "count", "parallel", "rtt_ms", "second_rtt_ms")
            assert all(it.of[name] == it.over[name] for name in same)
    assert over["wifi"] == over["lte"] == len(FILES) + 6
    assert COUNT > 1


def test_mptcp_goes_to_a_server_as_near_as_the_nearest_proxy() -> None:
    runs = sweep.configurations(find("paths-proxy"), {}, quick=False)
    direct = [it for it in runs if it["way"] == "mptcp"]
    assert {(it["rtt_ms"], it["second_rtt_ms"]) for it in direct} == {(27.0, 49.0)}
    there = {(it["rtt_ms"], it["second_rtt_ms"]) for it in runs if it["way"] == "pipes"}
    assert there == {(it["rtt_ms"], it["second_rtt_ms"]) for it in PLACES.values()}


def test_the_options_of_each_way() -> None:
    experiment = find("paths-flows")
    pipes = wanted_by(experiment, params_of(pipes=1, path_policy="txdelay"), Path())
    assert list(pipes.lp) == list(pipes.rp) == ["--path-policy", "txdelay"]
    plain = wanted_by(experiment, params_of(way="mptcp", pipes=0), Path())
    assert list(plain.lp) == list(plain.rp) == []


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


@pytest.mark.parametrize(("primary", "first"), [("wifi", 0), ("lte", 1)])
def test_mptcp_begins_on_the_path_that_is_named(
    kept: Labs, tmp_path: Path, primary: str, first: int
) -> None:
    """Of a short flow nearly all; of a long one the other path carries a part, too."""
    with live(kept, tmp_path / "run", params_of(way="mptcp", pipes=0, primary=primary)) as made:
        where = way(made)
        seen = []
        for size in (5_000, 2_000_000):
            before = arrivals.received(made.lab)
            it = Transfer(down=size, **where)
            found = traffic.play(made, {"it": it}, f"client{size}")["it"]
            came = [b - a for a, b in zip(before, arrivals.received(made.lab), strict=True)]
            seen.append(came[first] / sum(came))
            assert found["subflows"] in (1, 2), "one by each path at most"
        assert found["subflows"] == 2
        with pytest.raises(RunFailed, match="primary both: both goes with pipes"):
            way(replace(made, params=params_of(way="mptcp", pipes=0)))
    assert seen[0] > 0.9 and 0.2 < seen[1] < 0.8
