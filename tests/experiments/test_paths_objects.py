# SPDX-License-Identifier: MIT
"""Objects in bursts: what is asked for, what lp is told of it, what a fluid makes of it."""

import io
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from experiments import parameters, sweep
from experiments.catalogue import find
from experiments.catalogue.paths_objects import (
    CONNECTIONS,
    LEAST_BYTES,
    NAMED,
    OBJECTS,
    alive,
    fluid_mean_s,
    load_of,
    seen,
)
from experiments.labs import Labs
from experiments.prepare import wanted_by
from experiments.workloads.bursts import LpRefused, tell
from tests.experiments.workload_run import live
from tests.net.conftest import labs

__all__ = ["labs"]


def test_a_seed_has_its_objects() -> None:
    """Three bursts of as many, within 0.1 s; sizes about the median, far ones among them."""
    one = load_of(7, OBJECTS, 3000, 1.2, 1.0)
    assert one == load_of(7, OBJECTS, 3000, 1.2, 1.0) != load_of(8, OBJECTS, 3000, 1.2, 1.0)
    assert [sum(int(at) == n for at in one.at_s) for n in range(3)] == [44, 44, 44]
    assert all(at % 1.0 < 0.1 for at in one.at_s) and list(one.at_s) == sorted(one.at_s)
    many = [size for seed in range(20) for size in load_of(seed, OBJECTS, 3000, 1.2, 1.0).sizes]
    assert 2700 < median(many) < 3300 and min(many) >= LEAST_BYTES
    assert fmean(many) > 1.7 * median(many)
    assert set(load_of(7, 9, 3000, 0.0, 1.0).sizes) == {3000}


def test_who_is_waited_for() -> None:
    assert alive([0.0, 0.0, 0.1], [0.12, 0.04, 0.2]) == [1, 2, 1, 0]
    found = seen([1.0, 1.0, 2.0], [0.5, 1.5, 1.0])
    assert found["completion_s"] == 2.0
    assert found["mean_s"] == 1.0 and found["p50_s"] == 1.0
    assert found["alive_mean"] == 1.5
    assert len(found["series_waited_for_objects"]) == 60


def params_of(**chosen: Any) -> dict[str, Any]:
    experiment = find("paths-objects")
    base = {"preset": "mobile-dsl", "pipes": 2, **chosen}
    return dict(parameters.complete(experiment.parameters, base))


def test_the_bounds_hold_for_the_fluid() -> None:
    """Where they do not, no proxy could be asked to keep them."""
    for seed in range(1, 6):
        load = load_of(seed, OBJECTS, 3000, 1.2, 1.0)
        mean = {
            name: fluid_mean_s(params_of(conn_policy=connection, path_policy=path), load)
            for name, (connection, path) in NAMED.items()
        }
        assert mean["SRPT-ECF"] < 0.65 * mean["SA-ECF"]
        assert mean["SRPT-ECF"] < 0.65 * mean["FCFS-MinRTT"]
        assert mean["SRPT-ECF"] < mean["SRPT-MinRTT"]


def test_a_fluid_counts_from_the_request() -> None:
    """One object of 1440 bytes by the near path: half a round trip each way, the server's, and a
    segment at 1.05 Mbit/s."""
    load = load_of(1, 3, LEAST_BYTES, 0.0, 1.0)
    took = fluid_mean_s(params_of(conn_policy="srpt", path_policy="ecf"), load)
    assert took == pytest.approx(0.067 + 0.004 + 236 * 8 / (1.05e6 * 1440 / 1514), rel=0.15)


def test_every_policy_is_in_the_sweep() -> None:
    experiment = find("paths-objects")
    full = sweep.configurations(experiment, {}, quick=False)
    pairs = {(it["conn_policy"], it["path_policy"]) for it in full}
    assert pairs >= set(NAMED.values()) and {it for it, _ in pairs} == set(CONNECTIONS)
    assert len(full) == 12


class Lp(io.StringIO):
    """Answers one after the other, whatever is said."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = iter(answers)
        self.said: list[str] = []

    def write(self, text: str) -> int:
        self.said.append(text)
        return len(text)

    def readline(self, *_: Any) -> str:  # type: ignore[override]
        return next(self.answers, "")


def test_lp_is_told_until_it_knows_the_connection() -> None:
    there = Lp(*["error: there is no connection 10.0.1.1:9\n"] * 3, "ok\n")
    tell(there, "hint 10.0.1.1:9 size=5")
    assert there.said == ["hint 10.0.1.1:9 size=5\n"] * 4
    for answers in ((), ("error: rp does not understand hints\n",)):
        with pytest.raises(LpRefused, match=r"closed its control|rp does not understand"):
            tell(Lp(*answers), "hint 10.0.1.1:9 size=5")


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def test_rp_hears_of_each_size(kept: Labs, tmp_path: Path) -> None:
    experiment = find("paths-objects")
    params = params_of(conn_policy="srpt", path_policy="ecf", objects=12, gap_s=0.2)
    more = wanted_by(experiment, params, tmp_path)
    with live(kept, tmp_path, params, more=more) as made:
        measures = experiment.measure(made)
        assert made.pair is not None
        pair = made.pair
    told = {it["type"]: it for it in pair.statistics("rp")}["counters"]
    assert told["hints_received"] >= 12
    assert len(measures["times_s"]) == 12 and min(measures["times_s"]) > 0.06
    assert 0.8 < measures["over_fluid"] < 4
