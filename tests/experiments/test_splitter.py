# SPDX-License-Identifier: MIT
"""HAProxy in place of the pipes: a baseline that splits connections and does nothing else."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue, parameters, preflight, sweep
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.preflight import CannotServe
from experiments.report import words
from experiments.workloads import traffic
from experiments.workloads.actors import Bulk, Objects, Transfer
from tests.conftest import why_no_namespace
from tests.experiments.workload_run import configuration, live
from topologies import splitter
from topologies.parameter import ParameterError

REAL = [
    pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace())),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem"),
    pytest.mark.skipif(
        shutil.which("haproxy") is None, reason="no haproxy on this machine: make setup"
    ),
]
WAY = {"way": "haproxy"}


# --- asked for ---


def test_it_has_no_pipes() -> None:
    full = parameters.complete((), {**WAY, "pipes": 8, "warm": True})
    assert (full["pipes"], full["binding"], full["warm"]) == (0, None, None)
    assert words.carried(full) == "HAProxy"


def test_only_where_an_experiment_measures_it() -> None:
    found = sweep.configurations(catalogue.find("download"), {"way": ("haproxy",)})
    assert {it["way"] for it in found} == {"haproxy"}
    with pytest.raises(ParameterError, match="'haproxy' is not measured by overhead"):
        sweep.configurations(catalogue.find("overhead"), {"way": ("haproxy",)})


def test_it_is_what_fig_9_has_beside_one_pipe() -> None:
    """And on every last mile, in the full sweep."""
    download = catalogue.find("download")
    beside = [it for it in download.claims if (it.over or {}).get("way") == "haproxy"]
    assert len(beside) == 3
    (claim,) = [it for it in beside if not it.is_own]
    assert claim.of["preset"] == "lte", "it is the only one that was published"
    assert (claim.where, claim.paper, claim.expect, claim.of["pipes"]) == ("Fig. 9", 1.0, "same", 1)
    split = [it for it in sweep.configurations(download, {}) if it["way"] == "haproxy"]
    assert len({(it["preset"], it["size"]) for it in split}) == 9


def test_a_machine_without_it_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(
        preflight.shutil, "which", lambda name: None if name == "haproxy" else real(name)
    )
    monkeypatch.setattr(preflight, "need_root", lambda: None)
    monkeypatch.setattr(preflight, "check_registry", lambda: None)
    monkeypatch.setattr(preflight, "check_programs", lambda more: None)
    with pytest.raises(CannotServe, match=r"^way haproxy: not installed: haproxy: sudo make setup"):
        preflight.check(None, [parameters.complete((), WAY)])


def test_each_last_mile_is_redirected() -> None:
    assert 'iifname { "rp-eth0" } ip daddr 10.0.9.2' in splitter.rules(1)
    assert 'iifname { "rp-eth0", "rp-eth1" } ip daddr 10.0.9.2' in splitter.rules(2)


# --- for real ---


@pytest.fixture(scope="module")
def kept() -> Iterator[Labs]:
    with Labs() as made:
        yield made


def of_real(test: Any) -> Any:
    for mark in REAL:
        test = mark(test)
    return test


@of_real
def test_connections_are_split(kept: Labs, tmp_path: Path) -> None:
    """The server sees the proxy's address, both sides have the congestion control that was asked
    for, and a handshake is over the last mile alone."""
    wanted = configuration(**WAY, cc="reno", wan_rtt_ms=100.0, rtt_ms=20.0)
    with live(kept, tmp_path / "run", wanted) as made:
        actors = {
            "file": Transfer(port=traffic.PORT, down=300_000, up=1_000),
            "objects": Objects(port=traffic.PORT, count=2, pause_s=0.0),
        }
        with traffic.beside(made, {"long": Bulk(port=traffic.PORT, mbps=1.0)}):
            found = traffic.play(made, actors)
            at_server = made.lab.server.inside("ss", "-Htin", "state", "established")
            at_rp = made.lab.rp.inside("ss", "-Htin", "state", "established")
    peers = {line.split()[3] for line in at_server.splitlines() if line[:1].isdigit()}
    assert peers and all(peer.startswith("10.0.9.1:") for peer in peers), at_server
    controls = [line.split()[0] for line in at_rp.splitlines() if line[:1].isspace()]
    assert len(controls) >= 2 and set(controls) == {"reno"}, at_rp
    assert sum(found["file"]["bins"]) == 300_000
    assert 0.019 < found["file"]["connect_s"] < 0.09, "20 ms to rp, and not 120 to the server"
    told = made.facts["splitter"]
    assert told["connections"] >= 3 and "HAProxy version" in told["version"]


@of_real
def test_nothing_is_left_of_it(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(**WAY, cc="reno")) as made:
        traffic.play(made, {"file": Transfer(port=traffic.PORT, down=10_000)})
        rp = made.lab.rp
        assert "congctl reno" in rp.inside("ip", "route", "show")
    with live(kept, tmp_path / "run", configuration(way="direct")) as made:
        assert "congctl" not in rp.inside("ip", "route", "show")
        tables = json.loads(rp.inside("nft", "-j", "list", "tables"))["nftables"]
        assert not any(it.get("table", {}).get("name") == splitter.TABLE for it in tables)
        assert not rp.inside("ss", "-Hltn", f"sport = :{splitter.PORT}").strip()
        traffic.play(made, {"file": Transfer(port=traffic.PORT, down=10_000)})
    assert "splitter" not in made.facts


@of_real
def test_a_run_that_went_past_it_fails(kept: Labs, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no connection went through the splitting proxy"):
        with live(kept, tmp_path / "run", configuration(**WAY)) as made:
            made.lab.rp.inside("nft", "flush", "chain", "ip", splitter.TABLE, "prerouting")
            with suppress(RunFailed):
                traffic.play(made, {"file": Transfer(port=traffic.PORT, down=10_000)})
