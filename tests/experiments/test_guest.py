# SPDX-License-Identifier: MIT
"""A client that is a virtual machine: refused where it cannot be, recorded, outlived."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue, guest, parameters, preflight, sweep
from experiments.folder import Results
from experiments.labs import Labs, key, name_of
from experiments.live_run import LiveRun
from experiments.plan import Plan
from experiments.preflight import CannotServe
from experiments.runner import Keep, Runner
from tests.experiments.runner_lab import configuration, download, experiment
from tests.net.conftest import labs, why_no_lab
from topologies.parameter import ParameterError
from vm import recipe

__all__ = ["labs"]


def why_no_guest() -> str | None:
    if os.environ.get("TM3_GUEST") == "1":
        return "runs a guest itself"
    return why_no_lab() or guest.lacks()


def test_what_is_missing_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh tree has neither image nor module."""
    monkeypatch.setenv("TM3_VM_CACHE", str(tmp_path))
    monkeypatch.setattr(guest, "MODULE", tmp_path / "tm3.ko")
    monkeypatch.setattr(guest.need, "programs", lambda names: None)
    wanted = "client vm: the guest's image and build/tm3.ko must be made first: sudo make vm kmod"
    assert guest.lacks() == wanted
    monkeypatch.setattr(preflight, "need_root", lambda: None)
    monkeypatch.setattr(preflight, "check_programs", lambda more: None)
    with pytest.raises(CannotServe) as refused:
        preflight.check(None, [parameters.complete((), {"client": "vm"})])
    assert str(refused.value) == wanted


def test_a_module_for_another_kernel_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / recipe.recipe().name
    image.mkdir()
    (image / "release").write_text("6.1.0-99-amd64\n")
    module = tmp_path / "tm3.ko"
    module.write_bytes(b"\0vermagic=6.1.0-1-amd64 SMP preempt \0name=tm3\0")
    monkeypatch.setenv("TM3_VM_CACHE", str(tmp_path))
    monkeypatch.setattr(guest, "MODULE", module)
    monkeypatch.setattr(guest.need, "programs", lambda names: None)
    told = str(guest.lacks())
    assert "for the guest's kernel 6.1.0-99-amd64 must be made first: sudo make kmod" in told
    (image / "release").write_text("6.1.0-1-amd64\n")
    assert guest.lacks() is None


def test_where_it_cannot_be_it_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^client: a virtual machine's own queue"):
        parameters.complete((), {"client": "vm", "bottleneck": "sender"})
    with pytest.raises(ParameterError, match=r"^client: 'vm' is not for page-load"):
        sweep.configurations(catalogue.find("page-load"), {"client": ("vm",)})
    (params, *_) = sweep.configurations(catalogue.find("download"), {"client": ("vm",)})
    assert params["client"] == "vm"


def test_it_is_a_lab_of_its_own() -> None:
    one, other = (configuration(client=client) for client in ("namespace", "vm"))
    assert key(one) != key(other)
    assert name_of(one) != name_of(other)
    assert Labs().making_s(other) > Labs().making_s(one) == 0


def test_labs_of_other_settings_are_told_apart() -> None:
    changes: list[dict[str, Any]] = [{}, {"cc": "reno"}, {"loss": 0.01}, {"way": "direct"}]
    changes += [{"link": "auto"}, {"preset": "lte"}, {"wan_rtt_ms": 9.0}, {"topology": "two"}]
    assert len({name_of(configuration(**it)) for it in changes}) == len(changes)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_runs_in_a_guest(labs: Path, tmp_path: Path) -> None:
    """One machine for several runs; when it dies, that run fails and the next has another."""
    if reason := why_no_guest():
        pytest.skip(reason)
    seen: list[int] = []

    def measure(run: LiveRun) -> dict[str, Any]:
        machine = run.lab.client.machine
        seen.append(machine.pid)
        if run.params["pipes"] == 2:
            machine.process.kill()
        found = download(run, 100_000)
        assert run.lab.client.inside("uname", "-r").strip() == machine.image.release
        return found

    results = Results.create(tmp_path, "tried", None, {"plan": {}})
    chosen = {"rtt_ms": 20, "client": "vm"}
    plan = [configuration(pipes=pipes, **chosen) for pipes in (1, 4, 2, 3)]
    with Labs(results.path) as made:
        runner = Runner(
            *(experiment(measure), results, made),
            limit_s=40.0,
            keep=Keep(late=True),
        )
        records = []
        for params in plan:
            (run,) = Plan("tried", (params,), 1, seed=1, limit_s=40.0).runs()
            records.append(runner.run(run))
    became = [(it["outcome"], it["error"], it["took_s"]) for it in records]
    assert [it[0] for it in became] == ["ok", "ok", "failed", "ok"], became
    assert seen[0] == seen[1] == seen[2] != seen[3]
    assert records[2]["error"].startswith("the guest ended during the run; ")
    assert [it.get("redirected") for it in records] == [1, 1, None, 1]
    (lab,) = json.loads((results.path / "meta.json").read_text())["labs"].values()
    told = lab["nodes"]["client"]["machine"]
    assert told["accel"] in ("kvm", "tcg") and told["kernel"] == told["module"]["for_kernel"]
    assert len(told["module"]["sha256"]) == 64
    assert len(lab["proxies"]) == 1
