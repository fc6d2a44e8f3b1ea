# SPDX-License-Identifier: MIT
"""A transfer without end over both paths, beside the sum of what either carries alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find, paths_bulk
from experiments.labs import Labs
from experiments.prepare import wanted_by
from experiments.workloads import arrivals
from experiments.workloads.traffic import PLAIN_PORT, PORT
from tests.experiments.workload_run import live
from tests.net.conftest import labs

__all__ = ["labs"]


def whole(**chosen: Any) -> dict[str, Any]:
    experiment = find("paths-bulk")
    return dict(parameters.complete(experiment.parameters, {"preset": "wifi-lte", **chosen}))


def test_unequal_and_equal_paths_have_bounds_of_their_own() -> None:
    asked = {
        (it.of["second_rtt_ms"], it.of["second_down_mbps"], it.of["transfer"]): it.than
        for it in find("paths-bulk").claims
        if it.expect == "more" and it.over == {**it.of, "how": "each"}
    }
    assert asked == {
        (rtt_ms, mbps, transfer): than
        for rtt_ms, mbps, than in ((70.0, 9.185, 0.95), (50.0, 7.04, 0.97))
        for transfer in ("down", "up")
    }


def test_the_second_path_is_the_presets_or_as_the_first() -> None:
    lte, like_wifi = (
        [getattr(it, name) for it in parameters.miles(whole(**second)) for name in names]
        for names in [("down_mbps", "up_mbps", "rtt_ms", "queue_down_ms", "queue_up_ms")]
        for second, _ in paths_bulk.CASES.values()
    )
    preset = parameters.miles(whole())[1]
    assert lte[5:] == [preset.down_mbps, preset.up_mbps, preset.rtt_ms, 500.0, 500.0]
    assert like_wifi[5:] == like_wifi[:5]


def test_each_alone_is_bound_by_a_rule() -> None:
    experiment = find("paths-bulk")
    assert list(wanted_by(experiment, whole(how="both"), Path()).lp) == []
    rules = [f"port {PORT} paths wifi", f"port {PLAIN_PORT} paths lte"]
    told = wanted_by(experiment, whole(how="each"), Path())
    assert list(told.lp) == ["--rule", rules[0], "--rule", rules[1]] and not list(told.rp)


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def test_a_bound_transfer_goes_over_its_path_alone(
    kept: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths_bulk, "SETTLE_S", 0.5)
    experiment = find("paths-bulk")
    params = whole(how="each", seconds=1.0, pipes=2, mbps=8.0)
    with live(kept, tmp_path / "run", params, more=wanted_by(experiment, params, tmp_path)) as made:
        for mile, port in enumerate((PORT, PLAIN_PORT)):
            before = arrivals.received(made.lab)
            carried = paths_bulk.carried_mbps(made, port)
            came = [b - a for a, b in zip(before, arrivals.received(made.lab), strict=True)]
            assert 2.0 < carried < 8.0
            assert came[mile] > 300_000 and came[1 - mile] < 0.1 * came[mile]
