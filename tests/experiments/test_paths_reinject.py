# SPDX-License-Identifier: MIT
"""A path that is silent for a moment under a file: when, and what is asked of reinjection."""

from types import SimpleNamespace
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.catalogue.paths_file import MIB
from experiments.catalogue.paths_reinject import CONDITIONS, least_s, over_least, silent_at_s


def whole(**chosen: Any) -> dict[str, Any]:
    experiment = find("paths-reinject")
    return dict(parameters.complete(experiment.parameters, {"preset": "wifi-lte", **chosen}))


def test_the_moment_is_of_the_seed_and_within_the_least_time() -> None:
    params = whole(silent_ms=300.0, reinject="timely")
    moments = [silent_at_s(params, seed) for seed in range(200)]
    assert moments == [silent_at_s(whole(silent_ms=300.0), seed) for seed in range(200)]
    least_s = 0.025 + 0.008 + MIB / (16.225e6 / 8 * 1440 / 1514)
    assert 0 <= min(moments) < 0.1 * least_s
    assert 0.9 * least_s < max(moments) < 1.1 * least_s


@pytest.mark.parametrize("mode", ["timely", "mpflex"])
def test_a_silent_path_has_bounds_of_its_own(mode: str) -> None:
    asked = {
        (it.of["silent_path"], it.metric): (it.expect, it.than, it.over and it.over["reinject"])
        for it in find("paths-reinject").claims
        if it.of.get("silent_ms") == 300.0 and it.of["reinject"] == mode and it.of["size"] == MIB
    }
    assert asked == {
        **{(path, "completion_s"): ("less", 0.8, "off") for path in ("wifi", "lte")},
        **{(path, "reinjected_share"): ("less", 0.05, None) for path in ("wifi", "lte")},
        **{
            (path, "over_least"): ("less", 1.25, None)
            for path in ("wifi", "lte")
            if mode == "timely"
        },
    }


@pytest.mark.parametrize(("path", "through_s"), [("wifi", 0.747), ("lte", 0.787)])
def test_a_silent_path_is_held_to_who_knew_of_it_beforehand(path: str, through_s: float) -> None:
    params = whole(silent_ms=300.0, silent_path=path, pipes=4, wan_rtt_ms=4.0)
    early = [it for it in range(40) if 0.1 < silent_at_s(params, it) < 0.3]
    for seed in early:
        assert least_s(params, seed) == pytest.approx(through_s, abs=0.002)
    late = max(range(40), key=lambda it: silent_at_s(params, it))
    assert least_s(params, late) < 0.65
    run: Any = SimpleNamespace(params=params, seed=early[0])
    assert over_least(run, 2 * through_s) == pytest.approx(2, abs=0.003)
    assert over_least(run, None) is None


def test_with_loss_nobody_knows_the_least() -> None:
    run: Any = SimpleNamespace(params=whole(loss=0.01), seed=1)
    assert over_least(run, 1.0) is None


def test_without_loss_not_a_byte_goes_again() -> None:
    asked = [
        it
        for it in find("paths-reinject").claims
        if it.is_own and it.metric == "reinjected_share" and not it.of["silent_ms"]
    ]
    assert len(asked) == 2 * len(CONDITIONS)
    for it in asked:
        assert it.of["loss"] == 0.0 and it.expect == "less" and it.than * MIB <= 1
