# SPDX-License-Identifier: MIT
"""A fixed share over either path: the best one, what any takes at the least, what is counted."""

import time
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.catalogue.paths_file import KIB, MIB, is_told_apart, paths_of, shares, since
from experiments.catalogue.paths_split import BEST, PathsSplit, best_share, split_s
from topologies.parameter import Params

HERE = Path()


def params_of(**chosen: Any) -> Params:
    told = {"preset": "wifi-lte", "pipes": 4, **chosen}
    return parameters.complete(PathsSplit.parameters, told)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("size", [64 * KIB, 256 * KIB, MIB])
@pytest.mark.parametrize("rtt_ms", [70.0, 270.0, 470.0])
def test_no_share_is_better_than_the_best(warm: bool, size: int, rtt_ms: float) -> None:
    params = params_of(warm=warm, size=size, second_rtt_ms=rtt_ms, path_policy=BEST)
    found = best_share(params)
    paths = paths_of(params)
    least = split_s(params, paths, found)
    others = [split_s(params, paths, step / 1000) for step in range(1001)]
    assert least <= min(others) + 1e-9
    assert min(others) < least * 1.02, "a share near it takes about as long"
    if rtt_ms == 470.0 and size == 64 * KIB:
        assert found == pytest.approx(1, abs=0.001), "all of it is there over Wi-Fi by then"


def test_what_the_proxies_are_told() -> None:
    experiment = PathsSplit()
    split = params_of(path_policy="split", wifi_share=0.025)
    assert experiment.lp_options(split, HERE) == ["--path-policy", "split:2.5"]
    assert experiment.rp_options(split, HERE) == ["--path-policy", "split:2.5"]
    best = params_of(path_policy=BEST, warm=True, size=256 * KIB, second_rtt_ms=270.0)
    (_, told) = experiment.rp_options(best, HERE)
    assert told == f"split:{100 * best_share(best):.6g}"
    assert experiment.rp_options(params_of(path_policy="ecf"), HERE) == ["--path-policy", "ecf"]
    assert find("paths-file").rp_options(params_of(path_policy="one:lte"), HERE)[1] == "one:1"


def test_the_floor_of_a_share_is_its_own() -> None:
    """The request goes over LTE where nothing may go over Wi-Fi."""
    experiment = PathsSplit()
    told: dict[str, Any] = {"warm": True, "size": 256 * KIB, "second_rtt_ms": 270.0}
    least = experiment.least_s(params_of(path_policy="minrtt", **told))
    assert experiment.floor_s(params_of(path_policy="minrtt", **told)) == least
    floors = [
        experiment.floor_s(params_of(path_policy="split", wifi_share=share, **told))
        for share in (0.0, 0.5, 1.0)
    ]
    rates = [mbps * 1e6 / 8 * 1440 / 1514 for mbps in (7.04, 9.185)]
    wan_s = 0.008
    assert floors[0] == pytest.approx(0.135 + wan_s + 0.135 + 256 * KIB / rates[1], rel=1e-3)
    assert floors[1] == pytest.approx(0.025 + wan_s + 0.135 + 128 * KIB / rates[1], rel=1e-3)
    assert floors[2] == pytest.approx(0.025 + wan_s + 0.025 + 256 * KIB / rates[0], rel=1e-3)
    assert least < min(floors)


def sample(at: float, path: int, written: int, reinjected: int) -> dict[str, Any]:
    return {"time": at, "path": path, "written": written, "reinjected": reinjected, "came": at}


def test_what_warmed_the_pipes_is_not_counted() -> None:
    began = time.monotonic()
    now = time.time()
    records = [
        *(sample(now - 1, 0, 100, 7), sample(now - 1, 1, 50, 7)),
        *(sample(now - 0.2, 0, 1000, 70), sample(now - 0.2, 1, 500, 70)),
        *(sample(now + 0.1, 0, 1300, 72), sample(now + 0.1, 1, 500, 70)),
        *(sample(now + 0.2, 0, 1600, 74), sample(now + 0.2, 1, 700, 70)),
    ]
    own = since(records, began)
    assert [it["written"] for it in own] == [300, 0, 600, 200]
    assert shares(own, 400) == {
        **{"far_share": 0.25, "reinjected_bytes": 4},
        "reinjected_share": pytest.approx(0.01),
    }
    assert [it["written"] for it in since(records, began - 5)][-2:] == [1600, 700]


def test_when_a_sample_lies_before_the_file() -> None:
    assert is_told_apart(params_of(warm=False))
    assert is_told_apart(params_of(warm=True, idle_s=0.3))
    assert not is_told_apart(params_of(warm=True))
