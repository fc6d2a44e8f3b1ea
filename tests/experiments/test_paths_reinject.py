# SPDX-License-Identifier: MIT
"""A path that is silent for a moment under a file: when, and what is asked of reinjection."""

from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.catalogue.paths_file import MIB
from experiments.catalogue.paths_reinject import CONDITIONS, silent_at_s


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
    }


def test_without_loss_not_a_byte_goes_again() -> None:
    asked = [
        it
        for it in find("paths-reinject").claims
        if it.is_own and it.metric == "reinjected_share" and not it.of["silent_ms"]
    ]
    assert len(asked) == 2 * len(CONDITIONS)
    for it in asked:
        assert it.of["loss"] == 0.0 and it.expect == "less" and it.than * MIB <= 1
