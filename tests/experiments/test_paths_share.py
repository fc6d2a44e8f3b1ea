# SPDX-License-Identifier: MIT
"""What pipes over two paths take of a last mile, by rp's account, beside connections on it."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.catalogue.paths_share import EACH, carried_mbps, downloads_of, going, shares
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.prepare import wanted_by
from experiments.workloads import arrivals, rivals, traffic
from tests.experiments.workload_run import live
from tests.net.conftest import labs
from tests.relay.waiting import until

__all__ = ["labs"]


def test_shares_are_of_the_shared_last_mile() -> None:
    assert shares(2.0, 6.0, 9.0) == {
        **{"share": 0.25, "shared_mbps": 2.0, "rivals_mbps": 6.0},
        **{"download_mbps": 9.0, "total_mbps": 8.0},
    }
    assert shares(None, 6.0, 9.0)["share"] is None
    assert shares(0.0, 0.0, 0.0)["share"] is None


def sample(at: float, path: int, pipe: int, sent: int) -> dict[str, Any]:
    which = {"session": 1, "path": path, "pipe": pipe}
    return {"type": "pipe", "time": at, **which, "tx_bytes": sent}


def test_what_a_path_carried_is_of_its_pipes_between_two_samples() -> None:
    ahead = time.time() - time.monotonic()
    records = [
        sample(ahead + at, path, 2 * path + n, round(rate * at))
        for at in (0.9, 1.9, 2.9)
        for path, rate in ((0, 1e6), (1, 3e6))
        for n in range(2)
    ]
    assert carried_mbps(records, 0, 1.0, 3.0) == pytest.approx(16.0, rel=1e-3)
    assert carried_mbps(records, 1, 1.0, 2.0) == pytest.approx(48.0, rel=1e-3)
    assert carried_mbps(records, 0, 0.5, 3.0) is None, "no sample before"
    assert carried_mbps(records, 0, 3.0, 4.0) is None, "none since"


def whole(**chosen: Any) -> dict[str, Any]:
    experiment = find("paths-share")
    return dict(parameters.complete(experiment.parameters, {"preset": "wifi-lte", **chosen}))


def test_each_way_to_go_has_its_options() -> None:
    experiment = find("paths-share")

    def words(how: str) -> tuple[list[str], list[str]]:
        more = wanted_by(experiment, whole(**going(how), shared="lte"), Path())
        return list(more.lp), list(more.rp)

    assert words("both") == ([], [])
    assert words("bound") == (["--rule", f"port {traffic.PORT} paths lte"], [])
    assert words("copies") == (["--path-policy", "copies"],) * 2
    assert words("hashed") == (["--pipe-policy", "fixed"],) * 2


def test_connections_and_pipes_have_numbers_of_their_own() -> None:
    assert going("both")["connections"] == 1 and going("hashed")["connections"] == 2 * EACH
    assert "connections" not in going("plain-4")
    asked = [
        (it.of["connections"], it.of["pipes"], it.expect, it.over and it.over["how"])
        for it in find("paths-share").claims
        if it.of["how"] == "both" and (it.of["connections"], it.of["pipes"]) != (1, EACH)
    ]
    more, less = ("more", "plain-1"), ("less", "plain-4")
    assert asked == 2 * [(4, EACH, *more), (4, EACH, *less), (1, 1, *less), (4, 1, *less)]


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


@pytest.mark.parametrize("mile", [0, 1])
def test_rivals_are_on_the_shared_last_mile_alone(kept: Labs, tmp_path: Path, mile: int) -> None:
    params = whole(way="direct", pipes=0, how="plain-4", rivals=2)
    with live(kept, tmp_path / "run", params) as made:
        source = f"10.0.{mile + 1}.1"
        before = arrivals.received(made.lab)
        there = {**rivals.actors(made, source), **downloads_of(made, 0.2, source)}
        with traffic.beside(made, there) as found:

            def all_flow() -> bool:
                said = made.lab.client.inside("ss", "-Htin", "state", "established", "src", source)
                had = [int(count) for count in re.findall(r"bytes_received:(\d+)", said)]
                return sum(count > 50_000 for count in had) == 2 + EACH and sum(had) > 600_000

            until("each of them to have some of it", all_flow, 20)
        came = [b - a for a, b in zip(before, arrivals.received(made.lab), strict=True)]
    assert len(there) == 2 + EACH
    assert all(found[name]["total"] > 10_000 for name in there)
    assert came[mile] > sum(found[name]["total"] for name in there) > 500_000
    assert came[1 - mile] < 5_000


def test_what_goes_not_together_is_said(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", whole(way="direct", pipes=0)) as made:
        with pytest.raises(RunFailed, match="how both: plain-1, plain-4 go without pipes"):
            downloads_of(made, 0.0, "10.0.1.1")
