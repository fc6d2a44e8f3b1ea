# SPDX-License-Identifier: MIT
"""A thin stream beside a bulk: what is measured of both, and which pipes they share."""

from pathlib import Path

import pytest

from experiments.catalogue import find
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.workloads import thin_beside
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.parameter import Params

__all__ = ["labs"]


def test_what_the_bulk_keeps_is_of_its_rate_before() -> None:
    """12.5 KB a bin are 1 Mbit/s; until 7 s without the stream, from 8 s to 10 s beside it."""
    bins = [99_999] * 30 + [50_000] * 40 + [0] * 10 + [25_000] * 20 + [99_999] * 10
    found = thin_beside.goodputs(bins, 8.0, 10.0)
    assert found["bulk_mbps"] == pytest.approx(2.0)
    assert found["bulk_kept"] == pytest.approx(0.5)
    with pytest.raises(RunFailed, match="carried nothing before"):
        thin_beside.goodputs([0] * 70 + [9] * 40, 8.0, 10.0)


def test_answers_are_told_in_milliseconds() -> None:
    found = thin_beside.answers([n / 1e3 for n in range(1001)])
    told = [found[f"answer_{name}_ms"] for name in ("p50", "p97", "p99", "p999")]
    assert told == pytest.approx([500, 970, 990, 999])
    assert found["completion_s"] == 0.5


def carried(labs: Labs, folder: Path, monkeypatch: pytest.MonkeyPatch, **chosen: str) -> int:
    """By the pipes, towards the client."""
    monkeypatch.setattr(thin_beside, "SETTLE_S", 0.5)
    monkeypatch.setattr(thin_beside, "ALONE_S", 0.5)
    own = find("thin-beside").parameters
    params: Params = configuration(own, queries=20, every_ms=20.0, mbps=8.0, **chosen)
    with live(labs, folder, params) as made:
        found = find("thin-beside").measure(made)
        assert made.pair is not None
        told = [it for it in made.pair.statistics("lp") if it["type"] == "pipe"]
    assert len(found["answers_s"]) == 20
    if chosen["bulk"] != "none":
        assert found["bulk_mbps"] > 2.0
    return max(sum(it["rx_bytes"] for it in told if it["pipe"] == n) for n in (0, 1))


def test_a_bulk_that_is_apart_is_on_no_pipe(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Labs() as made:
        apart = carried(made, tmp_path / "apart", monkeypatch, bulk="apart")
        same = carried(made, tmp_path / "same", monkeypatch, bulk="same")
    assert apart < 50_000 < 200_000 < same


def test_without_pipes_there_are_none_to_share(labs: Path, tmp_path: Path) -> None:
    own = find("thin-beside").parameters
    params = configuration(own, queries=2, way="direct", bulk="same")
    with Labs() as made, live(made, tmp_path / "run", params) as run:
        with pytest.raises(RunFailed, match="bulk same"):
            find("thin-beside").measure(run)
