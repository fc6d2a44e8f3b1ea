# SPDX-License-Identifier: MIT
"""A folder's plan once more: what was in force is set again, and what differs is said."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, in_force, labs, parameters
from experiments.campaign import How
from experiments.cli import main
from experiments.folder import FolderError, Results
from experiments.plan import Plan
from experiments.report import facts
from experiments.runner import Keep
from tests.conftest import why_no_namespace
from tests.experiments import synthetic
from tests.experiments.runner_lab import configuration, experiment
from topologies.nodes import SYSCTLS

TOLD = {
    **SYSCTLS,
    "net.ipv4.tcp_ecn": "1",
    "net.ipv4.tcp_recovery": "3",
    "net.ipv4.ip_forward": "0",
    "net.ipv4.tcp_fastopen": None,
    "net.core.rmem_max": "4194304",
}


def meta(**changed: Any) -> dict[str, Any]:
    nodes = {name: {"sysctls": {**TOLD, **changed}} for name in ("client", "rp", "server")}
    nodes["rp"]["sysctls"]["net.ipv4.ip_forward"] = "1"  # alike in no lab, and not set again
    machine = {"kernel": "6.1.0", "cpu": "A", "cores": 2, "memory_kib": 1}
    versions = {"commit": "abc", "rp": "rp 0.1.0", "lp": "lp 0.1.0", "numpy": "2.4"}
    session = {"machine": machine, "versions": versions}
    return {"sessions": [session], "labs": {"one": {"nodes": nodes}}}


def folder(root: Path, told: dict[str, Any], params: Any = None) -> Results:
    chosen = params or parameters.complete((), {"pipes": 2})
    plan = Plan("tried", (chosen,), 2, 7, 20.0)
    return Results.create(root, "tried", "abc", {**told, "plan": plan.as_dict()})


def test_what_a_namespace_has_for_itself_is_set_again(tmp_path: Path) -> None:
    found = in_force.sysctls(folder(tmp_path, meta()))
    assert found == {**SYSCTLS, "net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_recovery": "3"}
    topo = labs.topology(configuration(), 1, None, found)
    assert topo.settings.sysctls == found


def test_what_cannot_be_set_again_is_told(tmp_path: Path) -> None:
    mixed = meta()
    mixed["labs"]["one"]["nodes"]["rp"]["sysctls"]["net.ipv4.tcp_ecn"] = "2"
    with pytest.raises(FolderError, match=r"net\.ipv4\.tcp_ecn differed between"):
        in_force.sysctls(folder(tmp_path, mixed))
    for labs_ in ({}, {"one": {}}, {"one": {"nodes": {"rp": {"sysctls": None}}}}, None):
        with pytest.raises(FolderError, match="does not tell what was in force"):
            in_force.sysctls(folder(tmp_path, {**meta(), "labs": labs_}))


def test_what_differs_is_said() -> None:
    before = meta()
    assert in_force.differs(before, copy.deepcopy(before)) == []
    now = meta(**{"net.core.rmem_max": "212992"})
    now["sessions"][0]["machine"] = {"kernel": "6.18", "cpu": "A", "cores": 4, "memory_kib": 2}
    now["sessions"][0]["versions"]["rp"] = "rp 0.2.0"
    assert in_force.differs(before, now) == [
        "rp was rp 0.1.0, is rp 0.2.0",
        "kernel was 6.1.0, is 6.18",
        "cores was 2, is 4",
        "net.core.rmem_max was 4194304, is 212992",
    ]
    assert in_force.differs(before, {"sessions": now["sessions"]})[-1] == "cores was 2, is 4"


def test_the_report_says_how(tmp_path: Path) -> None:
    results = synthetic.loaded(synthetic.make(tmp_path / "a b", reps=1))
    assert facts.by_this_version(results) == "sudo build/tm3lab again 'a b'"


def test_a_plan_of_another_version_is_not_carried_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan("download", ({"way": "pipes"},), 1, 1, 20.0)
    told = {**meta(), "experiment": "download", "plan": plan.as_dict()}
    there = Results.create(tmp_path, "download", "abc", told)
    assert main(["again", str(there.path)]) == 1
    err = capsys.readouterr().err
    assert "planned with other parameters than this version knows" in err
    assert err.count("\n") == 1
    assert main(["again", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
def test_a_lab_has_it_in_force(tmp_path: Path) -> None:
    """Read back where it was set, while it was."""
    tried = experiment(lambda run: {"completion_s": 1.0})
    chosen = configuration(way="direct")
    before = folder(tmp_path, meta(), chosen)
    made = campaign.begin_again(tried, before, tmp_path / "more")
    assert made.plan == before.plan
    campaign.run(tried, made, How(Keep(late=True), calibrate=False))
    records = made.runs()
    assert [(it["outcome"], it["seed"]) for it in records] == [("ok", 7), ("ok", 8)]
    told = json.loads((made.path / "meta.json").read_text())
    assert told["again"]["of"] == before.path.name
    (lab,) = told["labs"].values()
    for node in lab["nodes"].values():
        assert node["sysctls"]["net.ipv4.tcp_ecn"] == "1"
        assert node["sysctls"]["net.ipv4.tcp_recovery"] == "3"
    again = in_force.sysctls(Results.open(made.path))
    assert {key: again[key] for key in in_force.sysctls(before)} == in_force.sysctls(before)
